//! Sends what the library records to a collector, when the variables of OpenTelemetry ask for it.
//!
//! OTLP over HTTP, in protobuf. Without those variables nothing here exists: no thread, no client,
//! no provider. A collector that cannot be reached costs one warning and at most
//! [`FLUSH_TIMEOUT`] at the end, never an error.

mod courier;
mod settings;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use cocode_client::{HttpClient, HttpSettings, MAX_TELEMETRY_TOOLS, Telemetry, TelemetrySignals};
use opentelemetry::KeyValue;
use opentelemetry::global::BoxedTracer;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{
    ExporterBuildError, MetricExporter, Protocol, SpanExporter, WithExportConfig as _,
    WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{Instrument, PeriodicReader, SdkMeterProvider, Stream};
use opentelemetry_sdk::resource::TelemetryResourceDetector;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tokio::runtime::Runtime;

use self::courier::Courier;
use self::settings::Destination;
use crate::environment::Environment;
use crate::printer::Printer;

pub(crate) use self::settings::TelemetrySettings;

/// How long the end of the program waits for what is still to be delivered.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The name of what records, as collectors show it.
const SCOPE: &str = "cocode";

/// Series of one metric: each tool can have a handful of outcomes.
const MAX_SERIES: usize = 5 * MAX_TELEMETRY_TOOLS;

/// Delivers what is left when it is dropped. To be dropped after everything that records.
#[derive(Debug, Default)]
#[must_use = "telemetry ends when this is dropped"]
pub(crate) struct Guard(Option<Exporting>);

#[derive(Debug)]
struct Exporting {
    runtime: Runtime,
    signals: Vec<Signal>,
    office: Arc<Office>,
    flush_timeout: Duration,
}

/// What the couriers of all signals share.
struct Office {
    http: HttpClient,
    warn: Box<dyn Fn(&str) + Send + Sync>,
    has_warned: AtomicBool,
    /// Nobody waits for another attempt any more.
    is_closing: AtomicBool,
}

/// One kind of telemetry that is exported.
struct Signal {
    shut_down: Box<dyn FnOnce() + Send>,
    /// Says that nothing more is to be waited for.
    over: Sender<()>,
    is_over: Receiver<()>,
}

/// Begins to export telemetry, if that is asked for.
pub(crate) fn install(environment: &Environment, printer: &Arc<Printer>) -> (Telemetry, Guard) {
    let Some(settings) = &environment.telemetry else {
        return (Telemetry::off(), Guard::default());
    };
    let printer = Arc::clone(printer);
    let warn = Box::new(move |message: &str| printer.warn(message));
    start(settings, &environment.http, FLUSH_TIMEOUT, warn)
}

fn start(
    settings: &TelemetrySettings,
    http: &HttpSettings,
    flush_timeout: Duration,
    warn: Box<dyn Fn(&str) + Send + Sync>,
) -> (Telemetry, Guard) {
    for problem in &settings.problems {
        warn(problem);
    }
    if settings.traces.is_none() && settings.metrics.is_none() {
        return (Telemetry::off(), Guard::default());
    }
    // Exporters run on threads of the SDK, and go on when the runtime of the program has ended.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("telemetry")
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            warn(&format!("no telemetry: cannot start its runtime: {error}"));
            return (Telemetry::off(), Guard::default());
        }
    };
    let office = Arc::new(Office {
        http: HttpClient::new(http.clone()),
        warn,
        has_warned: AtomicBool::new(false),
        is_closing: AtomicBool::new(false),
    });
    let mut exporting = Exporting {
        runtime,
        signals: Vec::new(),
        office,
        flush_timeout,
    };
    let resource = resource(settings);
    let mut wanted = TelemetrySignals::default();
    if let Some(to) = &settings.traces
        && let Some(tracers) = exporting.traces(to, &resource)
    {
        let tracer = tracers.tracer(SCOPE);
        wanted.tracer = Some(BoxedTracer::new(Box::new(tracer)));
    }
    if let Some(to) = &settings.metrics
        && let Some(meters) = exporting.metrics(to, settings.metric_interval, resource)
    {
        wanted.meter = Some(meters.meter(SCOPE));
    }
    (Telemetry::new(wanted), Guard(Some(exporting)))
}

impl Exporting {
    fn traces(&mut self, to: &Destination, resource: &Resource) -> Option<SdkTracerProvider> {
        let (over, is_over) = channel();
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(self.courier(to, &over))
            .with_endpoint(to.url.as_str())
            .with_timeout(to.timeout)
            .with_protocol(Protocol::HttpBinary)
            .build();
        let tracers = SdkTracerProvider::builder()
            .with_resource(resource.clone())
            .with_batch_exporter(self.built(exporter)?)
            .build();
        let closing = tracers.clone();
        let timeout = self.flush_timeout;
        self.signals.push(Signal {
            // The courier has told if anything went wrong.
            shut_down: Box::new(move || drop(closing.shutdown_with_timeout(timeout))),
            over,
            is_over,
        });
        Some(tracers)
    }

    fn metrics(
        &mut self,
        to: &Destination,
        interval: Duration,
        resource: Resource,
    ) -> Option<SdkMeterProvider> {
        let (over, is_over) = channel();
        let exporter = MetricExporter::builder()
            .with_http()
            .with_http_client(self.courier(to, &over))
            .with_endpoint(to.url.as_str())
            .with_timeout(to.timeout)
            .with_protocol(Protocol::HttpBinary)
            .build();
        let reader = PeriodicReader::builder(self.built(exporter)?)
            .with_interval(interval)
            .build();
        let series = |_: &Instrument| {
            let stream = Stream::builder().with_cardinality_limit(MAX_SERIES);
            stream.build().ok()
        };
        let meters = SdkMeterProvider::builder()
            .with_resource(resource)
            .with_reader(reader)
            .with_view(series)
            .build();
        let closing = meters.clone();
        self.signals.push(Signal {
            shut_down: Box::new(move || drop(closing.shutdown())),
            over,
            is_over,
        });
        Some(meters)
    }

    fn courier(&self, to: &Destination, over: &Sender<()>) -> Courier {
        Courier {
            office: Arc::clone(&self.office),
            runtime: self.runtime.handle().clone(),
            headers: to.headers.clone(),
            timeout: to.timeout,
            over: over.clone(),
        }
    }

    fn built<E>(&self, exporter: Result<E, ExporterBuildError>) -> Option<E> {
        exporter
            .map_err(|error| (self.office.warn)(&format!("no telemetry: {error}")))
            .ok()
    }

    fn finish(self) {
        let Self {
            runtime,
            signals,
            office,
            flush_timeout,
        } = self;
        let deadline = Instant::now() + flush_timeout;
        office.is_closing.store(true, Ordering::SeqCst);
        let mut ends = Vec::new();
        for signal in signals {
            let Signal {
                shut_down,
                over,
                is_over,
            } = signal;
            // The SDK keeps to no deadline of ours. A thread that takes longer ends with the
            // program.
            let thread = std::thread::Builder::new().name("telemetry".to_owned());
            let started = thread.spawn(move || {
                shut_down();
                let _nobody_waits = over.send(());
            });
            match started {
                Ok(_thread) => ends.push(is_over),
                Err(error) => office.complain(&format!("cannot start a thread: {error}")),
            }
        }
        for end in ends {
            let left = deadline.saturating_duration_since(Instant::now());
            if end.recv_timeout(left) == Err(RecvTimeoutError::Timeout) {
                office.complain("the collector takes too long");
            }
        }
        runtime.shutdown_background();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(exporting) = self.0.take() {
            exporting.finish();
        }
    }
}

impl Office {
    /// Says once, for all signals, that telemetry gets lost.
    fn complain(&self, reason: &str) {
        tracing::debug!(reason, "telemetry not delivered");
        if !self.has_warned.swap(true, Ordering::SeqCst) {
            (self.warn)(&format!("telemetry gets lost: {reason}"));
        }
    }
}

/// Who we are: what the variables say, or the name of the program.
fn resource(settings: &TelemetrySettings) -> Resource {
    let attribute = |(name, value): &(String, String)| KeyValue::new(name.clone(), value.clone());
    let resource = Resource::builder_empty()
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_service_name(env!("CARGO_PKG_NAME"))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attributes(settings.resource.iter().map(attribute));
    match &settings.service_name {
        Some(name) => resource.with_service_name(name.clone()),
        None => resource,
    }
    .build()
}

impl fmt::Debug for Office {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Office")
            .field("has_warned", &self.has_warned)
            .field("is_closing", &self.is_closing)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signal").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "telemetry/telemetry_tests.rs"]
mod tests;
