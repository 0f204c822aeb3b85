//! Spans, metrics and trace context of every call, for whoever collects them.
//!
//! Stands on the API of OpenTelemetry alone: who embeds this brings the SDK, or none. Names follow
//! the semantic conventions for MCP where those have one; `docs/telemetry.md` has the table. No
//! arguments, results, addresses or messages of servers are ever recorded.

mod call;
mod context;
mod instruments;
mod names;
mod server;

use std::fmt;
use std::sync::Arc;

use opentelemetry::global::BoxedTracer;
use opentelemetry::metrics::Meter;

use self::instruments::Instruments;
use self::names::Names;

pub use self::call::{CallFacts, CallOutcomeKind, CallTrace, CallTransport, call_span};
pub use self::context::{InvalidTraceContext, TraceContext};
pub use self::names::{MAX_TELEMETRY_SERVERS, MAX_TELEMETRY_TOOLS};
pub use self::server::ServerTrace;

/// Where telemetry goes. Cheap to clone. Off, it neither allocates nor locks.
#[derive(Clone, Default)]
pub struct Telemetry(Option<Arc<Shared>>);

/// The signals of OpenTelemetry that are wanted.
#[derive(Debug, Default)]
pub struct TelemetrySignals {
    /// Makes the instruments.
    pub meter: Option<Meter>,
    /// Makes the spans.
    pub tracer: Option<BoxedTracer>,
}

struct Shared {
    instruments: Option<Instruments>,
    tracer: Option<BoxedTracer>,
    names: Names,
}

impl Telemetry {
    /// Records nothing.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Records these signals; none at all is the same as [`Telemetry::off`].
    pub fn new(signals: TelemetrySignals) -> Self {
        let TelemetrySignals { meter, tracer } = signals;
        if meter.is_none() && tracer.is_none() {
            return Self::off();
        }
        Self(Some(Arc::new(Shared {
            instruments: meter.as_ref().map(Instruments::new),
            tracer,
            names: Names::default(),
        })))
    }

    /// Whether anything is recorded.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = self.0.as_deref();
        formatter
            .debug_struct("Telemetry")
            .field(
                "metrics",
                &shared.is_some_and(|it| it.instruments.is_some()),
            )
            .field("traces", &shared.is_some_and(|it| it.tracer.is_some()))
            .finish()
    }
}

#[cfg(test)]
#[path = "telemetry/telemetry_tests.rs"]
mod tests;
