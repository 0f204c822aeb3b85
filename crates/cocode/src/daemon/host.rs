//! The daemon itself: lets fronts in, serves each what it would serve itself, answers commands, and
//! ends when nobody has needed it for a while.

mod farewell;
mod floor;
mod fronts;
mod house;
mod visit;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_admin::Admin;
use cocode_gateway::Gateway;
use cocode_wire::serve::{HttpLimits, UnixClient, UnixServer, UnixServerError};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::farewell::Farewell;
use self::fronts::{Fronts, Guest};
use self::house::DaemonHouse;
use self::visit::is_http;
use super::asking::holder;
use super::build::build;
use super::hello::{self, CHANNEL, Front, Hello, MAX_HELLO_BYTES, Refusal, Wants, Welcome};
use super::place::Place;
use super::world::world;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::session::on_runtime;
use crate::workspace::Workspace;

pub(crate) use self::floor::{Floor, Own};

/// How long a daemon stays without anybody.
const IDLE: Duration = Duration::from_mins(1);
/// How long whoever connects may take to say what they want.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How long those may take to leave who are left when everything has ended.
const OVER_WITHIN: Duration = Duration::from_secs(2);
/// How long the end of a front waits for credentials to be stored.
const SETTLED_WITHIN: Duration = Duration::from_secs(45);

/// Variables that hold for a whole process, since libraries read them.
const OF_PROCESS: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// Runs the daemon until nobody needs it.
pub(crate) fn run(workspace: &Workspace) -> Result<Exit, CliError> {
    let Some(place) = Place::of(workspace) else {
        return Err(CliError::new(
            Code::SetupFailed,
            "there is no place for the socket of the daemon",
        ));
    };
    let setup = Setup::new(Purpose::Serving, workspace)?;
    let outcome = on_runtime(workspace, serve(&place, &setup, workspace));
    setup.end();
    outcome
}

async fn serve(place: &Place, setup: &Setup, workspace: &Workspace) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let idle = workspace.config()?.settings.gateway.idle_stop.as_ref();
    let idle = idle.map_or(IDLE, |setting| setting.value);
    let gateway = Gateway::releasing_heap_with(cocode_process::release_free_heap);
    let hosting = Hosting::begin(place, &gateway, setup, workspace, None).await;
    let mut hosting = match hosting {
        Ok(hosting) => hosting,
        Err(error) => return Err(cannot_listen(&error, place).await),
    };
    let printer = &workspace.printer;
    printer.out_line(&format!("listening at {}", place.socket.display()))?;
    let host = Arc::clone(&hosting.host);
    let exit = tokio::select! {
        biased;
        exit = interrupts.next() => exit,
        () = hosting.welcome() => Exit::Ok,
        () = host.fronts.unneeded(idle) => Exit::Ok,
    };
    gateway.begin_drain();
    // Requests that are on their way may be answered yet. Whoever asked for the end stays.
    let is_over = tokio::select! {
        () = hosting.leave() => true,
        _again = interrupts.next() => false,
    };
    if is_over {
        gateway.finish().await;
    } else {
        hosting.abandon();
    }
    hosting.over().await;
    Ok(exit)
}

/// Serves fronts and answers commands at the place of the daemon, for as long as this is there.
#[derive(Debug)]
pub(crate) struct Hosting {
    host: Arc<Host>,
    /// Until nobody is let in any more.
    server: Option<UnixServer>,
    guests: JoinSet<()>,
    orders: watch::Receiver<Order>,
}

impl Hosting {
    /// Takes the place, unless another daemon has it. A gateway brings what it is looked after with.
    pub(crate) async fn begin(
        place: &Place,
        gateway: &Gateway,
        setup: &Setup,
        workspace: &Workspace,
        own: Option<(Own, Admin)>,
    ) -> Result<Self, UnixServerError> {
        let server = UnixServer::bind(&place.socket).await?;
        let (orders, ordered) = watch::channel(Order::Serve);
        let makes_way = own.is_none();
        let (own, admin) = own.unzip();
        let supervision = own.as_ref().map(|own| own.supervision.clone());
        let supervision = supervision.unwrap_or_default();
        let variables = workspace.environment.variables.clone();
        let fronts = Arc::new(Fronts::new(setup.for_others(), variables, supervision));
        let floor = Floor::new(&place.socket, Arc::clone(&fronts), own);
        let floor = Arc::new(floor);
        let admin = admin.unwrap_or_else(|| DaemonHouse::admin(&floor, &orders));
        let host = Host {
            build: build(),
            world: world(),
            gateway: gateway.clone(),
            makes_way,
            fronts,
            floor,
            admin: Mutex::new(Some(admin)),
            visits: watch::Sender::default(),
            orders,
        };
        let (process, socket) = (std::process::id(), place.socket.display());
        tracing::info!(process, %socket, "listening");
        Ok(Self {
            host: Arc::new(host),
            server: Some(server),
            guests: JoinSet::new(),
            orders: ordered,
        })
    }

    /// Lets in whoever comes, until somebody wants the end. Cancel safe.
    pub(crate) async fn welcome(&mut self) {
        let Some(server) = &self.server else {
            return;
        };
        loop {
            tokio::select! {
                biased;
                _order = self.orders.wait_for(|order| *order != Order::Serve) => return,
                Some(ended) = self.guests.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "serving a front failed");
                    }
                }
                client = server.accept() => {
                    let orders = self.host.orders.subscribe();
                    self.guests.spawn(Arc::clone(&self.host).meet(client, orders));
                }
            }
        }
    }

    /// Lets nobody in any more, and those who are there leave. Whoever comes from here on starts
    /// another daemon.
    pub(crate) fn close(&mut self) {
        if self.server.take().is_some() {
            self.host.floor.release();
            drop(self.host.admin().take());
            self.host.orders.send_replace(Order::Leave);
            tracing::info!("ending");
        }
    }

    /// The same, and waits until they have left. Cancel safe.
    pub(crate) async fn leave(&mut self) {
        self.close();
        self.host.fronts.none().await;
        // Whoever is answered may hold servers.
        self.host.unvisited().await;
    }

    /// Who is served.
    pub(crate) fn floor(&self) -> &Arc<Floor> {
        &self.host.floor
    }

    /// Ends when no front is there.
    pub(crate) fn parted(&self) -> impl Future<Output = ()> + use<> {
        let host = Arc::clone(&self.host);
        async move { host.fronts.none().await }
    }

    /// Waits for nobody.
    pub(crate) fn abandon(&mut self) {
        self.guests.abort_all();
    }

    /// Tells those who asked for the end that it has come. Whoever does not leave then is not waited
    /// for any longer.
    pub(crate) async fn over(mut self) {
        self.host.orders.send_replace(Order::Over);
        let leaving = async { while self.guests.join_next().await.is_some() {} };
        if tokio::time::timeout(OVER_WITHIN, leaving).await.is_err() {
            tracing::info!("somebody was still there at the end");
        }
    }
}

async fn cannot_listen(error: &UnixServerError, place: &Place) -> CliError {
    if !matches!(error, UnixServerError::AlreadyRunning { .. }) {
        return CliError::new(Code::SetupFailed, "the daemon cannot listen").because(error);
    }
    let holder = holder(place).await;
    let message = format!("{holder} serves the clients of `cocode mcp serve` already");
    CliError::new(Code::SetupFailed, message)
        .hint("`cocode mcp daemon status` shows it")
        .hint("`cocode mcp daemon stop` ends it")
}

/// How far the end of the daemon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Serve,
    /// Somebody wants it to end.
    End,
    /// The socket is gone, and fronts have to leave.
    Leave,
    /// Nothing is left.
    Over,
}

#[derive(Debug)]
struct Host {
    build: String,
    /// Which part of the system it sees.
    world: Vec<String>,
    gateway: Gateway,
    /// Whether it ends for fronts of another build when nobody else is there.
    makes_way: bool,
    fronts: Arc<Fronts>,
    floor: Arc<Floor>,
    /// What it is looked after with, until its place is given up.
    admin: Mutex<Option<Admin>>,
    /// How many commands are being answered.
    visits: watch::Sender<usize>,
    orders: watch::Sender<Order>,
}

/// Ends the process in order.
fn end(orders: &watch::Sender<Order>) {
    orders.send_if_modified(|order| {
        let is_first = *order == Order::Serve;
        if is_first {
            *order = Order::End;
        }
        is_first
    });
}

impl Host {
    fn admin(&self) -> MutexGuard<'_, Option<Admin>> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears what somebody wants, and does it.
    async fn meet(self: Arc<Self>, mut client: UnixClient, mut orders: watch::Receiver<Order>) {
        let pid = client.pid();
        let first = tokio::select! {
            first = client.first_byte(HELLO_WITHIN) => first,
            // Nobody is waited for who has nothing to say.
            _order = orders.wait_for(|order| *order >= Order::Leave) => return,
        };
        let line = match first {
            Ok(first) if is_http(first) => {
                let limit = HttpLimits::default().max_header_bytes;
                if let Err(error) = client.http_head(limit, HELLO_WITHIN).await {
                    tracing::debug!(%error, ?pid, "connection closed before a complete request head");
                    return;
                }
                return self.answer(client, orders).await;
            }
            Ok(_) => client.first_line(MAX_HELLO_BYTES, HELLO_WITHIN).await,
            Err(error) => Err(error),
        };
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                tracing::debug!(%error, ?pid, "somebody connected and said nothing");
                return;
            }
        };
        let Some((channel, build)) = Hello::head(&line) else {
            self.refuse(&mut client, Refusal::NotUnderstood).await;
            return;
        };
        if channel != CHANNEL || build != self.build {
            self.make_way(&mut client, &line, &mut orders).await;
            return;
        }
        let hello: Hello<Wants> = match serde_json::from_slice(&line) {
            Ok(hello) => hello,
            Err(error) => {
                // What it quotes may be secret.
                let (kind, column) = (error.classify(), error.column());
                tracing::warn!(?kind, column, "a first line was not understood");
                self.refuse(&mut client, Refusal::NotUnderstood).await;
                return;
            }
        };
        let Wants::Front(front) = hello.wants;
        Box::pin(self.serve(client, *front, orders)).await;
    }

    /// Ends for a front of another build, if nobody else is served.
    async fn make_way(
        &self,
        client: &mut UnixClient,
        line: &[u8],
        orders: &mut watch::Receiver<Order>,
    ) {
        // However another build writes what it wants to be served.
        let is_front = serde_json::from_slice::<Hello<Value>>(line)
            .is_ok_and(|hello| hello.wants.get("front").is_some());
        let is_free = self.makes_way && is_front && self.fronts.is_empty();
        if !is_free {
            self.refuse(client, Refusal::OtherBuild).await;
            return;
        }
        tracing::info!("making way for another build");
        self.refuse(client, Refusal::SteppingAside).await;
        end(&self.orders);
        // The end of the connection says that the place is free.
        drop(orders.wait_for(|order| *order >= Order::Leave).await);
    }

    async fn serve(
        &self,
        mut client: UnixClient,
        front: Front,
        mut orders: watch::Receiver<Order>,
    ) {
        if *orders.borrow() != Order::Serve {
            self.refuse(&mut client, Refusal::Ending).await;
            return;
        }
        // The mount namespace is verified; the front only reports the others.
        let shares_mounts = cocode_process::peer_shares_mounts(client.stream());
        if front.world != self.world || !shares_mounts.is_ok_and(|shares| shares) {
            self.refuse(&mut client, Refusal::OtherWorld).await;
            return;
        }
        if self.fronts.differs_in(&front, &OF_PROCESS) {
            self.refuse(&mut client, Refusal::OtherCertificates).await;
            return;
        }
        let pid = client.pid();
        let entered = tokio::select! {
            biased;
            entered = self.fronts.enter(&self.gateway, front, pid) => Some(entered),
            // Its files may be on a disk that does not answer, which must not keep us.
            _order = orders.wait_for(|order| *order >= Order::Leave) => None,
        };
        let Some(entered) = entered else {
            self.refuse(&mut client, Refusal::Ending).await;
            return;
        };
        let guest = match entered {
            Ok(guest) => guest,
            Err(error) => {
                tracing::info!(?pid, "a front cannot be served: {}", error.message);
                self.refuse(&mut client, Refusal::Failed).await;
                return;
            }
        };
        let Guest {
            endpoint,
            warnings,
            serving,
            presence,
        } = guest;
        // It may have taken a while.
        if *orders.borrow() != Order::Serve {
            self.refuse(&mut client, Refusal::Ending).await;
            return;
        }
        let welcome = Welcome {
            warnings: warnings.clone(),
            ..Welcome::new(&self.build)
        };
        if !self.say(&mut client, &welcome).await {
            return;
        }
        tracing::info!(?pid, "a front is served");
        let endpoint = Farewell::new(endpoint);
        let shutdown = async {
            drop(orders.wait_for(|order| *order >= Order::Leave).await);
            endpoint.part().await;
        };
        let mut options = crate::serve::options();
        // The front brings subscriptions over to the next daemon.
        options.patience.awaits_subscriptions = false;
        let warning = serving.warn(warnings, |text| endpoint.warn(text));
        let closed = tokio::select! {
            closed = client.serve(&endpoint, options, shutdown) => closed,
            never = warning => match never {},
        };
        tracing::info!(?pid, %closed, "a front has left");
        if tokio::time::timeout(SETTLED_WITHIN, self.fronts.settle())
            .await
            .is_err()
        {
            tracing::warn!("credentials that were being renewed may be lost");
        }
        drop((endpoint, serving, presence));
    }

    async fn refuse(&self, client: &mut UnixClient, why: Refusal) {
        tracing::info!(pid = ?client.pid(), ?why, "refused");
        self.say(client, &Welcome::refused(&self.build, why)).await;
    }

    /// Sends one line. Whether it was taken.
    async fn say(&self, client: &mut UnixClient, welcome: &Welcome) -> bool {
        let written = match hello::line(welcome) {
            Ok(line) => {
                let writing = client.stream().write_all(&line);
                let written = tokio::time::timeout(HELLO_WITHIN, writing).await;
                written.unwrap_or_else(|_elapsed| Err(std::io::ErrorKind::TimedOut.into()))
            }
            Err(error) => Err(error.into()),
        };
        if let Err(error) = &written {
            tracing::debug!(%error, "an answer was not taken");
        }
        written.is_ok()
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
