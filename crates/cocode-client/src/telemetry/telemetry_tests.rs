//! What a collector gets to see of calls and servers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cocode_core::Revision;
use cocode_wire::{RpcError, code};
use opentelemetry::global::BoxedTracer;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{SpanKind, Status, TracerProvider as _};
use opentelemetry::{KeyValue, TraceId};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};

use super::{
    CallFacts, CallOutcomeKind, CallTransport, Telemetry, TelemetrySignals, TraceContext, call_span,
};

const PLACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const FACTS: CallFacts = CallFacts {
    transport: CallTransport::Stdio,
    revision: Some(Revision::V2025_11_25),
};

/// A collector in memory.
struct Collector {
    meters: SdkMeterProvider,
    metrics: InMemoryMetricExporter,
    tracers: SdkTracerProvider,
    spans: InMemorySpanExporter,
}

/// One series of a metric: its value, or the number and the sum of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Sum(i64),
    Histogram { count: u64, sum: f64 },
}

impl Collector {
    fn new() -> Self {
        let metrics = InMemoryMetricExporter::default();
        let spans = InMemorySpanExporter::default();
        Self {
            meters: SdkMeterProvider::builder()
                .with_reader(PeriodicReader::builder(metrics.clone()).build())
                .build(),
            metrics,
            tracers: SdkTracerProvider::builder()
                .with_simple_exporter(spans.clone())
                .build(),
            spans,
        }
    }

    fn telemetry(&self) -> Telemetry {
        Telemetry::new(TelemetrySignals {
            tracer: Some(self.tracer()),
            ..self.only_metrics()
        })
    }

    fn only_metrics(&self) -> TelemetrySignals {
        TelemetrySignals {
            meter: Some(self.meters.meter("cocode")),
            tracer: None,
        }
    }

    fn tracer(&self) -> BoxedTracer {
        BoxedTracer::new(Box::new(self.tracers.tracer("cocode")))
    }

    fn spans(&self) -> Vec<SpanData> {
        self.spans.get_finished_spans().unwrap()
    }

    /// The series of a metric by those of their attributes that are asked for.
    fn series(&self, metric: &str, attributes: &[&str]) -> BTreeMap<String, Value> {
        self.metrics.reset();
        self.meters.force_flush().unwrap();
        let finished = self.metrics.get_finished_metrics().unwrap();
        let scopes = finished.iter().flat_map(ResourceMetrics::scope_metrics);
        let named = scopes.flat_map(|scope| scope.metrics().collect::<Vec<_>>());
        let mut series = BTreeMap::new();
        for data in named.filter(|found| found.name() == metric) {
            for (labels, value) in values(data.data()) {
                let label = |name: &&str| labels.get(*name).map_or("-", String::as_str);
                let label: Vec<&str> = attributes.iter().map(label).collect();
                let before = series.insert(label.join(" "), value);
                assert_eq!(
                    before, None,
                    "these attributes do not tell the series apart"
                );
            }
        }
        series
    }
}

type Labels = BTreeMap<String, String>;

fn values(data: &AggregatedMetrics) -> Vec<(Labels, Value)> {
    match data {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            let points = sum.data_points();
            let value = |value: u64| Value::Sum(value.try_into().unwrap());
            points
                .map(|point| (labels(point.attributes()), value(point.value())))
                .collect()
        }
        AggregatedMetrics::I64(MetricData::Sum(sum)) => {
            let points = sum.data_points();
            points
                .map(|point| (labels(point.attributes()), Value::Sum(point.value())))
                .collect()
        }
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            let value = |count, sum| Value::Histogram { count, sum };
            let points = histogram.data_points();
            points
                .map(|point| {
                    (
                        labels(point.attributes()),
                        value(point.count(), point.sum()),
                    )
                })
                .collect()
        }
        other => panic!("an instrument of another kind: {other:?}"),
    }
}

fn labels<'a>(attributes: impl IntoIterator<Item = &'a KeyValue>) -> Labels {
    let text = |it: &KeyValue| (it.key.to_string(), it.value.as_str().into_owned());
    attributes.into_iter().map(text).collect()
}

fn sums(of: &[(&str, i64)]) -> BTreeMap<String, Value> {
    let sum = |(label, sum): &(&str, i64)| ((*label).to_owned(), Value::Sum(*sum));
    of.iter().map(sum).collect()
}

#[test]
fn calls_are_counted_by_server_tool_and_outcome() {
    let collector = Collector::new();
    let telemetry = collector.telemetry();
    let refused = RpcError::new(code::INVALID_PARAMS, "no");
    for (tool, outcome) in [
        ("read", CallOutcomeKind::Ok),
        ("read", CallOutcomeKind::Ok),
        ("read", CallOutcomeKind::ToolError),
        ("write", CallOutcomeKind::failed("request-timeout")),
        ("write", CallOutcomeKind::refused("server-error", &refused)),
    ] {
        telemetry
            .begin_call("files", tool, FACTS, None)
            .finish(outcome);
    }
    let by = [
        "cocode.server.name",
        "gen_ai.tool.name",
        "cocode.call.outcome",
    ];
    let expected = sums(&[
        ("files read ok", 2),
        ("files read tool_error", 1),
        ("files write request-timeout", 1),
        ("files write server-error", 1),
    ]);
    assert_eq!(collector.series("cocode.call.count", &by), expected);
}

#[tokio::test(start_paused = true)]
async fn the_latency_of_calls_is_measured_in_seconds() {
    let collector = Collector::new();
    let telemetry = collector.telemetry();
    for millis in [250, 500] {
        let call = telemetry.begin_call("files", "read", FACTS, None);
        tokio::time::advance(Duration::from_millis(millis)).await;
        call.finish(CallOutcomeKind::Ok);
    }
    let mut call = telemetry.begin_call(
        "web",
        "search",
        CallFacts {
            transport: CallTransport::Http,
            revision: None,
        },
        None,
    );
    call.set_revision(Revision::V2026_07_28);
    let strange = RpcError::new(77, "no");
    call.finish(CallOutcomeKind::refused("server-error", &strange));
    let by = [
        "cocode.server.name",
        "gen_ai.tool.name",
        "mcp.method.name",
        "gen_ai.operation.name",
        "network.transport",
        "network.protocol.name",
        "mcp.protocol.version",
        "error.type",
    ];
    let measured = |count, sum| Value::Histogram { count, sum };
    let expected = [
        (
            "files read tools/call execute_tool pipe - 2025-11-25 -".to_owned(),
            measured(2, 0.75),
        ),
        (
            "web search tools/call execute_tool tcp http 2026-07-28 _OTHER".to_owned(),
            measured(1, 0.0),
        ),
    ];
    let series = collector.series("mcp.client.operation.duration", &by);
    assert_eq!(series, expected.into());
}

#[test]
fn a_dropped_call_counts_as_cancelled_and_no_longer_as_active() {
    let collector = Collector::new();
    let telemetry = collector.telemetry();
    let call = telemetry.begin_call("files", "read", FACTS, None);
    let active = || collector.series("cocode.call.active", &["cocode.server.name"]);
    assert_eq!(active(), sums(&[("files", 1)]));
    drop(call);
    assert_eq!(active(), sums(&[("files", 0)]));
    let by = ["cocode.call.outcome"];
    let expected = sums(&[("cancelled", 1)]);
    assert_eq!(collector.series("cocode.call.count", &by), expected);
    let spans = collector.spans();
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0].status, Status::error("cancelled"));
}

#[test]
fn the_span_of_a_call_is_a_child_of_its_caller_and_the_parent_of_what_the_server_does() {
    let collector = Collector::new();
    let telemetry = collector.telemetry();
    let parent = TraceContext::parse(PLACE).unwrap();
    let parent = parent.with_tracestate("a=1").unwrap();
    let parent = parent.with_baggage("user=alice").unwrap();
    let call = telemetry.begin_call("files", "read", FACTS, Some(&parent));
    let passed_on = call.context().unwrap();
    call.finish(CallOutcomeKind::Ok);

    let spans = collector.spans();
    let [span] = spans.as_slice() else {
        panic!("one span, not {}", spans.len());
    };
    assert_eq!(span.name, "tools/call read");
    assert_eq!(span.span_kind, SpanKind::Client);
    assert_eq!(span.status, Status::Unset);
    assert!(span.parent_span_is_remote);
    assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
    assert_eq!(
        span.span_context.trace_id(),
        TraceId::from_hex(TRACE).unwrap()
    );
    let own = format!("00-{TRACE}-{}-01", span.span_context.span_id());
    assert_eq!(passed_on.traceparent(), Some(own.as_str()));
    assert_eq!(passed_on.tracestate(), Some("a=1"));
    assert_eq!(passed_on.baggage(), Some("user=alice"));
}

#[test]
fn the_span_of_a_refused_call_says_what_the_server_answered() {
    let collector = Collector::new();
    let refused = RpcError::new(-31999, "not to be recorded");
    collector
        .telemetry()
        .begin_call("files", "read", FACTS, None)
        .finish(CallOutcomeKind::refused("server-error", &refused));
    let spans = collector.spans();
    let attributes = labels(&spans[0].attributes);
    let expected = [
        ("cocode.call.outcome", "server-error"),
        ("cocode.server.name", "files"),
        ("error.type", "-31999"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "read"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", "2025-11-25"),
        ("network.transport", "pipe"),
        ("rpc.response.status_code", "-31999"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(attributes, expected.into());
    assert_eq!(spans[0].status, Status::error("server-error"));
}

#[test]
fn a_call_without_a_caller_begins_a_trace() {
    let collector = Collector::new();
    let telemetry = collector.telemetry();
    let call = telemetry.begin_call("files", &"é".repeat(1000), FACTS, None);
    let context = call.context().unwrap();
    call.finish(CallOutcomeKind::Ok);
    let spans = collector.spans();
    let trace = spans[0].span_context.trace_id().to_string();
    assert!(context.traceparent().unwrap().contains(&trace));
    let name = format!("tools/call {}", "é".repeat(128));
    assert_eq!(spans[0].name, name);
}

#[test]
fn without_a_tracer_the_context_of_the_caller_is_passed_on() {
    let collector = Collector::new();
    let parent = TraceContext::parse(PLACE).unwrap();
    for telemetry in [
        Telemetry::off(),
        Telemetry::default(),
        Telemetry::new(TelemetrySignals::default()),
        Telemetry::new(collector.only_metrics()),
    ] {
        let call = telemetry.begin_call("files", "read", FACTS, Some(&parent));
        assert_eq!(call.context().as_ref(), Some(&parent));
        let orphan = telemetry.begin_call("files", "read", FACTS, None);
        assert_eq!(orphan.context(), None);
    }
    let by = ["cocode.call.outcome"];
    let counted = collector.series("cocode.call.count", &by);
    assert_eq!(counted, sums(&[("cancelled", 2)]));
}

#[test]
fn telemetry_that_is_off_shares_what_it_is_given() {
    let parent = TraceContext::parse(PLACE).unwrap();
    let telemetry = Telemetry::off();
    assert!(!telemetry.is_on());
    let call = telemetry.begin_call("files", "read", FACTS, Some(&parent));
    let passed_on = call.context().unwrap();
    // No copy of the text was made on the way.
    let address = |context: &TraceContext| context.traceparent().unwrap().as_ptr();
    assert_eq!(address(&passed_on), address(&parent));
    let mut server = telemetry.server("files");
    server.enter("ready");
    server.reconnected();
    server.relisted("tools/list");
}

#[test]
fn servers_are_counted_under_one_state_at_a_time() {
    let collector = Collector::new();
    let telemetry = collector.telemetry();
    let states = || collector.series("cocode.server.count", &["cocode.server.state"]);
    let mut one = telemetry.server("one");
    let mut two = telemetry.server("two");
    one.enter("starting");
    two.enter("starting");
    assert_eq!(states(), sums(&[("starting", 2)]));
    one.enter("ready");
    one.enter("ready");
    assert_eq!(states(), sums(&[("ready", 1), ("starting", 1)]));
    drop((one, two));
    assert_eq!(states(), sums(&[("ready", 0), ("starting", 0)]));
}

#[test]
fn reconnects_and_relists_are_counted_by_server() {
    let collector = Collector::new();
    let server = collector.telemetry().server("files");
    server.reconnected();
    server.relisted("tools/list");
    server.relisted("tools/list");
    server.relisted("prompts/list");
    let by = ["cocode.server.name", "mcp.method.name"];
    assert_eq!(
        collector.series("cocode.server.reconnects", &by),
        sums(&[("files -", 1)])
    );
    assert_eq!(
        collector.series("cocode.server.relists", &by),
        sums(&[("files prompts/list", 1), ("files tools/list", 2)])
    );
}

/// Keeps the name, the level and the fields of the spans that are made.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        struct Fields(String);
        impl Visit for Fields {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                write!(self.0, " {}={value:?}", field.name()).unwrap();
            }
        }
        let mut fields = Fields(String::new());
        span.record(&mut fields);
        let (level, name) = (span.metadata().level(), span.metadata().name());
        self.0
            .lock()
            .unwrap()
            .push(format!("{level} {name}{}", fields.0));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn the_span_for_logs_names_the_call() {
    let log = Log::default();
    let span = tracing::subscriber::with_default(log.clone(), || call_span("files", "read", 7));
    drop(span);
    let expected = [r#"DEBUG call server="files" tool="read" call=7"#];
    assert_eq!(*log.0.lock().unwrap(), expected);
}
