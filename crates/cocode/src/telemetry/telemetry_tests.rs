//! What a collector receives, and what happens without one.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cocode_client::{
    CallFacts, CallOutcomeKind, CallTransport, HttpSettings, Telemetry, TraceContext,
};
use cocode_testkit::{HttpRequest, HttpServer, Script};

use super::{Guard, TelemetrySettings, start};

/// Long enough for any machine; tests that wait for the deadline choose another.
const PATIENCE: Duration = Duration::from_mins(1);
const FACTS: CallFacts = CallFacts {
    transport: CallTransport::Stdio,
    revision: None,
};

#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Begins to export with these variables.
fn install(
    variables: &[(&str, &str)],
    patience: Duration,
    warnings: &Warnings,
) -> (Telemetry, Guard) {
    let settings = TelemetrySettings::read(&|wanted| {
        let found = variables.iter().find(|(name, _)| *name == wanted);
        found.map(|(_, value)| (*value).to_owned())
    });
    let warnings = warnings.clone();
    let warn = move |message: &str| warnings.0.lock().unwrap().push(message.to_owned());
    start(
        &settings.unwrap(),
        &HttpSettings::default(),
        patience,
        Box::new(warn),
    )
}

fn one_call(telemetry: &Telemetry, parent: Option<&TraceContext>) {
    telemetry
        .begin_call("files", "read_file", FACTS, parent)
        .finish(CallOutcomeKind::Ok);
}

fn collector() -> HttpServer {
    let headers = [("Content-Type", "application/x-protobuf")];
    Script::new()
        .on_http("POST")
        .respond(200, &headers, "")
        .http()
}

fn mentions(request: &HttpRequest, text: &[u8]) -> bool {
    request.body.windows(text.len()).any(|part| part == text)
}

#[test]
fn a_collector_receives_traces_and_metrics_at_the_end() {
    let collector = collector();
    let warnings = Warnings::default();
    let (telemetry, guard) = install(
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url_of("")),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20key"),
            ("OTEL_SERVICE_NAME", "my-agent"),
        ],
        PATIENCE,
        &warnings,
    );
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    one_call(&telemetry, Some(&TraceContext::parse(parent).unwrap()));
    drop(telemetry);
    drop(guard);

    let mut requests = collector.requests().all();
    requests.sort_by(|one, other| one.path.cmp(&other.path));
    let [metrics, traces] = requests.as_slice() else {
        panic!("two exports, not {}", requests.len());
    };
    assert_eq!(metrics.path, "/v1/metrics");
    assert_eq!(traces.path, "/v1/traces");
    for request in [metrics, traces] {
        assert_eq!(
            request.header("Content-Type"),
            Some("application/x-protobuf")
        );
        assert_eq!(request.header("Authorization"), Some("Bearer key"));
        assert!(mentions(request, b"my-agent"));
        assert!(mentions(request, b"read_file"));
    }
    assert!(mentions(metrics, b"mcp.client.operation.duration"));
    assert!(mentions(metrics, b"cocode.call.count"));
    assert!(mentions(traces, b"tools/call read_file"));
    // The identifiers of the parent are in there as bytes.
    assert!(mentions(traces, b"\x0a\xf7\x65\x19\x16\xcd\x43\xdd"));
    assert!(mentions(traces, b"\xb7\xad\x6b\x71\x69\x20\x33\x31"));
    assert_eq!(warnings.all(), [""; 0]);
}

#[test]
fn metrics_are_exported_in_intervals() {
    let collector = collector();
    let warnings = Warnings::default();
    let (telemetry, guard) = install(
        &[
            (
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                &collector.url_of("/in"),
            ),
            ("OTEL_METRIC_EXPORT_INTERVAL", "1"),
        ],
        PATIENCE,
        &warnings,
    );
    one_call(&telemetry, None);
    let exported = collector
        .requests()
        .wait_for_blocking(|request| mentions(request, b"cocode.call.count"));
    assert_eq!(exported.path, "/in");
    assert!(mentions(&exported, b"cocode"));
    drop((telemetry, guard));
    assert_eq!(warnings.all(), [""; 0]);
}

#[test]
fn a_collector_that_cannot_be_reached_is_one_warning() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let warnings = Warnings::default();
    let (telemetry, guard) = install(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", &format!("http://{address}"))],
        PATIENCE,
        &warnings,
    );
    one_call(&telemetry, None);
    drop((telemetry, guard));
    let warnings = warnings.all();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let expected = format!("telemetry gets lost: cannot reach http://{address}/v1/");
    assert!(warnings[0].starts_with(&expected), "{warnings:?}");
}

#[test]
fn a_collector_that_refuses_is_one_warning() {
    let collector = Script::new().on_http("POST").status(401).http();
    let warnings = Warnings::default();
    let endpoint = collector.url_of("");
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let (telemetry, guard) = install(&variables, PATIENCE, &warnings);
    one_call(&telemetry, None);
    drop((telemetry, guard));
    let expected = "telemetry gets lost: the collector answered with HTTP 401 Unauthorized";
    assert_eq!(warnings.all(), [expected]);
}

#[test]
fn a_collector_that_never_answers_does_not_hold_up_the_end() {
    let collector = Script::new().on_http("POST").stall().http();
    let warnings = Warnings::default();
    let endpoint = collector.url_of("");
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let (telemetry, guard) = install(&variables, Duration::from_millis(50), &warnings);
    one_call(&telemetry, None);
    drop((telemetry, guard));
    let expected = "telemetry gets lost: the collector takes too long";
    assert_eq!(warnings.all(), [expected]);
}

#[test]
fn the_guard_may_end_inside_a_runtime() {
    let collector = collector();
    let warnings = Warnings::default();
    let endpoint = collector.url_of("");
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (telemetry, guard) = install(&variables, PATIENCE, &warnings);
        one_call(&telemetry, None);
        drop((telemetry, guard));
    });
    assert_eq!(collector.requests().all().len(), 2);
    assert_eq!(warnings.all(), [""; 0]);
}

#[test]
fn variables_that_turn_everything_off_are_told_and_nothing_is_recorded() {
    let warnings = Warnings::default();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "nonsense")];
    let (telemetry, guard) = install(&variables, PATIENCE, &warnings);
    assert!(!telemetry.is_on());
    drop(guard);
    let expected = "telemetry: the variable OTEL_EXPORTER_OTLP_ENDPOINT holds no address of HTTP";
    assert_eq!(warnings.all(), [expected]);
}
