//! What a scripted server does, as data: rules, steps and the behavior they override.
//!
//! A script travels as JSON to servers that are processes of their own.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::message::Message;
use crate::template::Template;

/// Which protocol revisions the server speaks where no rule says otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize` first.
    #[default]
    Legacy,
    /// 2026-07-28: `server/discover`, and `_meta` on every request.
    Modern,
    /// Both: a request with the modern `_meta` is modern, any other is legacy.
    Dual,
}

/// A server to be: a correct minimal MCP server, and rules that override what a test is about.
///
/// The builder methods read like the story of a test: [`on`](Self::on) opens a rule and the steps
/// after it belong to that rule, in order. The first rule that matches a message wins; a rule
/// without steps answers nothing, ever. A rule that waits (for a gate, a message or an answer) runs
/// beside the others; any other rule is done before the next message is read.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[must_use]
pub struct Script {
    pub(crate) era: Era,
    pub(crate) tools: Option<ToolPages>,
    pub(crate) rules: Vec<Rule>,
    pub(crate) tls: bool,
    pub(crate) process: ProcessHabits,
    pub(crate) http: HttpHabits,
    pub(crate) websocket: WebSocketHabits,
}

/// A generated tool list.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct ToolPages {
    pub(crate) count: usize,
    pub(crate) page_size: usize,
}

/// How the server behaves as a process.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ProcessHabits {
    pub(crate) ignore_sigterm: bool,
    pub(crate) stay_after_eof: bool,
}

/// How the server behaves over HTTP.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct HttpHabits {
    pub(crate) get_stream: bool,
    pub(crate) event_answers: bool,
    pub(crate) sessionless: bool,
    pub(crate) transport: HttpTransport,
}

/// Which of the two HTTP transports the server offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HttpTransport {
    /// One endpoint, `/mcp`.
    #[default]
    Streamable,
    /// 2024-11-05: `GET /sse` for what the server says, `POST /messages` for what it hears.
    TwoEndpoints,
}

/// How the server behaves in the opening handshake of a WebSocket.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct WebSocketHabits {
    pub(crate) no_subprotocol: bool,
    pub(crate) refuse_with: Option<Refusal>,
}

/// How an opening handshake is answered instead of being accepted.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rule {
    pub(crate) on: Trigger,
    /// Only the nth time, counted from one.
    pub(crate) nth: Option<u32>,
    /// Only in the nth process or connection, counted from one.
    pub(crate) run: Option<u32>,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trigger {
    /// The server started, or a connection was accepted.
    Start,
    /// A JSON-RPC message of this method came; `*` is any method.
    Method(String),
    /// An HTTP request of this verb came.
    Verb(String),
}

impl Trigger {
    pub(crate) fn matches(&self, message: &Message) -> bool {
        match self {
            Self::Method(wanted) => message
                .method()
                .is_some_and(|method| wanted == "*" || method == wanted),
            Self::Start | Self::Verb(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// One message: a line, a WebSocket text, an HTTP answer or an event.
    Line(Template),
    /// The same message this many times.
    Lines(usize, Template),
    /// Characters as they are, without the end of a line.
    Text(Template),
    /// Bytes as they are.
    Raw(Vec<u8>),
    /// This many bytes of the letter x.
    Fill(usize),
    /// What would have been done without the rule.
    AsUsual,
    /// A request of our own; goes on when it is answered.
    Ask {
        method: String,
        params: Template,
    },
    /// Goes on when the gate at this address opens.
    Hold(SocketAddr),
    /// Goes on when a later message of this method came.
    WaitFor(String),
    /// Goes on after this time.
    Delay(Duration),
    /// Reads nothing any more.
    StopReading,
    /// Drops the connection without a word.
    Disconnect,
    /// Resets the connection.
    Reset,
    Process(ProcessStep),
    Http(HttpStep),
    /// Closes a WebSocket with a code and a reason.
    Close {
        code: u16,
        reason: String,
    },
}

/// What only a process can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProcessStep {
    Exit(i32),
    Signal(i32),
    /// Writes this many bytes to stderr.
    Stderr(usize),
    /// Starts children that ignore SIGTERM.
    Fork,
}

/// What only HTTP can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HttpStep {
    /// A complete response.
    Respond {
        status: u16,
        headers: Vec<(String, String)>,
        body: Template,
    },
    /// The head of an event stream; what follows in the rule goes into the stream.
    Stream { headers: Vec<(String, String)> },
    /// One event.
    Event(SseEvent),
    /// From here on the stream is written in pieces of this many bytes.
    Pieces(usize),
    /// Leaves the connection open without another byte.
    Stall,
    /// Forwards what the test pushes, until the test closes the streams.
    Pushes,
}

/// One server-sent event; every field is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[must_use]
pub struct SseEvent {
    id: Option<String>,
    retry: Option<u64>,
    event: Option<String>,
    data: Option<Template>,
}

impl SseEvent {
    /// An event of type `message`, unless told otherwise, with this data.
    pub fn data(data: impl Into<Template>) -> Self {
        Self {
            data: Some(data.into()),
            ..Self::default()
        }
    }

    /// An event without data, to set an id or a retry time alone.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Sets the id.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the reconnection time in milliseconds.
    pub fn retry(mut self, milliseconds: u64) -> Self {
        self.retry = Some(milliseconds);
        self
    }

    /// Sets the event type.
    pub fn event(mut self, name: impl Into<String>) -> Self {
        self.event = Some(name.into());
        self
    }

    /// The event as it goes over the wire, with its data made by `fill`.
    pub(crate) fn render(&self, fill: impl Fn(&Template) -> String) -> String {
        let Self {
            id,
            retry,
            event,
            data,
        } = self;
        let mut text = String::new();
        let mut field = |name: &str, value: &str| {
            for line in value.split('\n') {
                text.extend([name, ": ", line, "\n"]);
            }
        };
        if let Some(id) = id {
            field("id", id);
        }
        if let Some(retry) = retry {
            field("retry", &retry.to_string());
        }
        if let Some(event) = event {
            field("event", event);
        }
        if let Some(data) = data {
            field("data", &fill(data));
        }
        text.push('\n');
        text
    }
}

impl Rule {
    /// Whether a step may take as long as the test likes.
    pub(crate) fn waits(&self) -> bool {
        let waits = |step: &Step| {
            matches!(
                step,
                Step::Ask { .. } | Step::Hold(_) | Step::WaitFor(_) | Step::Delay(_)
            )
        };
        self.steps.iter().any(waits)
    }
}

impl Script {
    /// Fails the test if a step cannot be done over HTTP.
    pub(crate) fn assert_fits_http(&self) {
        self.assert_no_step(|step| matches!(step, Step::Process(_) | Step::Close { .. }));
        let at_start = self.rules.iter().any(|rule| rule.on == Trigger::Start);
        assert!(!at_start, "an HTTP server says nothing before it is asked");
    }

    /// Fails the test if a step cannot be done over a unix socket.
    pub(crate) fn assert_fits_unix(&self) {
        let unfit =
            |step: &Step| matches!(step, Step::Process(_) | Step::Http(_) | Step::Close { .. });
        self.assert_no_step(unfit);
        assert!(!self.tls, "a unix socket knows no TLS");
    }

    /// Fails the test if a step cannot be done over a WebSocket.
    pub(crate) fn assert_fits_websocket(&self) {
        self.assert_no_step(|step| matches!(step, Step::Process(_) | Step::Http(_)));
    }

    /// Fails the test if a step cannot be done in a process.
    pub(crate) fn assert_fits_process(&self) {
        self.assert_no_step(|step| {
            matches!(
                step,
                Step::Http(_) | Step::Close { .. } | Step::Disconnect | Step::Reset
            )
        });
        assert!(!self.tls, "a process knows no TLS");
    }

    fn assert_no_step(&self, unfit: impl Fn(&Step) -> bool) {
        let mut steps = self.rules.iter().flat_map(|rule| &rule.steps);
        if let Some(step) = steps.find(|step| unfit(step)) {
            panic!("this kind of server cannot do this: {step:?}");
        }
    }
}
