//! `cocode mcp status`: connects to all servers and shows how each of them is, as it happens at a
//! terminal, once otherwise, or for as long as somebody watches. Servers that are not ready are
//! shown, and never contacted.

mod shared;
pub(crate) mod view;
mod watch;

use std::collections::BTreeSet;
use std::time::Duration;

use cocode_client::{Manager, Wanted};
use cocode_config::{Config, Server, State};
use cocode_core::{DEFAULT_CONNECT_TIMEOUT, ServerSpec};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::status::hurried;
use crate::args::manage::StatusArgs;
use crate::configured::{self, warn_of_use};
use crate::error::{CliError, Exit};
use crate::fleet::{Fleet, Wishes, until};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::printer::print_json;
use crate::screen::Screen;
use crate::session::{interrupted, on_runtime};
use crate::workspace::Workspace;

use shared::Shared;
use view::{Outlook, View};

/// How long servers that are just starting in the daemon are waited for.
const SETTLED_WITHIN: Duration = DEFAULT_CONNECT_TIMEOUT;

pub(crate) fn run(args: &StatusArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let chosen = Chosen::of(args, config)?;
    if args.watch {
        return watch::run(args, &chosen, workspace);
    }
    warn_of_use(chosen.servers(config).map(|(_, server)| server), workspace)?;
    let setup = Setup::new(Purpose::OneThing, workspace)?;
    let outcome = on_runtime(workspace, once(args, &chosen, &setup, workspace));
    setup.end();
    outcome
}

/// The servers that somebody wants to know about: those that are named, or all.
#[derive(Debug)]
struct Chosen {
    named: BTreeSet<String>,
}

impl Chosen {
    fn of(args: &StatusArgs, config: &Config) -> Result<Self, CliError> {
        let named: BTreeSet<String> = args.names.iter().cloned().collect();
        let unknown = named
            .iter()
            .find(|name| !config.servers.contains_key(*name));
        match unknown {
            Some(unknown) => Err(configured::unknown(unknown, config)),
            None => Ok(Self { named }),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.named.is_empty() || self.named.contains(name)
    }

    fn servers<'a>(&'a self, config: &'a Config) -> impl Iterator<Item = (&'a str, &'a Server)> {
        let all = config
            .servers
            .iter()
            .map(|(name, one)| (name.as_str(), one));
        all.filter(|(name, _)| self.has(name))
    }
}

/// Connects, waits until it is known of everybody how they are, and shows that.
async fn once(
    args: &StatusArgs,
    chosen: &Chosen,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let printer = &workspace.printer;
    let mut interrupts = Interrupts::catch()?;
    let ready: Vec<&ServerSpec> = chosen
        .servers(config)
        .filter_map(|(_, server)| match &server.state {
            State::Ready(spec) => Some(&**spec),
            _ => None,
        })
        .collect();
    let kept = tokio::select! {
        biased;
        exit = interrupts.next() => return Err(interrupted(printer, exit)),
        kept = Shared::settled(workspace, &ready, args.timeout.unwrap_or(SETTLED_WITHIN)) => kept,
    };
    let specs: Vec<ServerSpec> = ready
        .iter()
        .filter(|spec| !kept.has(spec))
        .map(|spec| hurried(spec, args.timeout))
        .collect();
    let wishes = Wishes {
        request_timeout: args.timeout,
        more_time: "--timeout",
    };
    let fleet = Fleet::new(specs.clone(), wishes, setup, workspace).await?;
    let mut events = fleet.manager.events();
    let mut work: FuturesUnordered<_> = specs.iter().map(|spec| visit(spec, &fleet)).collect();
    let outlook = || Outlook {
        servers: chosen.servers(config).collect(),
        specs: &specs,
        shared: ready.iter().flat_map(|spec| kept.kept(spec)).collect(),
        more_time: "--timeout",
        awaited: None,
        calls: None,
    };
    let mut screen = printer.shows_live().then(|| Screen::new(printer));
    loop {
        if let Some(screen) = &mut screen {
            screen.draw(&View::of(&outlook(), &fleet.manager).table(printer.paint()))?;
        }
        tokio::select! {
            biased;
            exit = interrupts.next() => return Err(interrupted(printer, exit)),
            next = work.next() => if next.is_none() { break },
            _event = events.next() => {}
        }
    }
    drop(work);
    let outlook = outlook();
    let view = View::of(&outlook, &fleet.manager);
    let exit = view.exit(|name| chosen.named.contains(name));
    let shown = if printer.json() {
        print_json(printer, &view.report())
    } else if view.is_empty() {
        printer.note("no servers are configured: `cocode mcp add NAME -- COMMAND`");
        Ok(())
    } else {
        let table = view.table(printer.paint());
        let shown = match screen {
            Some(screen) => screen.finish(&table),
            None => printer.out(table),
        };
        view.advise(printer);
        shown
    };
    fleet.close(&mut interrupts).await;
    shown.map(|()| exit)
}

/// Connects to a server, and asks for its tools. What came of it, its manager knows.
async fn visit(spec: &ServerSpec, fleet: &Fleet) {
    let (manager, name) = (&fleet.manager, &spec.name);
    let Ok(session) = manager.session(name, until()).await else {
        return;
    };
    if session.server().capabilities.tools {
        // A list that cannot be had is shown as such.
        drop(manager.list_tools(name, until()).await);
    }
}

/// Every server of a configuration as a manager is to have it.
fn wanted<'a>(
    servers: impl Iterator<Item = (&'a str, &'a Server)>,
    specs: impl Iterator<Item = ServerSpec>,
) -> Vec<Wanted> {
    let withheld = servers.filter_map(|(name, server)| {
        let name = name.parse().ok()?;
        match &server.state {
            State::Disabled(_) => Some(Wanted::Disabled(name)),
            State::Pending => Some(Wanted::PendingTrust(name)),
            State::Ready(_) | State::Blocked { .. } | State::Invalid(_) => None,
        }
    });
    // What runs counts more than what is withheld under the same name.
    withheld.chain(specs.map(Wanted::from)).collect()
}

/// The number of tools that a manager knows of a server, and how many filters take away.
fn tools(manager: &Manager, name: &cocode_core::ServerName) -> Option<(usize, usize)> {
    let catalog = manager.catalog();
    let server = catalog.server(name)?;
    Some((server.tools.len(), server.filtered_tools))
}
