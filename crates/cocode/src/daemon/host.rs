//! The daemon itself: lets fronts in, serves each what it would serve itself, answers commands, and
//! ends when nobody has needed it for a while.

mod farewell;
mod fronts;
mod status;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_gateway::{Gateway, View};
use cocode_wire::serve::{UnixClient, UnixServer, UnixServerError};
use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::farewell::Farewell;
use self::fronts::{Fronts, Guest};
use super::asking::holder;
use super::build::build;
use super::control::Ask;
use super::hello::{self, CHANNEL, Front, Hello, MAX_HELLO_BYTES, Refusal, Wants, Welcome};
use super::place::Place;
use super::world::world;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::session::on_runtime;
use crate::workspace::Workspace;

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
    let gateway = Gateway::new();
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

/// A gateway that people have started, which serves fronts besides.
#[derive(Debug)]
pub(crate) struct Own {
    /// Where it listens.
    pub(crate) url: String,
    pub(crate) directory: Option<String>,
    pub(crate) view: View,
}

impl Hosting {
    /// Takes the place, unless another daemon has it.
    pub(crate) async fn begin(
        place: &Place,
        gateway: &Gateway,
        setup: &Setup,
        workspace: &Workspace,
        own: Option<Own>,
    ) -> Result<Self, UnixServerError> {
        let server = UnixServer::bind(&place.socket).await?;
        let (orders, ordered) = watch::channel(Order::Serve);
        let host = Host {
            build: build(),
            world: world(),
            begun: Instant::now(),
            socket: place.socket.display().to_string(),
            gateway: gateway.clone(),
            fronts: Fronts::new(setup.for_others(), workspace.environment.variables.clone()),
            makes_way: own.is_none(),
            own: Mutex::new(own),
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
            drop(self.host.own().take());
            self.host.orders.send_replace(Order::Leave);
            tracing::info!("ending");
        }
    }

    /// The same, and waits until they have left. Cancel safe.
    pub(crate) async fn leave(&mut self) {
        self.close();
        self.host.fronts.none().await;
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
    begun: Instant,
    socket: String,
    gateway: Gateway,
    fronts: Fronts,
    /// Whether it ends for fronts of another build when nobody else is there.
    makes_way: bool,
    /// What it serves to others than fronts.
    own: Mutex<Option<Own>>,
    orders: watch::Sender<Order>,
}

impl Host {
    fn own(&self) -> MutexGuard<'_, Option<Own>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears what somebody wants, and does it.
    async fn meet(self: Arc<Self>, mut client: UnixClient, mut orders: watch::Receiver<Order>) {
        let pid = client.pid();
        let line = match client.first_line(MAX_HELLO_BYTES, HELLO_WITHIN).await {
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
        match hello.wants {
            Wants::Front(front) => Box::pin(self.serve(client, *front, orders)).await,
            Wants::Control(ask) => self.control(client, ask, orders).await,
        }
    }

    /// Ends for a front of another build, if nobody else is served. Commands are answered as far as
    /// they are understood: how to end a daemon has to be.
    async fn make_way(
        &self,
        client: &mut UnixClient,
        line: &[u8],
        orders: &mut watch::Receiver<Order>,
    ) {
        let wants = serde_json::from_slice::<Hello<Wants>>(line);
        let stops = wants.is_ok_and(|hello| matches!(hello.wants, Wants::Control(Ask::Stop)));
        // However another build writes what it wants to be served. Commands find another way.
        let is_front = serde_json::from_slice::<Hello<Value>>(line)
            .is_ok_and(|hello| hello.wants.get("front").is_some());
        let is_free = self.makes_way && is_front && self.fronts.is_empty();
        if !stops && !is_free {
            self.refuse(client, Refusal::OtherBuild).await;
            return;
        }
        tracing::info!("making way for another build");
        if stops {
            self.say(client, &Welcome::new(&self.build)).await;
        } else {
            self.refuse(client, Refusal::SteppingAside).await;
        }
        self.end();
        let until = if stops { Order::Over } else { Order::Leave };
        // The end of the connection says that the place is free.
        drop(orders.wait_for(|order| *order >= until).await);
    }

    fn end(&self) {
        self.orders.send_if_modified(|order| {
            let is_first = *order == Order::Serve;
            if is_first {
                *order = Order::End;
            }
            is_first
        });
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
        if front.world != self.world {
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

    async fn control(&self, mut client: UnixClient, ask: Ask, mut orders: watch::Receiver<Order>) {
        match ask {
            Ask::Status => {
                self.answer(&mut client, &self.report()).await;
            }
            Ask::Watch => self.watch(client, orders).await,
            Ask::Restart(name) => {
                let restarted = self.restart(&name).await;
                self.answer(&mut client, &restarted).await;
            }
            Ask::Stop => {
                if self.say(&mut client, &Welcome::new(&self.build)).await {
                    self.end();
                    drop(orders.wait_for(|order| *order == Order::Over).await);
                }
            }
        }
    }

    /// Sends what was asked for. Whether it was taken.
    async fn answer(&self, client: &mut UnixClient, answer: &impl Serialize) -> bool {
        match serde_json::value::to_raw_value(answer) {
            Ok(answer) => {
                let welcome = Welcome {
                    answer: Some(answer),
                    ..Welcome::new(&self.build)
                };
                self.say(client, &welcome).await
            }
            Err(error) => {
                tracing::error!(%error, "cannot write an answer");
                false
            }
        }
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
