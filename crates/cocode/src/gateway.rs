//! `cocode gateway`: every server at one address. Listens first, starts servers then, follows the
//! files of configuration, and ends in order.

pub(crate) mod agent;
pub(crate) mod builtin;
pub(crate) mod clients;
pub(crate) mod connector;
mod door;
mod house;
mod in_process;
mod inbox;
pub(crate) mod listen;
mod management;
mod occupant;
mod opening;
mod oversight;
pub(crate) mod own_files;
pub(crate) mod plan;
mod principals;
mod servers;
mod site;
mod supervisor;
mod views;
mod voice;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use cocode_admin::Admin;
use cocode_client::chain;
use cocode_config::Config;
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_wire::serve::UnixServerError;
use futures_util::FutureExt as _;
use futures_util::future::Fuse;
use tokio_util::sync::CancellationToken;

use self::agent::{AgentPlace, Resident};
use self::builtin::BuiltIn;
use self::clients::Entry;
use self::connector::Ways;
use self::door::FrontDoor;
use self::management::Management;
use self::opening::{Listening, Made, Opened, Within};
use self::oversight::Watch;
use self::plan::Plan;
use self::principals::Principals;
use self::servers::Servers;
use self::supervisor::Supervisor;
use self::voice::{Office, Voice};
use crate::access::Access;
use crate::args::gateway::GatewayArgs;
use crate::configured::warn_of_entries;
use crate::daemon::{Floor, Hosting, Own, Place, holder};
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::records::records;
use crate::serving::Supervision;
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// How long fronts may take to bring their subscriptions over to the next daemon, before those of all
/// clients end.
const PARTED_WITHIN: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &GatewayArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let (records, access) = on_runtime(workspace, async {
        let records = records(workspace).await?;
        let access = Access::of(&*records, workspace).await?;
        Ok((records, access))
    })?;
    // A token that is created at this start makes no address of others acceptable.
    let mut plan = Plan::new(args, &access, workspace)?;
    let access = access.guarding_commands(args);
    plan.has_principals |= access.is_asked();
    plan.creates_token = access.creates_token();
    let sandbox = plan.sandbox_warning(workspace.config()?);
    for warning in plan.warnings().into_iter().chain(sandbox) {
        workspace.printer.warn(&warning);
    }
    if let Some(note) = plan.sandbox_note(workspace.config()?) {
        workspace.printer.note(&note);
    }
    let built_in = BuiltIn::wanted(&args.tools, &plan.tls_files, workspace)?;
    let agent = AgentPlace::wanted(args, &plan.selection, &*records, workspace)?;
    if !access.is_asked() && !workspace.config()?.settings.gateway.principals.is_empty() {
        workspace.printer.warn(
            "[gateway.principals] says what clients may do, but nobody is asked who they are, so that every \
             program of this machine may do everything; `cocode gateway token add NAME` makes the first token",
        );
    }
    let withheld = agent.iter().flat_map(AgentPlace::warnings);
    let withheld = withheld.chain(built_in.as_ref().and_then(BuiltIn::warning));
    for warning in withheld.filter(|_| access.is_asked()) {
        workspace.printer.warn(&warning);
    }
    let setup = Setup::new(Purpose::Watching, workspace)?;
    let within = Within {
        built_in,
        agent,
        access,
        records,
    };
    // Nobody who does not read what the gateway says keeps clients waiting.
    let aside = workspace.printer.write_aside();
    let outcome = on_runtime(workspace, serve(&plan, within, &setup, workspace));
    drop(aside);
    setup.end();
    outcome
}

async fn serve(
    plan: &Plan,
    within: Within,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let Opened {
        gateway,
        made,
        watch,
        door,
        mut management,
        views,
        listening,
    } = Opened::open(plan, within, setup, workspace).await?;
    let Made {
        options,
        view,
        ways,
        rules,
    } = made;
    let voice = Voice::new(plan, listening.address(), &workspace.printer);
    let (watcher, mut changes) = workspace.watch()?;
    let resident = move_in(&ways, &view, setup, workspace).await?;
    let shared = (&gateway, setup, workspace);
    let own = || own(&voice, (&view, &options), workspace);
    let (mut fronts, floor) = host(shared, own, management.pages.admin()).await;
    // Announced when its socket is bound, so that `cocode gateway status` finds it at once.
    let parts = (plan, &listening, &management, &*door);
    introduce(&voice, parts, &ways, workspace).await?;
    let principals = Principals::new(shared, (options, Arc::clone(&ways), watch.clone()), views);
    let told = (plan, &voice, workspace);
    let servers = Servers::new(told, view, Arc::clone(&ways), rules, principals);
    let mut servers = servers.publishing(management.present());
    // Who connects meanwhile waits: nobody is told that there is no such server.
    servers.apply().await;
    let tasks = door.guarded(&listening.door());
    management.open(plan, &voice, &listening, floor);
    let stop = CancellationToken::new();
    let mut serving = listening.serve(&stop);
    let supervisor = Supervisor::ready(&workspace.environment.variables).await;
    let mut parted = std::pin::pin!(Fuse::terminated());
    loop {
        let is_wanted = tokio::select! {
            biased;
            exit = interrupts.next() => {
                workspace.printer.leave_line();
                if stop.is_cancelled() {
                    return Ok(exit);
                }
                true
            }
            ended = serving.join_next() => match ended {
                Some(Ok(())) => false,
                Some(Err(error)) => return Err(failed(&error)),
                None => break,
            },
            () = &mut parted => {
                gateway.begin_end();
                false
            }
            Some(()) = changes.recv(), if !stop.is_cancelled() => {
                servers.reload().await;
                false
            }
            happening = servers.happened() => {
                servers.see_to(happening).await;
                false
            }
            // As if it were told by a signal.
            () = welcome(fronts.as_mut()), if !stop.is_cancelled() => true,
            () = management.wants_end(), if !stop.is_cancelled() => true,
        };
        if is_wanted {
            stop.cancel();
            management.house.close();
            parted.set(part(&gateway, fronts.as_mut()).fuse());
            voice.ending();
            supervisor.stopping().await;
        }
    }
    move_out(&ways, resident).await;
    servers.leave().await;
    door.close().await;
    // Whoever still had a view would keep its servers.
    drop((watcher, ways, management, tasks, door));
    end(&gateway, fronts, &watch, &mut interrupts).await
}

fn failed(error: &tokio::task::JoinError) -> CliError {
    CliError::new(Code::SetupFailed, "the gateway failed").because(error)
}

/// Says where it listens and what is there, and warns of whatever is wrong.
async fn introduce(
    voice: &Voice<'_>,
    (plan, listening, management, door): (&Plan, &Listening, &Management, &FrontDoor),
    ways: &Ways,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let config = workspace.config()?;
    let office = Office {
        url: listening.office_url(plan),
        code: management.pages.new_code()?,
    };
    // Created last: a token that is stored by a start that fails would never be shown.
    let token = if plan.creates_token {
        door.create_token().await?
    } else {
        None
    };
    let entry = match &token {
        Some(token) => Entry::NewToken(token),
        None => management.entry(),
    };
    voice.listening(&plan.search, entry, &office)?;
    if let Some(note) = ways
        .built_in
        .as_ref()
        .and_then(|own| own.introduction(config))
    {
        workspace.printer.note(&note);
    }
    warn(plan, config, workspace);
    Ok(())
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
    watch: &Watch,
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
    watch.close().await;
    Ok(exit)
}

/// What this gateway serves besides fronts.
fn own(voice: &Voice, (view, options): (&View, &ViewOptions), workspace: &Workspace) -> Own {
    let directory = workspace.places.directory.as_ref();
    Own {
        url: voice.url(),
        directory: directory.map(|directory| directory.display().to_string()),
        view: view.clone(),
        supervision: Supervision {
            overseer: Some(Arc::clone(&options.overseer)),
            inbox: options.inbox.clone(),
        },
    }
}

/// Serves fronts as well, so that all agents of a user share the servers. Without them if another
/// daemon does that already.
async fn host(
    (gateway, setup, workspace): (&Gateway, &Setup, &Workspace),
    own: impl Fn() -> Own,
    admin: &Admin,
) -> (Option<Hosting>, Arc<Floor>) {
    let hosting = match Place::of(workspace) {
        Some(place) => {
            let own = || Some((own(), admin.clone()));
            hosted(&place, (gateway, setup, workspace), own).await
        }
        None => None,
    };
    let floor = hosting.as_ref().map(|hosting| Arc::clone(hosting.floor()));
    let floor = floor.unwrap_or_else(|| Arc::new(Floor::of(own())));
    (hosting, floor)
}

/// Listens at the socket of the daemon, or at one for commands only if another process has that.
async fn hosted(
    daemon: &Place,
    (gateway, setup, workspace): (&Gateway, &Setup, &Workspace),
    own: impl Fn() -> Option<(Own, Admin)>,
) -> Option<Hosting> {
    let mut failure = None;
    for place in std::iter::once(daemon.clone()).chain(daemon.of_gateways()) {
        match Hosting::begin(&place, gateway, setup, workspace, own()).await {
            Ok(hosting) if place == *daemon => return Some(hosting),
            Ok(hosting) => {
                let holder = holder(daemon).await;
                workspace.printer.note(&format!(
                    "{holder} serves the clients of `cocode mcp serve`, and shares no servers with this gateway; \
                     to have them share, end it (`cocode mcp daemon stop`) and start this one before the next agent",
                ));
                return Some(hosting);
            }
            Err(error) => {
                let is_taken = matches!(error, UnixServerError::AlreadyRunning { .. });
                failure = Some(error);
                if !is_taken {
                    break;
                }
            }
        }
    }
    let failure = failure.as_ref().map(|error| chain(error));
    workspace.printer.warn(&format!(
        "`cocode mcp serve` and `cocode gateway status` cannot use this gateway: {}",
        failure.unwrap_or_default()
    ));
    None
}

async fn welcome(fronts: Option<&mut Hosting>) {
    match fronts {
        Some(fronts) => fronts.welcome().await,
        None => std::future::pending().await,
    }
}

/// Begins to drain calls, and sends fronts to the next daemon, which takes the place from here on. Ends
/// when they are gone, or have had their time.
fn part(gateway: &Gateway, fronts: Option<&mut Hosting>) -> impl Future<Output = ()> + use<> {
    gateway.begin_drain();
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
