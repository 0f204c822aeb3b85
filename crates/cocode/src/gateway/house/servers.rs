//! Servers as the API shows them: what their entries say, how they are, and why.

use std::collections::{BTreeMap, BTreeSet};

use cocode_admin::Refusal;
use cocode_admin::model::{Reason, Server, ServerInfo, ServerState};
use cocode_client::{ListKind, Manager, StateKind};
use cocode_config::{Candidate, Trust};
use cocode_core::{Grant, Reach, ServerSpec};

use super::interior::Interior;
use super::refusing::{refusal, told, withheld};
use crate::admission::{Admission, Way};
use crate::configured;
use crate::error::CliError;
use crate::gateway::servers::{Present, line_of};
use crate::manage::overview::view::Line;
use crate::manage::report;
use crate::text::cut;

/// Lines of stderr that are shown of a server that failed.
const MAX_STDERR_LINES: usize = 20;
/// Characters of each of them.
const MAX_STDERR_CHARACTERS: usize = 500;
/// Characters of the sentence that says why a server is not ready.
const MAX_REASON_CHARACTERS: usize = 2000;
/// Characters of a description, and of what a server says of itself.
const MAX_TEXT_CHARACTERS: usize = 4000;

/// Stands for the scope of servers within this process.
const BUILT_IN: &str = "built-in";
/// Stands for the scope of a server that goes on as it was, though its file does not have it any more.
const KEPT: &str = "kept";

impl Interior {
    /// All servers, by name: those that are served, and those that the files name besides.
    pub(super) fn servers(&self) -> Vec<Server> {
        let present = self.present();
        let names = names(&present);
        self.costs.keep(|name| names.contains(name));
        let mut in_flight: BTreeMap<String, u64> = BTreeMap::new();
        for running in self.gateway.running() {
            let count = in_flight.entry(running.spec.name.to_string()).or_default();
            *count += running.status.in_flight as u64;
        }
        let shown = names.iter().filter_map(|name| {
            let mut server = self.shown(&present, name)?;
            server.in_flight = in_flight.get(name).copied().unwrap_or_default();
            Some(server)
        });
        shown.collect()
    }

    pub(super) fn server(&self, name: &str) -> Result<Server, Refusal> {
        let present = self.present();
        let shown = self.shown(&present, name);
        let mut server =
            shown.ok_or_else(|| refusal(configured::unknown(name, &present.config)))?;
        server.in_flight = self.in_flight(name);
        Ok(server)
    }

    /// Requests that wait for answers of a server, in whichever of its processes.
    pub(super) fn in_flight(&self, name: &str) -> u64 {
        let running = self.gateway.running().into_iter();
        let own = running.filter(|running| running.spec.name.as_str() == name);
        own.map(|running| running.status.in_flight as u64).sum()
    }

    /// One server, if there is such a server, but for the requests that it has.
    pub(super) fn shown(&self, present: &Present, name: &str) -> Option<Server> {
        let spec = present.spec(name);
        let entry = present.config.servers.get(name);
        let is_built_in = spec.is_some_and(|spec| present.built_in.contains(&spec.name));
        let candidate = entry.map(|entry| &entry.winner);
        let candidate = candidate.filter(|_| !is_built_in);
        let mut server = match (candidate, spec) {
            (Some(candidate), _) => of_candidate(name, candidate),
            (None, Some(spec)) => of_spec(spec, is_built_in),
            (None, None) => return None,
        };
        match (spec, entry) {
            (Some(spec), _) => {
                server.description = spec.description.as_deref().map(bounded);
                self.add_state(&mut server, spec);
            }
            // What is ready will be served with the first configuration that is applied.
            (None, Some(_)) if present.generation == 0 => server.state = ServerState::Starting,
            (None, Some(entry)) => {
                server.state = state_of(&Line::withheld(name, entry));
                let mut why = withheld(&present.config, name);
                if server.state == ServerState::Stopped {
                    server.state = ServerState::Disabled;
                }
                if server.state == ServerState::Pending && entry.winner.trust == Trust::Refused {
                    server.state = ServerState::Rejected;
                    why = rejected(name, why);
                }
                server.reason = Some(reason_of(&why));
            }
            (None, None) => {}
        }
        Some(server)
    }

    /// How a server is that is served.
    fn add_state(&self, server: &mut Server, spec: &ServerSpec) {
        let line = line_of(&self.view, &*self.rules, spec);
        let manager = self.view.manager(&spec.name);
        let (Some(line), Some(manager)) = (line, manager) else {
            // It is about to be.
            server.state = ServerState::Starting;
            return;
        };
        server.state = state_of(&line);
        server.reason = why(&line);
        server.era = line.era;
        server.revision = line.revision.map(str::to_owned);
        if let Some(transport) = line.transport {
            server.transport = transport.into_owned();
        }
        server.tools = line.tools.unwrap_or_default() as u64;
        server.hidden_tools = line.hidden_tools.unwrap_or_default() as u64;
        server.pid = line.pid;
        server.ready_milliseconds = line.took.map(|took| took.as_secs_f64() * 1000.0);
        server.reconnects = line.reconnects.into();
        if let Some(sharing) = line.sharing {
            sharing.clone_into(&mut server.sharing);
        }
        server.sharing_reason = line.sharing_reason;
        Self::add_connection(server, &manager);
        self.add_lists(server, spec, &manager);
        self.add_login(server, spec);
    }

    fn add_connection(server: &mut Server, manager: &Manager) {
        let status = manager.status().into_iter().next();
        let Some(facts) = status
            .as_ref()
            .and_then(|status| status.connection.as_ref())
        else {
            return;
        };
        server.server_info = facts.server_name.as_deref().map(|name| ServerInfo {
            name: bounded(name),
            version: bounded(facts.server_version.as_deref().unwrap_or_default()),
            title: facts.server_title.as_deref().map(bounded),
        });
        let is_ready = status
            .as_ref()
            .is_some_and(|status| status.state.kind() == StateKind::Ready);
        server.uptime_seconds = is_ready.then(|| facts.ready_at.elapsed().as_secs());
    }

    fn add_lists(&self, server: &mut Server, spec: &ServerSpec, manager: &Manager) {
        let catalog = manager.catalog();
        let Some(listed) = catalog.server(&spec.name) else {
            return;
        };
        let known =
            |kind: ListKind, count: usize| listed.known.contains(&kind).then_some(count as u64);
        server.resources = known(ListKind::Resources, listed.resources.len());
        server.prompts = known(ListKind::Prompts, listed.prompts.len());
        let costs = self.costs.of(&spec.name, &catalog);
        let seen = listed.tools.iter().filter(|tool| self.is_seen(spec, tool));
        server.tokens = seen.map(|tool| costs.tokens(&tool.name)).sum();
    }

    fn add_login(&self, server: &mut Server, spec: &ServerSpec) {
        let Reach::Remote(remote) = &spec.reach else {
            return;
        };
        let Way::OAuth(_) = Way::of(remote) else {
            return;
        };
        let admissions = self.workspace.admissions().ok();
        let identity = admissions.and_then(|admissions| match admissions.of(spec)? {
            Admission::OAuth(credentials) => credentials.identity(),
            Admission::Helper(_) => None,
        });
        let is_signed_in = identity.map(|account| !account.is_empty());
        server.is_signed_in = Some(is_signed_in.unwrap_or_default());
        // A server that answers strangers has nothing to gain from a sign-in, and one that gets its
        // tokens without anybody needs none.
        let answers_strangers =
            server.state == ServerState::Ready && server.is_signed_in == Some(false);
        server.can_login = remote.oauth.grant == Grant::AuthorizationCode && !answers_strangers;
    }
}

/// The names of all servers.
pub(super) fn names(present: &Present) -> BTreeSet<String> {
    let served = present.specs.iter().map(|spec| spec.name.to_string());
    served
        .chain(present.config.servers.keys().cloned())
        .collect()
}

/// A server of which nothing but its place is known.
fn of_candidate(name: &str, candidate: &Candidate) -> Server {
    let found = &candidate.found;
    Server {
        file: Some(found.origin.file.display().to_string()),
        description: found.entry.description.as_deref().map(bounded),
        ..unknown(
            name,
            report::transport(&found.entry),
            found.entry.summary(),
            candidate.scope.as_str(),
        )
    }
}

/// The same of one that no file has.
fn of_spec(spec: &ServerSpec, is_built_in: bool) -> Server {
    let (transport, target) = match &spec.reach {
        Reach::Program(program) => ("stdio", entry_of(&program.command, &program.args).summary()),
        Reach::Remote(remote) => {
            let entry = cocode_config::Entry {
                url: Some(remote.url.clone()),
                ..cocode_config::Entry::default()
            };
            (report::transport(&entry), entry.summary())
        }
    };
    let scope = if is_built_in { BUILT_IN } else { KEPT };
    Server {
        is_built_in,
        ..unknown(spec.name.as_str(), transport, target, scope)
    }
}

fn entry_of(command: &str, args: &[String]) -> cocode_config::Entry {
    cocode_config::Entry {
        command: Some(command.to_owned()),
        args: args.to_vec(),
        ..cocode_config::Entry::default()
    }
}

fn unknown(name: &str, transport: &str, target: String, scope: &str) -> Server {
    Server {
        name: name.to_owned(),
        state: ServerState::Stopped,
        reason: None,
        transport: transport.to_owned(),
        target,
        scope: scope.to_owned(),
        file: None,
        description: None,
        era: None,
        revision: None,
        server_info: None,
        tools: 0,
        hidden_tools: 0,
        resources: None,
        prompts: None,
        tokens: 0,
        sharing: cocode_gateway::Sharing::Shared.as_str().to_owned(),
        sharing_reason: None,
        pid: None,
        uptime_seconds: None,
        ready_milliseconds: None,
        reconnects: 0,
        in_flight: 0,
        can_login: false,
        is_signed_in: None,
        is_built_in: false,
    }
}

/// The state of a server in the words of the API.
fn state_of(line: &Line) -> ServerState {
    let is = |kind: StateKind| line.state == kind.as_str();
    if is(StateKind::Ready) {
        ServerState::Ready
    } else if is(StateKind::NeedsClientRegistration) {
        ServerState::NeedsClientRegistration
    } else if is(StateKind::NeedsAuth) {
        ServerState::NeedsAuth
    } else if is(StateKind::Starting) && line.slow {
        ServerState::Slow
    } else if is(StateKind::Starting) {
        ServerState::Starting
    } else if is(StateKind::Reconnecting) {
        ServerState::Retrying
    } else if is(StateKind::Failed) {
        ServerState::Failed
    } else if is(StateKind::Disabled) {
        ServerState::Disabled
    } else if is(StateKind::PendingTrust) {
        ServerState::Pending
    } else {
        let others = [ServerState::Blocked, ServerState::Invalid];
        let other = others
            .into_iter()
            .find(|state| state.as_str() == line.state);
        other.unwrap_or(ServerState::Stopped)
    }
}

/// Why a server does not run that somebody has decided about.
fn rejected(name: &str, why: CliError) -> CliError {
    CliError {
        message: format!(
            "server `{name}` was rejected, and is not asked about until its entry changes"
        ),
        hints: vec![format!(
            "approve it after all in Trust, or with `cocode mcp trust {name}`"
        )],
        ..why
    }
}

/// Why a server that is served is not as it should be.
fn why(line: &Line) -> Option<Reason> {
    if let Some(trouble) = &line.trouble {
        return Some(reason_of(trouble));
    }
    // A list that it has and did not give.
    let message = line.reason.as_ref().filter(|_| line.tools.is_none())?;
    Some(Reason {
        code: "unexpected-answer".to_owned(),
        message: cut(message, MAX_REASON_CHARACTERS),
        hints: Vec::new(),
        stderr: Vec::new(),
    })
}

/// What is wrong, with what the server last wrote.
fn reason_of(error: &CliError) -> Reason {
    let noise = error.noise.iter().chain(&error.stderr);
    let lines: Vec<String> = noise.map(|line| cut(line, MAX_STDERR_CHARACTERS)).collect();
    let last = lines.len().saturating_sub(MAX_STDERR_LINES);
    Reason {
        code: error.code.to_owned(),
        message: cut(&told(error), MAX_REASON_CHARACTERS),
        hints: error.hints.clone(),
        stderr: lines.into_iter().skip(last).collect(),
    }
}

fn bounded(text: &str) -> String {
    cut(text, MAX_TEXT_CHARACTERS)
}
