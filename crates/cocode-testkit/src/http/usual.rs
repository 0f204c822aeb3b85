//! A correct minimal MCP server over HTTP: the steps for a request that no rule is about.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::defaults::{self, Defaults, Reaction};
use crate::http::request::HttpRequest;
use crate::message::Message;
use crate::script::{Era, HttpStep, HttpTransport, Script, SseEvent, Step};
use crate::template::Template;

const HEADER_MISMATCH: i64 = -32020;
const SESSION_HEADER: &str = "Mcp-Session-Id";

/// The server behind the rules, with its sessions.
#[derive(Debug)]
pub(crate) struct Usual {
    script: Script,
    defaults: Defaults,
    last_session: AtomicU32,
    sessions: Mutex<BTreeSet<String>>,
}

impl Usual {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            script: script.clone(),
            defaults: Defaults::new(script),
            last_session: AtomicU32::new(0),
            sessions: Mutex::default(),
        }
    }

    /// What to do about a request.
    pub(crate) fn steps(&self, request: &HttpRequest, message: &Message) -> Vec<Step> {
        let (path, _) = request.path.split_once('?').unwrap_or((&request.path, ""));
        match (self.script.http.transport, request.method.as_str(), path) {
            (HttpTransport::Streamable, "POST", "/mcp") => self.post(request, message),
            (HttpTransport::Streamable, "GET", "/mcp") => self.get(request),
            (HttpTransport::Streamable, "DELETE", "/mcp") => self.delete(request),
            (HttpTransport::TwoEndpoints, "GET", "/sse") => {
                let endpoint =
                    Template::literal(&format!("/messages?session={}", self.open_session()));
                let event = SseEvent::data(endpoint).event("endpoint");
                vec![
                    stream(),
                    Step::Http(HttpStep::Event(event)),
                    Step::Http(HttpStep::Pushes),
                ]
            }
            (HttpTransport::TwoEndpoints, "POST", "/messages") => {
                match self.defaults.react(message) {
                    Reaction::Nothing => vec![status(202)],
                    Reaction::Answer { text, .. } | Reaction::Subscribed { text } => {
                        vec![line(&text)]
                    }
                }
            }
            (_, _, "/mcp" | "/sse" | "/messages") => vec![status(405)],
            _ => vec![status(404)],
        }
    }

    /// The session that a stream or an answer belongs to; all others have none in common.
    pub(crate) fn session_of(request: &HttpRequest) -> String {
        let in_query = request
            .path
            .split_once("session=")
            .map(|(_, session)| session);
        in_query
            .or_else(|| request.header(SESSION_HEADER))
            .unwrap_or_default()
            .to_owned()
    }

    /// The headers of an answer to this message that a rule leaves to us.
    pub(crate) fn answer_headers(&self, message: &Message) -> Vec<(String, String)> {
        let with_session = message.is("initialize")
            && self.script.http.transport == HttpTransport::Streamable
            && !self.script.http.sessionless
            && self.script.era != Era::Modern;
        let session = with_session.then(|| (SESSION_HEADER.to_owned(), self.open_session()));
        session.into_iter().collect()
    }

    /// Whether answers are event streams even if JSON would do.
    pub(crate) fn answers_with_events(&self) -> bool {
        self.script.http.event_answers
    }

    /// Whether answers go to the `GET` stream of the session.
    pub(crate) fn answers_elsewhere(&self) -> bool {
        self.script.http.transport == HttpTransport::TwoEndpoints
    }

    /// Forgets all sessions, as a restarted server does.
    pub(crate) fn expire_sessions(&self) {
        self.sessions().clear();
    }

    /// The newest session.
    pub(crate) fn newest_session(&self) -> String {
        format!("session-{}", self.last_session.load(Ordering::SeqCst))
    }

    fn post(&self, request: &HttpRequest, message: &Message) -> Vec<Step> {
        let accept = request.header("Accept").unwrap_or_default();
        if !accept.contains("application/json") || !accept.contains("text/event-stream") {
            return vec![status(406)];
        }
        if !request.json().is_object() {
            return vec![refusal(message, 400, -32700, "not a JSON object")];
        }
        let modern = self.defaults.is_modern(message);
        let problem = if modern {
            check_headers(request, message).map(|problem| (400, HEADER_MISMATCH, problem))
        } else if message.is("initialize") {
            None
        } else {
            self.check_session(request)
                .map(|(status, problem)| (status, -32000, problem))
        };
        if let Some((status, code, problem)) = problem {
            return vec![refusal(message, status, code, &problem)];
        }
        match self.defaults.react(message) {
            Reaction::Nothing => vec![status(202)],
            Reaction::Answer {
                text,
                code: Some(code),
            } if modern => {
                let status = if code == -32601 { 404 } else { 400 };
                vec![respond(status, &text)]
            }
            Reaction::Answer { text, .. } => vec![line(&text)],
            Reaction::Subscribed { text } => {
                vec![stream(), line(&text), Step::Http(HttpStep::Pushes)]
            }
        }
    }

    fn get(&self, request: &HttpRequest) -> Vec<Step> {
        if self.script.era == Era::Modern || !self.script.http.get_stream {
            return vec![status(405)];
        }
        match self.check_session(request) {
            Some((code, _)) => vec![status(code)],
            None => vec![stream(), Step::Http(HttpStep::Pushes)],
        }
    }

    fn delete(&self, request: &HttpRequest) -> Vec<Step> {
        if self.script.era == Era::Modern {
            return vec![status(405)];
        }
        if let Some((code, _)) = self.check_session(request) {
            return vec![status(code)];
        }
        self.sessions().remove(&Self::session_of(request));
        vec![status(200)]
    }

    /// The status and the reason for refusing a request because of its session.
    fn check_session(&self, request: &HttpRequest) -> Option<(u16, String)> {
        if self.script.http.sessionless {
            return None;
        }
        match request.header(SESSION_HEADER) {
            None => Some((400, format!("{SESSION_HEADER} is missing"))),
            Some(session) if self.sessions().contains(session) => None,
            Some(session) => Some((404, format!("no session {session}"))),
        }
    }

    fn open_session(&self) -> String {
        self.last_session.fetch_add(1, Ordering::SeqCst);
        let session = self.newest_session();
        self.sessions().insert(session.clone());
        session
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong with the headers of a modern request.
fn check_headers(request: &HttpRequest, message: &Message) -> Option<String> {
    let method = message.method()?;
    let params = message.params();
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        _ => None,
    };
    let version = defaults::version_in_meta(message);
    let wanted = [
        ("MCP-Protocol-Version", version.as_deref()),
        ("Mcp-Method", Some(method)),
        ("Mcp-Name", name),
    ];
    wanted.into_iter().find_map(|(header, wanted)| {
        let (wanted, sent) = (wanted?, request.header(header));
        // An encoded value stands for text that a header cannot hold.
        let encoded = sent.is_some_and(|sent| sent.starts_with("=?base64?"));
        let fits = sent == Some(wanted) || encoded;
        (!fits).then(|| format!("{header} is {sent:?}, but the body says {wanted:?}"))
    })
}

fn line(text: &str) -> Step {
    Step::Line(Template::literal(text))
}

fn stream() -> Step {
    Step::Http(HttpStep::Stream {
        headers: Vec::new(),
    })
}

fn status(status: u16) -> Step {
    Step::Http(HttpStep::Respond {
        status,
        headers: Vec::new(),
        body: Template::literal(""),
    })
}

fn respond(status: u16, text: &str) -> Step {
    let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    Step::Http(HttpStep::Respond {
        status,
        headers,
        body: Template::literal(text),
    })
}

fn refusal(message: &Message, status: u16, code: i64, problem: &str) -> Step {
    respond(status, &defaults::error_text(message, code, problem))
}
