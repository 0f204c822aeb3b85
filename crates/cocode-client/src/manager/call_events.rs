//! Tells everybody who wants to know that a call began, goes on, and is over.

use std::sync::Arc;

use cocode_core::{Reach, RemoteTransport, ServerName, ToolName};
use cocode_wire::Frame;
use tokio::time::Instant;

use super::call_error::CallError;
use super::calls::Called;
use super::events::{Bus, CallEnd, CallId, Event};
use super::server::Server;
use super::shared::Shared;
use crate::error::{RequestError, Retry};
use crate::features::CallResult;
use crate::progress::{OnProgress, Progress};
use crate::telemetry::{CallFacts, CallOutcomeKind, CallTrace, CallTransport, TraceContext};
use crate::usage::UsageLog;

/// What the end of a call is named that its server refused.
const REFUSED: &str = "server-error";

/// A call that somebody is told about. Dropped before its end, it was cancelled.
pub(super) struct Telling<'a> {
    bus: &'a Bus,
    call: CallId,
    server: ServerName,
    tool: ToolName,
    begun: Instant,
    trace: Option<CallTrace>,
    /// Where the call is counted, until it is.
    usage: Option<&'a UsageLog>,
    /// Size of the result.
    bytes: Option<usize>,
    finished: bool,
}

impl<'a> Telling<'a> {
    pub(super) fn begin(
        shared: &'a Shared,
        server: &Server,
        tool: &ToolName,
        (call, begun): (CallId, Instant),
        parent: Option<&TraceContext>,
    ) -> Self {
        shared.bus.tell(|| Event::ToolCallStarted {
            call,
            server: server.name.clone(),
            tool: tool.clone(),
        });
        let telemetry = &shared.options.telemetry;
        let trace = (telemetry.is_on() || parent.is_some()).then(|| {
            let facts = CallFacts {
                transport: transport(&server.spec().reach),
                revision: server.facts().map(|facts| facts.revision),
            };
            telemetry.begin_call(server.name.as_str(), tool.as_str(), facts, parent)
        });
        let usage = &shared.options.usage;
        Self {
            bus: &shared.bus,
            call,
            server: server.name.clone(),
            tool: tool.clone(),
            begun,
            trace,
            usage: (!usage.is_off()).then_some(usage),
            bytes: None,
            finished: false,
        }
    }

    /// The trace context that the server is to be told.
    pub(super) fn context(&self) -> Option<TraceContext> {
        self.trace.as_ref().and_then(CallTrace::context)
    }

    /// Whoever wanted to be told about progress, and those who listen to events.
    pub(super) fn on_progress(&self, wanted: Option<OnProgress>) -> Option<OnProgress> {
        if !self.bus.is_heard() {
            return wanted;
        }
        let (bus, call) = (self.bus.clone(), self.call);
        Some(Arc::new(move |progress: &Progress| {
            if let Some(wanted) = &wanted {
                wanted(progress);
            }
            bus.tell(|| Event::ToolCallProgressed {
                call,
                progress: progress.clone(),
            });
        }))
    }

    pub(super) fn finish(&mut self, outcome: &Result<Called, CallError>) {
        self.count(outcome.as_ref().map_or_else(may_have_run, |_called| true));
        self.bytes = outcome
            .as_ref()
            .ok()
            .map(|called| called.result.raw.as_str().len());
        let end = match outcome {
            Ok(called) if called.result.is_error => CallEnd::ToolError,
            Ok(_) => CallEnd::Ok,
            Err(error) => CallEnd::Failed(error.code()),
        };
        if let Some(trace) = self.trace.take() {
            trace.finish(match outcome {
                Ok(called) if called.result.is_error => CallOutcomeKind::ToolError,
                Ok(_) => CallOutcomeKind::Ok,
                Err(CallError::Request {
                    error: error @ RequestError::Rpc { error: rpc, .. },
                    ..
                }) => CallOutcomeKind::refused(error.code(), rpc),
                Err(error) => CallOutcomeKind::failed(error.code()),
            });
        }
        self.end(end);
    }

    /// The same for an answer that is passed on as it came.
    pub(super) fn finish_relayed(&mut self, outcome: &Result<Frame, CallError>) {
        let is_carried_out = |frame: &Frame| frame.error().is_none();
        self.count(outcome.as_ref().map_or_else(may_have_run, is_carried_out));
        let answer = match outcome {
            Ok(frame) => frame.error().map_or(Ok(()), Err),
            Err(error) => {
                if let Some(trace) = self.trace.take() {
                    trace.finish(CallOutcomeKind::failed(error.code()));
                }
                return self.end(CallEnd::Failed(error.code()));
            }
        };
        // Nobody else reads the result of a call that is passed on.
        let is_wanted = self.trace.is_some() || self.bus.is_heard();
        let frame = outcome.as_ref().ok().filter(|_| is_wanted);
        let result = frame.and_then(Frame::result);
        self.bytes = result.as_ref().map(|result| result.as_str().len());
        let is_error = || result.is_some_and(|result| CallResult::parse(result).is_error);
        let (end, kind) = match &answer {
            Ok(()) if is_error() => (CallEnd::ToolError, CallOutcomeKind::ToolError),
            Ok(()) => (CallEnd::Ok, CallOutcomeKind::Ok),
            Err(rpc) => (
                CallEnd::Failed(REFUSED),
                CallOutcomeKind::refused(REFUSED, rpc),
            ),
        };
        if let Some(trace) = self.trace.take() {
            trace.finish(kind);
        }
        self.end(end);
    }

    /// Counts the call, once.
    fn count(&mut self, is_carried_out: bool) {
        if let Some(usage) = self.usage.take().filter(|_| is_carried_out) {
            usage.count(&self.server, &self.tool);
        }
    }

    fn end(&mut self, outcome: CallEnd) {
        let (call, elapsed) = (self.call, self.begun.elapsed());
        self.bus.tell(|| Event::ToolCallFinished {
            call,
            server: self.server.clone(),
            tool: self.tool.clone(),
            outcome,
            is_error: outcome == CallEnd::ToolError,
            bytes: self.bytes,
            elapsed,
        });
        self.finished = true;
    }
}

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.count(true);
            self.end(CallEnd::Cancelled);
        }
    }
}

/// Whether the server may have done what it was asked, although nobody knows what came of it.
fn may_have_run(error: &CallError) -> bool {
    match error {
        CallError::Request { error, .. } | CallError::Asking { error, .. } => {
            error.retry() == Retry::MayHaveRun
        }
        CallError::UnknownTool { .. }
        | CallError::UnknownServer { .. }
        | CallError::Arguments { .. }
        | CallError::Unavailable { .. } => false,
    }
}

fn transport(reach: &Reach) -> CallTransport {
    match reach {
        Reach::Program(_) => CallTransport::Stdio,
        Reach::Remote(remote) => match remote.transport {
            RemoteTransport::HttpWithFallback | RemoteTransport::Http | RemoteTransport::Sse => {
                CallTransport::Http
            }
            RemoteTransport::WebSocket => CallTransport::WebSocket,
            RemoteTransport::Unix => CallTransport::Unix,
        },
    }
}
