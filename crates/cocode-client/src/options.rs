//! What a caller decides about a session.

use std::sync::Arc;
use std::time::Duration;

use cocode_wire::RawJson;

use crate::clock::Deadlines;
use crate::handler::{Handler, NoHandler};
use crate::progress::OnProgress;
use cocode_core::{Era, Protocol};

/// Decides how a session is made and how long things may take.
#[derive(Clone)]
pub struct SessionOptions {
    /// Who the server is told we are.
    pub client: ClientInfo,
    /// What to speak.
    pub protocol: Protocol,
    /// The era that this server was found to speak before, if the caller remembers. It is kept unless
    /// the server refuses it, or ends twice in a row when it is asked.
    pub known_era: Option<Era>,
    /// Serves the server's own requests and hears its notifications.
    pub handler: Arc<dyn Handler>,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// Whether a server that does not speak streamable HTTP is tried with HTTP+SSE.
    pub sse_fallback: bool,
    /// How often one request may ask for more input.
    pub max_input_rounds: usize,
    /// The least severe log messages the server should send, such as `info`.
    pub log_level: Option<String>,
    /// Whether a stateless server is asked to tell about changes of its lists.
    pub listen: bool,
}

/// Who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientInfo {
    /// The name of the program.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// The whole of making a session, the start of a process included.
    pub connect: Duration,
    /// How long a server of an unknown era may keep silent about it before it counts as legacy; at
    /// most half of what is left of `connect`.
    pub probe: Duration,
    /// A request that is no tool call.
    pub request: Duration,
    /// A tool call.
    pub call: Deadlines,
    /// A person's answer to a question of the server.
    pub answer: Duration,
}

/// How one request differs from the usual.
#[derive(Clone, Default)]
pub struct RequestOptions {
    /// How long it may take, instead of the session's own limits.
    pub deadlines: Option<Deadlines>,
    /// Is told about reports of progress.
    pub on_progress: Option<OnProgress>,
    /// A JSON object whose members go into the `_meta` of the request, such as a trace context.
    /// [`Session::request`](crate::Session::request) takes its parameters as they are, and leaves this alone.
    pub meta: Option<RawJson>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_mins(1),
            probe: Duration::from_secs(5),
            request: Duration::from_secs(30),
            call: Deadlines {
                idle: Duration::from_mins(1),
                total: Duration::from_hours(1),
            },
            answer: Duration::from_mins(10),
        }
    }
}

impl Default for ClientInfo {
    fn default() -> Self {
        Self {
            name: "cocode".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            client: ClientInfo::default(),
            protocol: Protocol::Auto,
            known_era: None,
            handler: Arc::new(NoHandler),
            timeouts: Timeouts::default(),
            sse_fallback: true,
            max_input_rounds: 10,
            log_level: None,
            listen: true,
        }
    }
}

impl std::fmt::Debug for SessionOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            client,
            protocol,
            known_era,
            handler: _,
            timeouts,
            sse_fallback,
            max_input_rounds,
            log_level,
            listen,
        } = self;
        formatter
            .debug_struct("SessionOptions")
            .field("client", client)
            .field("protocol", protocol)
            .field("known_era", known_era)
            .field("timeouts", timeouts)
            .field("sse_fallback", sse_fallback)
            .field("max_input_rounds", max_input_rounds)
            .field("log_level", log_level)
            .field("listen", listen)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RequestOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            deadlines,
            on_progress,
            meta,
        } = self;
        formatter
            .debug_struct("RequestOptions")
            .field("deadlines", deadlines)
            .field("on_progress", &on_progress.is_some())
            .field("meta", meta)
            .finish()
    }
}
