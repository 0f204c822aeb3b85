//! `cocode gateway`: every server at one address. Listens first, starts servers then, follows the
//! files of configuration, and ends in order.

mod agent;
mod builtin;
pub(crate) mod clients;
mod connector;
#[cfg_attr(
    not(test),
    expect(
        dead_code,
        reason = "the gateway has no management API yet that would use its house"
    )
)]
mod house;
mod in_process;
pub(crate) mod listen;
mod occupant;
pub(crate) mod plan;
mod servers;
mod site;
mod voice;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cocode_client::chain;
use cocode_config::Config;
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_wire::serve::{BindError, HttpServer, UnixServerError};
use futures_util::FutureExt as _;
use futures_util::future::Fuse;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use self::agent::{AgentPlace, Resident};
use self::builtin::BuiltIn;
use self::connector::Ways;
use self::plan::Plan;
use self::servers::Servers;
use self::site::Endpoints;
use self::voice::Voice;
use crate::access::Access;
use crate::args::gateway::GatewayArgs;
use crate::configured::warn_of_entries;
use crate::daemon::{Hosting, Own, Place, holder};
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::reach::Configured;
use crate::serving::gate::Rules;
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// How long fronts may take to bring their subscriptions over to the next daemon, before those of all
/// clients end.
const PARTED_WITHIN: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &GatewayArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let access = on_runtime(workspace, Access::of(workspace))?;
    let plan = Plan::new(args, &access, workspace)?;
    for warning in plan.warnings() {
        workspace.printer.warn(&warning);
    }
    let built_in = BuiltIn::wanted(&args.tools, workspace)?;
    let agent = AgentPlace::wanted(args, workspace)?;
    let setup = Setup::new(Purpose::Watching, workspace)?;
    let within = Within { built_in, agent };
    let outcome = on_runtime(workspace, serve(&plan, within, &setup, workspace));
    setup.end();
    outcome
}

/// Servers within this process.
struct Within {
    built_in: Option<BuiltIn>,
    agent: Option<AgentPlace>,
}

async fn serve(
    plan: &Plan,
    within: Within,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let config = workspace.config()?;
    let rules = Arc::new(Rules::of(config, None));
    let Within { built_in, agent } = within;
    let connector = Arc::new(Ways {
        configured: Configured::new(workspace)?,
        built_in,
        agent,
        own: OnceLock::new(),
    });
    let gateway = Gateway::new();
    let manager = setup.options(|options| {
        options.connector = Arc::<Ways>::clone(&connector);
        // Clients say what they want to hear.
        options.log_level = None;
        if connector.agent.is_some() {
            options.max_input_rounds = agent::MAX_INPUT_ROUNDS;
        }
    });
    let view = gateway.view(ViewOptions {
        manager,
        gate: Arc::<Rules>::clone(&rules),
        prefix: plan.prefix,
        search: plan.search.options,
        ..ViewOptions::default()
    });
    let server = listen(plan, &view)?;
    connector.own.get_or_init(|| server.local_addr());
    let voice = Voice::new(plan, server.local_addr(), &workspace.printer);
    voice.listening(&plan.search)?;
    if let Some(built_in) = &connector.built_in {
        built_in.introduce(config, &workspace.printer);
    }
    warn(plan, config, workspace);
    let (watcher, mut changes) = workspace.watch()?;
    let resident = move_in(&connector, &view, setup, workspace).await?;
    let own = own(&voice, &view, workspace);
    let mut fronts = host(&gateway, setup, workspace, own).await;
    let ways = Arc::clone(&connector);
    let mut servers = Servers::new(plan, view, connector, rules, &voice, workspace);
    // Who connects meanwhile waits: nobody is told that there is no such server.
    servers.apply().await;
    let (stop, stopped) = oneshot::channel::<()>();
    let mut serving = JoinSet::new();
    serving.spawn(server.serve(async { stopped.await.unwrap_or_default() }));
    let mut stop = Some(stop);
    let mut parted = std::pin::pin!(Fuse::terminated());
    loop {
        tokio::select! {
            biased;
            exit = interrupts.next() => {
                workspace.printer.leave_line();
                if stop.take().is_none() {
                    return Ok(exit);
                }
                parted.set(part(fronts.as_mut()).fuse());
                voice.ending();
            }
            Some(ended) = serving.join_next() => {
                ended.map_err(|error| {
                    CliError::new(Code::SetupFailed, "the gateway failed").because(&error)
                })?;
                break;
            }
            () = &mut parted => gateway.begin_end(),
            Some(()) = changes.recv(), if stop.is_some() => servers.reload().await,
            () = servers.happened() => servers.tell(),
            () = welcome(fronts.as_mut()), if stop.is_some() => {
                // As if it were told by a signal.
                stop = None;
                parted.set(part(fronts.as_mut()).fuse());
                voice.ending();
            }
        }
    }
    move_out(&ways, resident).await;
    drop((servers, watcher, ways));
    end(&gateway, fronts, &mut interrupts).await
}

/// Brings the agent in, if there is to be one.
async fn move_in(
    ways: &Ways,
    view: &View,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Option<Resident>, CliError> {
    match &ways.agent {
        Some(agent) => agent.move_in(view, setup, workspace).await.map(Some),
        None => Ok(None),
    }
}

/// Ends the agent.
async fn move_out(ways: &Ways, resident: Option<Resident>) {
    if let (Some(agent), Some(resident)) = (&ways.agent, resident) {
        agent.move_out();
        resident.leave().await;
    }
}

/// Warns of whatever is wrong with what is to be served.
fn warn(plan: &Plan, config: &Config, workspace: &Workspace) {
    let wanted = config.servers.iter();
    let wanted = wanted.filter(|(name, _)| plan.selection.has(name));
    warn_of_entries(wanted.map(|(_, server)| server), workspace);
    workspace.warn_of_files(config);
}

/// Ends what is left, in order, or at once if somebody wants that.
async fn end(
    gateway: &Gateway,
    mut fronts: Option<Hosting>,
    interrupts: &mut Interrupts,
) -> Result<Exit, CliError> {
    let ending = async {
        if let Some(fronts) = &mut fronts {
            fronts.leave().await;
        }
        gateway.finish().await;
    };
    let exit = tokio::select! {
        () = ending => Exit::Ok,
        exit = interrupts.next() => exit,
    };
    if let Some(mut fronts) = fronts {
        fronts.abandon();
        fronts.over().await;
    }
    Ok(exit)
}

/// What this gateway serves besides fronts.
fn own(voice: &Voice, view: &View, workspace: &Workspace) -> Own {
    let directory = workspace.places.directory.as_ref();
    Own {
        url: voice.url(),
        directory: directory.map(|directory| directory.display().to_string()),
        view: view.clone(),
    }
}

/// Serves fronts as well, so that all agents of a user share the servers. Without them if another
/// daemon does that already.
async fn host(
    gateway: &Gateway,
    setup: &Setup,
    workspace: &Workspace,
    own: Own,
) -> Option<Hosting> {
    let place = Place::of(workspace)?;
    match Hosting::begin(&place, gateway, setup, workspace, Some(own)).await {
        Ok(hosting) => Some(hosting),
        Err(UnixServerError::AlreadyRunning { .. }) => {
            let holder = holder(&place).await;
            workspace.printer.note(&format!(
                "{holder} serves the clients of `cocode mcp serve`, and shares no servers with this gateway; \
                 to have them share, `cocode mcp daemon stop` and start the gateway before the next agent",
            ));
            None
        }
        Err(error) => {
            let why = format!(
                "`cocode mcp serve` cannot use this gateway: {}",
                chain(&error)
            );
            workspace.printer.warn(&why);
            None
        }
    }
}

async fn welcome(fronts: Option<&mut Hosting>) {
    match fronts {
        Some(fronts) => fronts.welcome().await,
        None => std::future::pending().await,
    }
}

/// Sends fronts to the next daemon, which takes the place from here on. Ends when they are gone, or
/// have had their time.
fn part(fronts: Option<&mut Hosting>) -> impl Future<Output = ()> + use<> {
    let parted = fronts.map(|fronts| {
        fronts.close();
        fronts.parted()
    });
    async {
        let Some(parted) = parted else {
            return;
        };
        if tokio::time::timeout(PARTED_WITHIN, parted).await.is_err() {
            tracing::debug!("fronts take long to leave");
        }
    }
}

fn listen(plan: &Plan, view: &View) -> Result<HttpServer, CliError> {
    let site = Arc::new(Endpoints::new(view.clone()));
    HttpServer::bind(plan.http.clone(), site).map_err(|error| match &error {
        BindError::Listen { address, source } if source.kind() == io::ErrorKind::AddrInUse => {
            in_use(*address)
        }
        other => CliError::new(Code::SetupFailed, "the gateway cannot listen").because(other),
    })
}

fn in_use(address: std::net::SocketAddr) -> CliError {
    let occupant = occupant::of(address);
    let whose = match &occupant {
        Some(occupant) => format!(
            "`{}` (process {}) listens there",
            occupant.program, occupant.pid
        ),
        None => "another program listens there".to_owned(),
    };
    let message = format!("the address {address} is taken: {whose}");
    let mut error = CliError::new(Code::AddressInUse, message);
    if occupant.is_some_and(|occupant| occupant.program == "cocode") {
        error = error.hint(format!(
            "a gateway may be running already: see http://{address}/"
        ));
    }
    error
        .hint("`--listen :0` takes any free port, `--listen :PORT` another one")
        .hint("`listen` in [gateway] of config.toml chooses one for always")
}
