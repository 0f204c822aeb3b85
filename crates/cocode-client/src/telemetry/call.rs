//! One call in the traces and metrics, from its beginning to whatever became of it.

use std::fmt::{self, Display};
use std::sync::Arc;

use cocode_core::Revision;
use cocode_wire::{RpcError, Target, code};
use opentelemetry::global::BoxedSpan;
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use tokio::time::Instant;

use super::instruments::attribute;
use super::{Shared, Telemetry, TraceContext};

const METHOD: &str = "tools/call";
const OPERATION: &str = "execute_tool";
/// What becomes of a call that nobody waits for any more.
const CANCELLED: &str = "cancelled";
/// Names in spans are cut to this: they come from servers.
const MAX_SPAN_NAME_BYTES: usize = 256;

/// What is known about a call beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallFacts {
    /// How the server is reached.
    pub transport: CallTransport,
    /// What is spoken with it, as far as that is known.
    pub revision: Option<Revision>,
}

/// How a server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallTransport {
    /// The standard streams of a process.
    Stdio,
    /// HTTP of either kind.
    Http,
    /// A WebSocket.
    WebSocket,
    /// A unix socket.
    Unix,
    /// Anything else, such as a stream in this process.
    Other,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallOutcomeKind {
    /// A result.
    Ok,
    /// A result that says that the tool failed.
    ToolError,
    /// No result.
    Error {
        /// What happened, as in [`ERROR_CODES`](crate::ERROR_CODES).
        code: &'static str,
        /// The code of the server's JSON-RPC error, if it answered with one.
        rpc_code: Option<i64>,
    },
}

/// A call under way. Dropped without [`CallTrace::finish`], it counts as cancelled.
#[must_use = "a call that is dropped counts as cancelled"]
pub struct CallTrace {
    parent: Option<TraceContext>,
    running: Option<Box<Running>>,
}

struct Running {
    shared: Arc<Shared>,
    span: Option<BoxedSpan>,
    begun: Instant,
    server: Arc<str>,
    tool: Arc<str>,
    facts: CallFacts,
}

/// The span for the logs of one call.
pub fn call_span(server: &str, tool: &str, call: impl Display) -> tracing::Span {
    tracing::debug_span!("call", server, tool, %call)
}

impl Telemetry {
    /// Begins to record a call of a tool. Its span is a child of `parent`, or else of the span that
    /// OpenTelemetry knows as the current one.
    pub fn begin_call(
        &self,
        server: &str,
        tool: &str,
        facts: CallFacts,
        parent: Option<&TraceContext>,
    ) -> CallTrace {
        let running = self.0.as_ref().map(|shared| {
            let span = shared.begin_span(server, tool, facts, parent);
            let (server, tool) = shared.names.tool(server, tool);
            let running = Running {
                shared: Arc::clone(shared),
                span,
                begun: Instant::now(),
                server,
                tool,
                facts,
            };
            running.count_active(1);
            Box::new(running)
        });
        let parent = parent.cloned();
        CallTrace { parent, running }
    }
}

impl Shared {
    fn begin_span(
        &self,
        server: &str,
        tool: &str,
        facts: CallFacts,
        parent: Option<&TraceContext>,
    ) -> Option<BoxedSpan> {
        let tracer = self.tracer.as_ref()?;
        let (server, tool) = (cut(server), cut(tool));
        let mut attributes = vec![
            KeyValue::new(attribute::METHOD, METHOD),
            KeyValue::new(attribute::OPERATION, OPERATION),
            KeyValue::new(attribute::SERVER, server.to_owned()),
            KeyValue::new(attribute::TOOL, tool.to_owned()),
        ];
        facts.push_attributes(&mut attributes);
        let builder = SpanBuilder::from_name(format!("{METHOD} {tool}"))
            .with_kind(SpanKind::Client)
            .with_attributes(attributes);
        let context = match parent.and_then(TraceContext::span_context) {
            Some(parent) => Context::new().with_remote_span_context(parent),
            None => Context::current(),
        };
        Some(tracer.build_with_context(builder, &context))
    }
}

impl CallTrace {
    /// The trace context that the server gets: that of the call's own span, or that of whoever
    /// asked for the call where there is no span.
    pub fn context(&self) -> Option<TraceContext> {
        let span = self.running.as_ref().and_then(|it| it.span.as_ref());
        let own = span.map(BoxedSpan::span_context);
        match own.filter(|own: &&SpanContext| own.is_valid()) {
            Some(own) => Some(TraceContext::of_span(own, self.parent.as_ref())),
            None => self.parent.clone(),
        }
    }

    /// Says what is spoken with the server, where that was not known at the beginning.
    pub fn set_revision(&mut self, revision: Revision) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.facts.revision = Some(revision);
        if let Some(span) = &mut running.span {
            span.set_attribute(version(revision));
        }
    }

    /// Says what became of the call.
    pub fn finish(mut self, outcome: CallOutcomeKind) {
        if let Some(running) = self.running.take() {
            running.record(outcome);
        }
    }
}

impl Drop for CallTrace {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.record(CallOutcomeKind::Error {
                code: CANCELLED,
                rpc_code: None,
            });
        }
    }
}

impl fmt::Debug for CallTrace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CallTrace")
            .field("is_recorded", &self.running.is_some())
            .field("parent", &self.parent)
            .finish_non_exhaustive()
    }
}

impl Running {
    fn count_active(&self, change: i64) {
        if let Some(instruments) = &self.shared.instruments {
            let attributes = [KeyValue::new(attribute::SERVER, Arc::clone(&self.server))];
            instruments.active.add(change, &attributes);
        }
    }

    fn record(mut self, outcome: CallOutcomeKind) {
        self.count_active(-1);
        self.measure(outcome);
        let Some(span) = &mut self.span else { return };
        span.set_attribute(KeyValue::new(attribute::OUTCOME, outcome.as_str()));
        if let CallOutcomeKind::Error {
            rpc_code: Some(code),
            ..
        } = outcome
        {
            span.set_attribute(KeyValue::new(attribute::STATUS_CODE, code.to_string()));
        }
        if let Some(kind) = outcome.error_type() {
            span.set_attribute(KeyValue::new(attribute::ERROR_TYPE, kind));
            span.set_status(Status::error(outcome.as_str()));
        }
        span.end();
    }

    fn measure(&self, outcome: CallOutcomeKind) {
        let Some(instruments) = &self.shared.instruments else {
            return;
        };
        let mut attributes = Vec::with_capacity(10);
        attributes.extend([
            KeyValue::new(attribute::SERVER, Arc::clone(&self.server)),
            KeyValue::new(attribute::TOOL, Arc::clone(&self.tool)),
            KeyValue::new(attribute::OUTCOME, outcome.as_str()),
        ]);
        instruments.calls.add(1, &attributes);
        attributes.extend([
            KeyValue::new(attribute::METHOD, METHOD),
            KeyValue::new(attribute::OPERATION, OPERATION),
        ]);
        self.facts.push_attributes(&mut attributes);
        if let Some(kind) = outcome.bounded_error_type() {
            attributes.push(KeyValue::new(attribute::ERROR_TYPE, kind));
        }
        let seconds = self.begun.elapsed().as_secs_f64();
        instruments.duration.record(seconds, &attributes);
    }
}

impl CallFacts {
    fn push_attributes(self, attributes: &mut Vec<KeyValue>) {
        let Self {
            transport,
            revision,
        } = self;
        let (carrier, protocol) = match transport {
            CallTransport::Stdio => (Some("pipe"), None),
            CallTransport::Http => (Some("tcp"), Some("http")),
            CallTransport::WebSocket => (Some("tcp"), Some("websocket")),
            CallTransport::Unix => (Some("unix"), None),
            CallTransport::Other => (None, None),
        };
        let named = |name| move |value: &'static str| KeyValue::new(name, value);
        attributes.extend(carrier.map(named(attribute::TRANSPORT)));
        attributes.extend(protocol.map(named(attribute::PROTOCOL)));
        attributes.extend(revision.map(version));
    }
}

impl CallTransport {
    /// How this target is reached.
    pub fn of(target: &Target) -> Self {
        match target {
            Target::Stdio(_) => Self::Stdio,
            Target::Http(_) | Target::LegacySse(_) => Self::Http,
            Target::WebSocket(_) => Self::WebSocket,
            Target::Unix(_) => Self::Unix,
            _ => Self::Other,
        }
    }
}

impl CallOutcomeKind {
    /// The server answered with an error.
    pub fn refused(code: &'static str, error: &RpcError) -> Self {
        let rpc_code = Some(error.code);
        Self::Error { code, rpc_code }
    }

    /// There is no answer.
    pub fn failed(code: &'static str) -> Self {
        let rpc_code = None;
        Self::Error { code, rpc_code }
    }

    /// One word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::Error { code, .. } => code,
        }
    }

    /// What the semantic conventions call its kind: the server's own code where there is one.
    fn error_type(self) -> Option<String> {
        match self {
            Self::Ok => None,
            Self::ToolError => Some(self.as_str().to_owned()),
            Self::Error { code, rpc_code } => {
                Some(rpc_code.map_or_else(|| code.to_owned(), |code| code.to_string()))
            }
        }
    }

    /// The same with a limited number of values: servers may answer with any code.
    fn bounded_error_type(self) -> Option<&'static str> {
        match self {
            Self::Ok => None,
            Self::ToolError | Self::Error { rpc_code: None, .. } => Some(self.as_str()),
            Self::Error {
                rpc_code: Some(code),
                ..
            } => Some(match code {
                code::PARSE_ERROR => "-32700",
                code::INVALID_REQUEST => "-32600",
                code::METHOD_NOT_FOUND => "-32601",
                code::INVALID_PARAMS => "-32602",
                code::INTERNAL_ERROR => "-32603",
                code::RESOURCE_NOT_FOUND => "-32002",
                code::HEADER_MISMATCH => "-32020",
                code::MISSING_CLIENT_CAPABILITY => "-32021",
                code::UNSUPPORTED_PROTOCOL_VERSION => "-32022",
                code::URL_ELICITATION_REQUIRED => "-32042",
                _ => "_OTHER",
            }),
        }
    }
}

fn version(revision: Revision) -> KeyValue {
    KeyValue::new(attribute::PROTOCOL_VERSION, revision.as_str())
}

/// The beginning of a name, where it is very long.
fn cut(name: &str) -> &str {
    let end = name.floor_char_boundary(MAX_SPAN_NAME_BYTES.min(name.len()));
    name.get(..end).unwrap_or_default()
}
