//! Watches servers until somebody wants it to end: keeps them connected, follows the files of
//! configuration, and tells what happens.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cocode_client::{
    CallEnd, CallId, CatalogChange, ConnectionFacts, Event, Manager, QualifiedName, ServerName,
    ToolName,
};
use cocode_config::{Live, Reload};
use cocode_core::ServerSpec;
use serde::Serialize;

use super::shared::{Following, Shared};
use super::view::{Calls, Line, Outlook, View};
use super::{Chosen, wanted};
use crate::args::manage::StatusArgs;
use crate::error::{CliError, Exit};
use crate::interrupt::Interrupts;
use crate::manage::status::hurried;
use crate::managing::{self, Purpose, Setup};
use crate::printer::{Printer, print_json};
use crate::reach::Configured;
use crate::screen::Screen;
use crate::session::on_runtime;
use crate::text::plain;
use crate::workspace::{Workspace, told_after};

const MORE_TIME: &str = "--timeout";

/// A server that can be used, and what it says of itself if it is connected.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StartedServer<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<&'static str>,
}

impl<'a> StartedServer<'a> {
    fn new((name, facts): &'a (ServerName, Option<Arc<ConnectionFacts>>)) -> Self {
        let facts = facts.as_deref();
        Self {
            name: name.as_str(),
            server_name: facts.and_then(|facts| facts.server_name.as_deref()),
            server_version: facts.and_then(|facts| facts.server_version.as_deref()),
            revision: facts.map(|facts| facts.revision.as_str()),
        }
    }
}

/// Why a server is shown that runs nowhere.
const NO_DAEMON: &str = "no daemon runs; the next one is waited for";
const NOT_IN_DAEMON: &str = "nobody uses it in the daemon";

/// One thing that happened, as scripts see it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Happened<'a> {
    event: &'static str,
    /// Since the beginning.
    at_milliseconds: u128,
    #[serde(flatten)]
    what: What<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    State {
        server: &'a Line,
    },
    #[serde(rename_all = "camelCase")]
    Startup {
        ready: Vec<StartedServer<'a>>,
        failed: BTreeMap<&'a str, &'a str>,
        slow: Vec<&'a str>,
    },
    Catalog {
        added: Vec<&'a str>,
        removed: Vec<&'a str>,
        changed: Vec<&'a str>,
    },
    #[serde(rename_all = "camelCase")]
    Call {
        call: u64,
        server: &'a str,
        tool: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        outcome: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        milliseconds: Option<u128>,
        /// Size of the result.
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<usize>,
    },
    Configuration {
        changes: Vec<String>,
        problems: Vec<String>,
        kept: Vec<String>,
    },
    Missed {
        count: u64,
    },
}

pub(super) fn run(
    args: &StatusArgs,
    chosen: &Chosen,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let setup = Setup::new(Purpose::Watching, workspace)?;
    let outcome = on_runtime(workspace, watch(args, chosen, &setup, workspace));
    setup.end();
    outcome
}

async fn watch(
    args: &StatusArgs,
    chosen: &Chosen,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let connector = Arc::new(Configured::new(workspace)?);
    let manager = setup.manager(|options| {
        options.connector = Arc::<Configured>::clone(&connector);
        options.log_level = None;
    });
    let (watcher, mut changes) = workspace.watch()?;
    let (kept, mut following) = Following::begin(workspace).await;
    let printer = &*workspace.printer;
    let mut events = manager.events();
    let mut watch = Watch {
        args,
        chosen,
        lent: BTreeSet::new(),
        manager: &manager,
        connector: &connector,
        live: workspace.live(),
        kept,
        ready: Vec::new(),
        specs: Vec::new(),
        calls: BTreeMap::new(),
        keeps: false,
        screen: printer.shows_live().then(|| Screen::new(printer)),
        printer,
        begun: Instant::now(),
    };
    watch.apply().await;
    watch.tell_withheld()?;
    watch.tell_shared(&[])?;
    let exit = loop {
        watch.draw()?;
        if !printer.is_read() {
            break Exit::Ok;
        }
        tokio::select! {
            biased;
            exit = interrupts.next() => {
                printer.leave_line();
                break exit;
            }
            Some(()) = changes.recv() => {
                let reload = watch.live.reload();
                watch.reloaded(&reload)?;
                watch.apply().await;
            }
            kept = following.changed() => watch.shared(kept).await?,
            Some(event) = events.next() => watch.happened(&event)?,
        }
    };
    drop(watcher);
    managing::close(&manager, &mut interrupts).await;
    Ok(exit)
}

struct Watch<'a> {
    args: &'a StatusArgs,
    chosen: &'a Chosen,
    manager: &'a Manager,
    connector: &'a Configured,
    live: Live,
    /// What runs in the daemon.
    kept: Shared,
    /// Those that a daemon has or had: they are not started here, also when it ends.
    lent: BTreeSet<ServerName>,
    /// The servers that are wanted.
    ready: Vec<ServerSpec>,
    /// Those of them that are used here.
    specs: Vec<ServerSpec>,
    calls: BTreeMap<ServerName, Calls>,
    /// Something goes on as it was, because what is written now cannot be used.
    keeps: bool,
    screen: Option<Screen<'a>>,
    printer: &'a Printer,
    begun: Instant,
}

impl Watch<'_> {
    /// Makes what the configuration says now the servers of the manager.
    async fn apply(&mut self) {
        let chosen = self
            .live
            .specs()
            .filter(|spec| self.chosen.has(spec.name.as_str()));
        self.ready = chosen.cloned().collect();
        let lent = self.ready.iter();
        let lent = lent.filter(|spec| self.kept.known(spec).next().is_some());
        self.lent.extend(lent.map(|spec| spec.name.clone()));
        let own = self.ready.iter();
        let own = own.filter(|spec| !self.lent.contains(&spec.name));
        self.specs = own
            .map(|spec| match self.args.timeout {
                Some(limit) => hurried(spec, Some(limit)),
                None => spec.clone(),
            })
            .collect();
        self.connector.recall(&self.specs).await;
        let servers = self.chosen.servers(self.live.config());
        let wanted = wanted(servers, self.specs.iter().cloned());
        self.manager.apply(wanted).await;
    }

    fn view(&self) -> View {
        let outlook = Outlook {
            servers: self.chosen.servers(self.live.config()).collect(),
            specs: &self.specs,
            shared: self
                .ready
                .iter()
                .flat_map(|spec| self.kept.known(spec))
                .collect(),
            awaited: Some(if self.kept.is_there {
                NOT_IN_DAEMON
            } else {
                NO_DAEMON
            }),
            more_time: MORE_TIME,
            calls: Some(&self.calls),
        };
        View::of(&outlook, self.manager)
    }

    /// Something else runs in the daemon, or runs otherwise.
    async fn shared(&mut self, kept: Shared) -> Result<(), CliError> {
        let before = self.view();
        let before = before.named(|name| self.lent.contains(name));
        let before: Vec<String> = before.map(Line::told).collect();
        self.kept = kept;
        self.apply().await;
        self.tell_shared(&before)
    }

    /// Says how those are that run in the daemon, if that was not said before.
    fn tell_shared(&self, before: &[String]) -> Result<(), CliError> {
        for line in self.view().named(|name| self.lent.contains(name)) {
            let told = line.told();
            if !before.contains(&told) {
                self.say("state", What::State { server: line }, || told)?;
            }
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), CliError> {
        let view = self.view();
        match &mut self.screen {
            Some(screen) => screen.draw(&view.table(self.printer.paint())),
            None => Ok(()),
        }
    }

    /// Says how those servers are that nothing will happen to.
    fn tell_withheld(&mut self) -> Result<(), CliError> {
        let view = self.view();
        for status in self.manager.status() {
            let is_used = self.specs.iter().any(|spec| spec.name == status.name);
            if let Some(line) = view.line(&status.name).filter(|_| !is_used) {
                self.say("state", What::State { server: line }, || line.told())?;
            }
        }
        Ok(())
    }

    fn happened(&mut self, event: &Event) -> Result<(), CliError> {
        match event {
            Event::ServerStateChanged { server, .. } => {
                let view = self.view();
                // Of a server that was removed, the configuration says so, and the daemon of its own.
                let line = view.line(server);
                let Some(line) = line.filter(|_| !self.lent.contains(server)) else {
                    return Ok(());
                };
                self.say("state", What::State { server: line }, || line.told())
            }
            Event::StartupComplete {
                ready,
                failed,
                slow,
            } => self.started(ready, failed, slow),
            Event::CatalogChanged(change) => self.cataloged(change),
            Event::ToolCallStarted { call, server, tool } => {
                self.calls.entry(server.clone()).or_default().started += 1;
                let what = What::Call {
                    call: call.0,
                    server: server.as_str(),
                    tool: tool.as_str(),
                    outcome: None,
                    milliseconds: None,
                    bytes: None,
                };
                self.say("call-started", what, || {
                    format!("{server} is called: {tool}")
                })
            }
            Event::ToolCallFinished {
                call,
                server,
                tool,
                outcome,
                bytes,
                elapsed,
                ..
            } => self.finished((*call, server, tool), *outcome, (*elapsed, *bytes)),
            Event::Missed(count) => {
                let text = format!("{count} events were missed");
                self.say("missed", What::Missed { count: *count }, || text)
            }
            _ => Ok(()),
        }
    }

    fn cataloged(&self, change: &CatalogChange) -> Result<(), CliError> {
        let CatalogChange {
            added,
            removed,
            changed,
            ..
        } = change;
        if added.is_empty() && removed.is_empty() && changed.is_empty() {
            return Ok(());
        }
        let text = format!(
            "tools: {} new, {} gone, {} changed",
            added.len(),
            removed.len(),
            changed.len()
        );
        let [added, removed, changed] = [added, removed, changed]
            .map(|names| names.iter().map(QualifiedName::as_str).collect());
        let what = What::Catalog {
            added,
            removed,
            changed,
        };
        self.say("catalog", what, || text)
    }

    fn finished(
        &mut self,
        (call, server, tool): (CallId, &ServerName, &ToolName),
        outcome: CallEnd,
        (elapsed, bytes): (Duration, Option<usize>),
    ) -> Result<(), CliError> {
        let outcome = match outcome {
            CallEnd::Ok => "ok",
            CallEnd::ToolError => "tool-error",
            CallEnd::Failed(code) => code,
            CallEnd::Cancelled => "canceled",
            _ => "over",
        };
        let calls = self.calls.entry(server.clone()).or_default();
        calls.finished += 1;
        calls.failed += u64::from(outcome != "ok");
        let what = What::Call {
            call: call.0,
            server: server.as_str(),
            tool: tool.as_str(),
            outcome: Some(outcome),
            milliseconds: Some(elapsed.as_millis()),
            bytes,
        };
        self.say("call-finished", what, || {
            format!("a call of {server} ended: {tool}, {outcome}")
        })
    }

    fn started(
        &self,
        ready: &[(ServerName, Option<Arc<ConnectionFacts>>)],
        failed: &[(ServerName, String)],
        slow: &[ServerName],
    ) -> Result<(), CliError> {
        fn names(names: &[ServerName]) -> Vec<&str> {
            names.iter().map(ServerName::as_str).collect()
        }
        if ready.is_empty() && failed.is_empty() && slow.is_empty() {
            return Ok(());
        }
        let text = format!(
            "started: {} ready, {} failed, {} slow",
            ready.len(),
            failed.len(),
            slow.len()
        );
        let failed = failed.iter();
        let what = What::Startup {
            ready: ready.iter().map(StartedServer::new).collect(),
            failed: failed
                .map(|(name, why)| (name.as_str(), why.as_str()))
                .collect(),
            slow: names(slow),
        };
        self.say("startup", what, || text)
    }

    /// Says what became of a change of the configuration.
    fn reloaded(&mut self, reload: &Reload) -> Result<(), CliError> {
        let Reload {
            changes,
            settings_changed,
            kept,
            problems,
        } = reload;
        let changes = changes
            .iter()
            .filter(|change| self.chosen.has(&change.server));
        let mut changes: Vec<String> = changes.map(ToString::to_string).collect();
        if *settings_changed {
            changes.push("settings have changed; some count at the next start".into());
        }
        let problems = told_after(problems, kept);
        let kept: Vec<String> = kept.iter().map(ToString::to_string).collect();
        if kept.is_empty() && std::mem::take(&mut self.keeps) {
            changes.push("it is in order again".into());
        }
        self.keeps = !kept.is_empty();
        if !kept.is_empty() {
            self.manager.reject_configuration(problems.clone());
        }
        let lines = changes.iter().chain(&problems).chain(&kept);
        let lines: Vec<String> = lines.map(|line| format!("configuration: {line}")).collect();
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(screen) = &mut self.screen {
            let lines = lines.iter().map(|line| format!("{}\n", plain(line)));
            return screen.say(&lines.collect::<String>());
        }
        let what = What::Configuration {
            changes,
            problems,
            kept,
        };
        self.say("configuration", what, || lines.join("\n"))
    }

    /// Tells scripts, or people without a table.
    fn say(
        &self,
        event: &'static str,
        what: What<'_>,
        text: impl FnOnce() -> String,
    ) -> Result<(), CliError> {
        if self.printer.json() {
            let happened = Happened {
                event,
                at_milliseconds: self.begun.elapsed().as_millis(),
                what,
            };
            return print_json(self.printer, &happened);
        }
        if self.screen.is_some() {
            return Ok(());
        }
        let text = text();
        let lines = text.lines().map(|line| format!("{}\n", plain(line)));
        self.printer.out(lines.collect::<String>())
    }
}
