//! How all servers are at one moment: as a table for people, as one object for scripts, and as an
//! exit code.

mod text;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cocode_admin::model::Instance;
use cocode_client::{ListKind, Manager, ServerState, ServerStatus, StateKind};
use cocode_config::{Server, State};
use cocode_core::{Revision, ServerName, ServerSpec};
use cocode_gateway::Terms;
use serde::Serialize;
use serde_json::value::RawValue;

use super::super::report::reason;
use super::shared::SharedBy;
use super::tools;
use crate::error::{CliError, Exit};
use crate::fleet::{error_object, short};
use crate::printer::{Paint, Printer};
use crate::table::{Cell, table};
use crate::trouble::About;

/// What is looked at.
pub(super) struct Outlook<'a> {
    /// The servers as they are configured, by name.
    pub(super) servers: Vec<(&'a str, &'a Server)>,
    /// Those that are used, as they are used.
    pub(super) specs: &'a [ServerSpec],
    /// The option that allows more time.
    pub(super) more_time: &'static str,
    /// Those that run in the daemon.
    pub(super) shared: Vec<&'a Instance>,
    /// Why servers do not run that could.
    pub(super) awaited: Option<&'static str>,
    /// The calls of each server, where somebody counts them.
    pub(super) calls: Option<&'a BTreeMap<ServerName, Calls>>,
}

/// The calls of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Calls {
    pub(super) started: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
}

/// What a server in the daemon means for the whole, if it is not ready.
const IN_DAEMON: [(StateKind, Kind); 6] = [
    (StateKind::Starting, Kind::Awaited),
    (StateKind::Reconnecting, Kind::Awaited),
    (StateKind::Stopped, Kind::Good),
    (StateKind::NeedsAuth, Kind::NeedsAuth),
    (StateKind::NeedsClientRegistration, Kind::NeedsAuth),
    (StateKind::Failed, Kind::Failed),
];

/// What to know of a server that has nothing to do.
pub(crate) const STOPPED: &str = "it starts when it is needed";

/// All servers at one moment.
pub(super) struct View {
    lines: Vec<Line>,
    counts_calls: bool,
}

/// One server at one moment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Line {
    name: String,
    pub(crate) state: &'static str,
    /// Nobody waits for its start any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) slow: bool,
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) era: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ready_milliseconds: Option<u128>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hidden_tools: Option<usize>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) reconnects: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Calls>,
    /// How clients of the gateway share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sharing: Option<&'static str>,
    /// Why it is not simply shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sharing_reason: Option<String>,
    /// Who shares it in the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    daemon: Option<SharedBy>,
    /// Why it is not used, or what is to be known about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Box<RawValue>>,
    /// What is wrong, unless it is over.
    #[serde(skip)]
    pub(crate) trouble: Option<Box<CliError>>,
    #[serde(skip)]
    kind: Kind,
    #[serde(skip)]
    pub(crate) took: Option<Duration>,
    #[serde(skip)]
    last: String,
}

/// What a server means for the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Good,
    /// It may still come.
    Awaited,
    NeedsAuth,
    Failed,
    Off,
    Pending,
    Blocked,
    Invalid,
}

#[derive(Serialize)]
pub(super) struct Report<'a> {
    servers: &'a [Line],
}

impl View {
    pub(super) fn of(outlook: &Outlook<'_>, manager: &Manager) -> Self {
        let statuses = manager.status();
        // What is used counts, also where its file cannot be read any more.
        let used = outlook.specs.iter().filter_map(|spec| {
            let status = statuses.iter().find(|one| one.name == spec.name)?;
            let mut line = Line::used(status, spec, outlook.more_time, manager);
            line.calls = outlook
                .calls
                .map(|calls| calls.get(&status.name).copied().unwrap_or_default());
            Some(line)
        });
        let mut lines: Vec<Line> = used.collect();
        lines.extend(outlook.shared.iter().map(|server| Line::shared(server)));
        let withheld: Vec<Line> = outlook
            .servers
            .iter()
            .filter(|(name, _)| lines.iter().all(|line| line.name != *name))
            .map(|(name, server)| Line::withheld(name, server).awaited(outlook.awaited))
            .collect();
        lines.extend(withheld);
        lines.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            lines,
            counts_calls: outlook.calls.is_some(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub(super) fn report(&self) -> Report<'_> {
        Report {
            servers: &self.lines,
        }
    }

    pub(super) fn line(&self, name: &ServerName) -> Option<&Line> {
        self.lines.iter().find(|line| line.name == name.as_str())
    }

    /// Those that run in the daemon.
    pub(super) fn shared(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| line.daemon.is_some())
    }

    /// Those of these names.
    pub(super) fn named(&self, is_meant: impl Fn(&str) -> bool) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(move |line| is_meant(&line.name))
    }

    /// 0 if all are ready, 4 if nothing but credentials is missing, else 3. Servers that may not run
    /// count where they were asked for by name or are required.
    pub(super) fn exit(&self, is_named: impl Fn(&str) -> bool) -> Exit {
        let counts = |line: &&Line| line.required || is_named(&line.name);
        let has = |kind: Kind| self.lines.iter().any(|line| line.kind == kind);
        let held = |kind: Kind| {
            self.lines
                .iter()
                .filter(counts)
                .any(|line| line.kind == kind)
        };
        if has(Kind::Failed) || has(Kind::Awaited) {
            Exit::Server
        } else if held(Kind::Invalid) {
            Exit::Usage
        } else if has(Kind::NeedsAuth) {
            Exit::Auth
        } else if held(Kind::Pending) || held(Kind::Blocked) {
            Exit::Blocked
        } else {
            Exit::Ok
        }
    }

    /// Says where more is to be learned.
    pub(super) fn advise(&self, printer: &Printer) {
        let failed = self.lines.iter().filter(|line| line.kind == Kind::Failed);
        let failed: Vec<&str> = failed.map(|line| line.name.as_str()).collect();
        if !failed.is_empty() {
            printer.note(&format!(
                "`cocode mcp doctor {}` says more",
                failed.join(" ")
            ));
        }
        let terms = self
            .shared()
            .filter_map(|line| line.daemon.as_ref()?.terms.as_deref());
        for terms in terms.collect::<BTreeSet<&str>>() {
            printer.note(terms);
        }
        let mut names = BTreeSet::new();
        let again = self.shared().filter(|line| !names.insert(&line.name));
        for name in again.map(|line| &line.name).collect::<BTreeSet<_>>() {
            printer.note(&format!(
                "`{name}` is there more than once: agents give it different variables, or use it in \
                 different directories; `cocode mcp daemon status` shows who uses which"
            ));
        }
    }

    fn is_any_shared(&self) -> bool {
        self.shared().next().is_some()
    }

    pub(super) fn table(&self, paint: Paint) -> String {
        let mut head = vec!["NAME", "STATE", "ERA", "TRANSPORT", "TOOLS", "READY"];
        if self.is_any_shared() {
            head.push("SHARED");
        }
        if self.counts_calls {
            head.extend(["CALLS", "RECONNECTS"]);
        }
        head.push("LAST ERROR");
        let rows: Vec<Vec<Cell>> = self
            .lines
            .iter()
            .map(|line| line.cells(self.is_any_shared(), self.counts_calls))
            .collect();
        table(&head, &rows, paint)
    }
}

impl Line {
    fn new(name: &str, state: &'static str, kind: Kind) -> Self {
        Self {
            name: name.to_owned(),
            state,
            slow: false,
            required: false,
            era: None,
            revision: None,
            transport: None,
            server_name: None,
            server_version: None,
            pid: None,
            ready_milliseconds: None,
            tools: None,
            hidden_tools: None,
            reconnects: 0,
            calls: None,
            sharing: None,
            sharing_reason: None,
            daemon: None,
            reason: None,
            error: None,
            trouble: None,
            kind,
            took: None,
            last: String::new(),
        }
    }

    /// A server that is known, and not used.
    pub(crate) fn withheld(name: &str, server: &Server) -> Self {
        let (state, kind) = match &server.state {
            State::Disabled(_) => (StateKind::Disabled.as_str(), Kind::Off),
            State::Pending => (StateKind::PendingTrust.as_str(), Kind::Pending),
            State::Blocked { .. } => ("blocked", Kind::Blocked),
            State::Invalid(_) => ("invalid", Kind::Invalid),
            State::Ready(_) => (StateKind::Stopped.as_str(), Kind::Awaited),
        };
        let reason = reason(name, server);
        Self {
            required: server.winner.found.entry.required == Some(true),
            last: reason.clone().unwrap_or_default(),
            reason,
            ..Self::new(name, state, kind)
        }
    }

    /// Says why it does not run, if nothing else stands in its way.
    fn awaited(mut self, why: Option<&'static str>) -> Self {
        if let (Kind::Awaited, None, Some(why)) = (self.kind, &self.reason, why) {
            self.reason = Some(why.to_owned());
            why.clone_into(&mut self.last);
        }
        self
    }

    /// A server that the daemon has.
    fn shared(server: &Instance) -> Self {
        let (state, kind) = IN_DAEMON
            .into_iter()
            .find(|(state, _)| state.as_str() == server.state)
            .unwrap_or((StateKind::Ready, Kind::Good));
        let mut line = Self::new(&server.name, state.as_str(), kind);
        let revision = server.revision.as_deref();
        let revision = revision.and_then(|revision| revision.parse::<Revision>().ok());
        line.era = revision.map(|revision| revision.era().to_string());
        line.revision = revision.map(Revision::as_str);
        line.transport = server.transport.clone().map(Cow::Owned);
        line.pid = server.pid;
        line.tools = server.tools.and_then(|tools| tools.try_into().ok());
        line.reconnects = server.reconnects;
        line.ready_milliseconds = server.ready_milliseconds.map(u128::from);
        line.took = server.ready_milliseconds.map(Duration::from_millis);
        line.last = server.trouble.clone().unwrap_or_default();
        if state == StateKind::Stopped && line.last.is_empty() {
            STOPPED.clone_into(&mut line.last);
        }
        line.daemon = Some(SharedBy::of(server));
        line
    }

    /// A server as its manager has it.
    pub(crate) fn used(
        status: &ServerStatus,
        spec: &ServerSpec,
        more_time: &'static str,
        manager: &Manager,
    ) -> Self {
        let state = status.state.kind();
        let kind = match state {
            StateKind::Ready => Kind::Good,
            // It was there, idled for long enough, and will be there when it is needed.
            StateKind::Stopped if status.connection.is_some() => Kind::Good,
            StateKind::NeedsAuth | StateKind::NeedsClientRegistration => Kind::NeedsAuth,
            StateKind::Failed => Kind::Failed,
            _ => Kind::Awaited,
        };
        let mut line = Self::new(status.name.as_str(), state.as_str(), kind);
        line.slow = matches!(status.state, ServerState::Starting { slow: true });
        line.required = spec.required;
        line.reconnects = status.reconnects;
        if let Some(facts) = &status.connection {
            line.era = Some(facts.revision.era().to_string());
            line.revision = Some(facts.revision.as_str());
            line.transport = Some(facts.transport.into());
            line.server_name.clone_from(&facts.server_name);
            line.server_version.clone_from(&facts.server_version);
            line.pid = facts.pid.filter(|_| state == StateKind::Ready);
            line.took = Some(facts.time_to_ready);
            line.ready_milliseconds = Some(facts.time_to_ready.as_millis());
            if let Some((tools, hidden)) = tools(manager, &status.name) {
                line.tools = Some(tools);
                line.hidden_tools = Some(hidden);
            }
        }
        let about = About::configured(spec, more_time);
        let trouble = status.last_trouble.as_ref().map(|trouble| {
            let is_over = status.state.trouble().is_none();
            (about.trouble(trouble).error, is_over)
        });
        match trouble {
            Some((error, is_over)) => line.troubled(error, is_over),
            None => line.unlisted(manager, &status.name),
        }
        if state == StateKind::Stopped && line.last.is_empty() {
            STOPPED.clone_into(&mut line.last);
        }
        line
    }

    /// With another count of its tools than that of its manager: those that are shown, and those that
    /// are not.
    #[must_use]
    pub(crate) fn with_tools(mut self, shown: usize, hidden: usize) -> Self {
        if self.tools.is_some() {
            self.tools = Some(shown);
            self.hidden_tools = Some(hidden);
        }
        self
    }

    /// With how clients share it.
    #[must_use]
    pub(crate) fn with_terms(mut self, terms: Terms) -> Self {
        self.sharing = Some(terms.sharing.as_str());
        self.sharing_reason = terms.reason;
        self
    }

    /// Whether it can be used.
    pub(crate) fn is_good(&self) -> bool {
        self.kind == Kind::Good
    }

    /// A trouble that may be over is still worth knowing.
    fn troubled(&mut self, error: CliError, is_over: bool) {
        self.last = short(&error);
        if is_over {
            self.reason = Some(format!("before: {}", self.last));
            self.last = format!("({})", self.last);
        } else {
            self.error = error_object(&error);
            if error.exit == Exit::Auth && self.kind == Kind::Failed {
                self.kind = Kind::NeedsAuth;
            }
            self.trouble = Some(Box::new(error));
        }
    }

    /// A list that the server has and did not give.
    fn unlisted(&mut self, manager: &Manager, name: &ServerName) {
        let catalog = manager.catalog();
        let unlisted = catalog
            .server(name)
            .and_then(|server| server.unlisted.get(&ListKind::Tools));
        if let Some(why) = unlisted {
            self.tools = None;
            self.last = format!("tools could not be listed: {why}");
            self.reason = Some(self.last.clone());
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde wants"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
