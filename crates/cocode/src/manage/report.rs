//! How a configured server is shown: to people in a line, to scripts as an object.

use cocode_config::{Candidate, Entry, Problem, Server, State, Trust};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::workspace::told;

/// A server, for scripts.
#[derive(Debug, Serialize)]
pub(crate) struct ServerReport<'a> {
    pub(crate) name: &'a str,
    pub(crate) state: &'static str,
    /// Why it is in this state, if that needs saying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(flatten)]
    pub(crate) entry: EntryReport<'a>,
}

/// An entry, for scripts.
#[derive(Debug, Serialize)]
pub(crate) struct EntryReport<'a> {
    pub(crate) scope: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) plugin: Option<&'a str>,
    pub(crate) file: String,
    pub(crate) line: Option<u32>,
    pub(crate) transport: &'static str,
    /// The command line, or the address, without what may be secret.
    pub(crate) server: String,
}

/// Something that is wrong, for scripts.
#[derive(Debug, Serialize)]
pub(crate) struct ProblemReport<'a> {
    severity: &'static str,
    file: String,
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> ServerReport<'a> {
    pub(crate) fn of(name: &'a str, server: &'a Server) -> Self {
        Self {
            name,
            state: server.state.as_str(),
            reason: reason(name, server),
            entry: EntryReport::of(&server.winner),
        }
    }
}

impl<'a> EntryReport<'a> {
    pub(crate) fn of(candidate: &'a Candidate) -> Self {
        let found = &candidate.found;
        Self {
            scope: candidate.scope.as_str(),
            plugin: candidate.plugin.as_ref().map(|plugin| plugin.name.as_str()),
            file: found.origin.file.display().to_string(),
            line: found.origin.line,
            transport: transport(&found.entry),
            server: found.entry.summary(),
        }
    }
}

impl<'a> ProblemReport<'a> {
    pub(crate) fn of(problem: &'a Problem) -> Self {
        let Problem {
            severity: _,
            origin,
            server,
            key,
            message,
            hint,
        } = problem;
        Self {
            severity: if problem.is_error() {
                "error"
            } else {
                "warning"
            },
            file: origin.file.display().to_string(),
            line: origin.line,
            server: server.as_deref(),
            key: key.as_deref(),
            message,
            hint: hint.as_deref(),
        }
    }
}

/// Why a server is not ready, in a sentence.
pub(crate) fn reason(name: &str, server: &Server) -> Option<String> {
    match &server.state {
        State::Ready(_) => None,
        State::Disabled(origin) => Some(format!("switched off in {origin}")),
        State::Pending => Some(pending(name, &server.winner)),
        State::Blocked { reason } => Some(reason.clone()),
        State::Invalid(problems) => {
            let told: Vec<String> = problems
                .iter()
                .filter(|problem| problem.is_error())
                .map(told)
                .collect();
            Some(told.join("; "))
        }
    }
}

/// Why an entry waits.
pub(crate) fn pending(name: &str, candidate: &Candidate) -> String {
    match &candidate.trust {
        Trust::Approved => "approved".to_owned(),
        Trust::New => format!("not approved: `cocode mcp trust {name}`"),
        Trust::Changed(_) => {
            format!("changed since you approved it: `cocode mcp trust {name}`")
        }
        Trust::Refused => format!("you refused it: `cocode mcp trust {name}` asks again"),
    }
}

/// The transport that an entry will use.
pub(crate) fn transport(entry: &Entry) -> &'static str {
    let url = entry.url.as_deref().unwrap_or_default();
    match entry.transport {
        Some(transport) => transport.as_str(),
        None if entry.command.is_some() => "stdio",
        None if url.starts_with("ws:") || url.starts_with("wss:") => "ws",
        None if url.starts_with("unix:") => "unix",
        None => "http",
    }
}

/// Everything an entry says, for scripts: what may be secret is left out, references are not.
pub(crate) fn entry_object(entry: &Entry) -> Value {
    let mut object = Map::new();
    for line in entry.lines() {
        let value = serde_json::from_str(&line.masked).unwrap_or(Value::Null);
        let mut keys: Vec<&str> = line.key.splitn(2, '.').collect();
        let last = keys.pop().unwrap_or_default();
        match keys.first() {
            None => {
                object.insert(last.to_owned(), value);
            }
            Some(outer) => {
                let inner = object
                    .entry((*outer).to_owned())
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(inner) = inner {
                    inner.insert(last.to_owned(), value);
                }
            }
        }
    }
    Value::Object(object)
}

/// Stands for what may be secret.
pub(crate) const HIDDEN: &str = "…";
