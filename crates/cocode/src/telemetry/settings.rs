//! What the variables of OpenTelemetry ask for.
//!
//! Those of one signal, such as `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, win over those of all. What
//! cannot be understood is told, without its value: headers and addresses hold secrets.

use std::fmt;
use std::time::Duration;

use cocode_client::{HeaderMap, HeaderName, HeaderValue, Url};

/// How long the collector may take for one export.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Time between two exports of metrics.
const DEFAULT_METRIC_INTERVAL: Duration = Duration::from_mins(1);

/// Telemetry that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct TelemetrySettings {
    pub(super) traces: Option<Destination>,
    pub(super) metrics: Option<Destination>,
    /// `OTEL_SERVICE_NAME`.
    pub(super) service_name: Option<String>,
    /// `OTEL_RESOURCE_ATTRIBUTES`.
    pub(super) resource: Vec<(String, String)>,
    /// `OTEL_METRIC_EXPORT_INTERVAL`.
    pub(super) metric_interval: Duration,
    /// What is to be told about the variables.
    pub(super) problems: Vec<String>,
}

/// Where one signal goes. Its [`fmt::Debug`] leaves out what may be secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) timeout: Duration,
}

/// A kind of telemetry, as it is called in variables and in paths.
#[derive(Clone, Copy)]
struct SignalName {
    variable: &'static str,
    path: &'static str,
}

const TRACES: SignalName = SignalName {
    variable: "TRACES",
    path: "v1/traces",
};
const METRICS: SignalName = SignalName {
    variable: "METRICS",
    path: "v1/metrics",
};

/// The variables, and what is wrong with them.
struct Reader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    problems: Vec<String>,
}

impl TelemetrySettings {
    /// Nothing if no collector is named, or all of it is turned off.
    pub(crate) fn read(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let endpoints = [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        ];
        let is_named = endpoints.into_iter().any(|name| variable(name).is_some());
        let is_disabled = || {
            variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
        };
        if !is_named || is_disabled() {
            return None;
        }
        let problems = Vec::new();
        let mut reader = Reader { variable, problems };
        let interval = reader.milliseconds("OTEL_METRIC_EXPORT_INTERVAL");
        Some(Self {
            traces: reader.destination(TRACES),
            metrics: reader.destination(METRICS),
            service_name: variable("OTEL_SERVICE_NAME"),
            resource: variable("OTEL_RESOURCE_ATTRIBUTES")
                .map(|value| pairs(&value).collect())
                .unwrap_or_default(),
            metric_interval: interval.unwrap_or(DEFAULT_METRIC_INTERVAL),
            problems: reader.problems,
        })
    }
}

impl Reader<'_> {
    fn destination(&mut self, signal: SignalName) -> Option<Destination> {
        let SignalName { variable, path } = signal;
        let (name, address) = match self.of_signal(variable, "ENDPOINT")? {
            // An address for all signals is the beginning of theirs.
            (name, base) if name == "OTEL_EXPORTER_OTLP_ENDPOINT" => {
                let base = base.trim_end_matches('/');
                (name, format!("{base}/{path}"))
            }
            own => own,
        };
        if !self.is_ours(&format!("OTEL_{variable}_EXPORTER")) {
            return None;
        }
        if let Some((name, protocol)) = self.of_signal(variable, "PROTOCOL")
            && protocol != "http/protobuf"
        {
            self.wrong(&name, "asks for a protocol other than http/protobuf");
            return None;
        }
        let url = Url::parse(&address).ok();
        let Some(url) = url.filter(|url| matches!(url.scheme(), "http" | "https")) else {
            self.wrong(&name, "holds no address of HTTP");
            return None;
        };
        let timeout = self.of_signal(variable, "TIMEOUT");
        let timeout = timeout.and_then(|(name, _)| self.milliseconds(&name));
        Some(Destination {
            url,
            headers: self.headers(variable),
            timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        })
    }

    /// The variable of a signal, or that of all signals, with its name.
    fn of_signal(&self, signal: &str, what: &str) -> Option<(String, String)> {
        let names = [
            format!("OTEL_EXPORTER_OTLP_{signal}_{what}"),
            format!("OTEL_EXPORTER_OTLP_{what}"),
        ];
        let value = |name: String| (self.variable)(&name).map(|value| (name, value));
        names.into_iter().find_map(value)
    }

    /// Whether a signal goes out by OTLP, as it does where nothing is said.
    fn is_ours(&mut self, name: &str) -> bool {
        match (self.variable)(name).as_deref() {
            None | Some("otlp") => true,
            Some("none") => false,
            Some(_) => {
                self.wrong(name, "asks for an exporter other than otlp");
                false
            }
        }
    }

    fn headers(&mut self, signal: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let Some((name, value)) = self.of_signal(signal, "HEADERS") else {
            return headers;
        };
        for (key, value) in pairs(&value) {
            let parsed = (key.parse::<HeaderName>(), HeaderValue::from_str(&value));
            if let (Ok(key), Ok(mut value)) = parsed {
                value.set_sensitive(true);
                headers.insert(key, value);
            } else {
                self.wrong(&name, "has a header that cannot be sent");
            }
        }
        headers
    }

    fn milliseconds(&mut self, name: &str) -> Option<Duration> {
        let value = (self.variable)(name)?;
        let parsed = value.trim().parse().ok().filter(|number| *number > 0);
        if parsed.is_none() {
            self.wrong(name, "holds no number of milliseconds");
        }
        parsed.map(Duration::from_millis)
    }

    fn wrong(&mut self, name: &str, what: &str) {
        let problem = format!("telemetry: the variable {name} {what}");
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Destination")
            .field("host", &self.url.host_str())
            .field("headers", &self.headers)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// `key=value,key=value`, with values in percent-encoding.
fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    let members = text.split(',').filter_map(|member| member.split_once('='));
    members.map(|(key, value)| (key.trim().to_owned(), decoded(value.trim())))
}

fn decoded(text: &str) -> String {
    let hex = |digit: Option<&u8>| char::from(*digit?).to_digit(16);
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let escaped = match (byte, hex(ahead.next()), hex(ahead.next())) {
            (b'%', Some(high), Some(low)) => u8::try_from(16 * high + low).ok(),
            _ => None,
        };
        if escaped.is_some() {
            rest = ahead;
        }
        decoded.push(escaped.unwrap_or(*byte));
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::TelemetrySettings;

    fn read(variables: &[(&str, &str)]) -> Option<TelemetrySettings> {
        TelemetrySettings::read(&|wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_wanted_where_no_collector_is_named() {
        assert!(read(&[]).is_none());
        assert!(
            read(&[
                ("OTEL_SERVICE_NAME", "me"),
                ("OTEL_TRACES_EXPORTER", "otlp")
            ])
            .is_none()
        );
        let disabled = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:4318"),
            ("OTEL_SDK_DISABLED", "True"),
        ];
        assert!(read(&disabled).is_none());
    }

    #[test]
    fn an_address_for_all_is_the_beginning_and_one_for_a_signal_is_all_of_it() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:4318/base/"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "https://other/in"),
        ]);
        let settings = settings.unwrap();
        let url = |to: Option<super::Destination>| to.unwrap().url.to_string();
        assert_eq!(url(settings.traces), "http://host:4318/base/v1/traces");
        assert_eq!(url(settings.metrics), "https://other/in");
        assert_eq!(settings.metric_interval, Duration::from_mins(1));
    }

    #[test]
    fn only_the_signals_that_have_an_address_are_exported() {
        let settings = read(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://host/t")]).unwrap();
        assert!(settings.traces.is_some() && settings.metrics.is_none());
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host"),
            ("OTEL_TRACES_EXPORTER", "none"),
        ]);
        let settings = settings.unwrap();
        assert!(settings.traces.is_none() && settings.metrics.is_some());
        assert_eq!(settings.problems, [""; 0]);
    }

    #[test]
    fn times_are_in_milliseconds_and_the_signal_wins() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "20"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "250"),
        ]);
        let settings = settings.unwrap();
        assert_eq!(settings.traces.unwrap().timeout, Duration::from_millis(20));
        let timeout = settings.metrics.unwrap().timeout;
        assert_eq!(timeout, Duration::from_millis(1500));
        assert_eq!(settings.metric_interval, Duration::from_millis(250));
    }

    #[test]
    fn headers_are_decoded_and_never_shown() {
        let settings = read(&[
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                "http://me:hidden@host/?hidden",
            ),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                "authorization=Bearer%20hidden%3D , x-a=100%",
            ),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,x=y"),
        ]);
        let settings = settings.unwrap();
        assert!(!format!("{settings:?}").contains("hidden"), "{settings:?}");
        let headers = settings.traces.unwrap().headers;
        assert_eq!(headers["authorization"], "Bearer hidden=");
        assert_eq!(headers["x-a"], "100%");
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(settings.resource, [pair("team", "a,b"), pair("x", "y")]);
    }

    #[test]
    fn what_is_not_understood_is_told_once_and_without_its_value() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "host:4317"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://host"),
            ("OTEL_EXPORTER_OTLP_METRICS_HEADERS", "a b=secret"),
            ("OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "soon"),
        ]);
        let settings = settings.unwrap();
        assert!(settings.traces.is_none() && settings.metrics.is_some());
        let expected = [
            "telemetry: the variable OTEL_EXPORTER_OTLP_ENDPOINT holds no address of HTTP",
            "telemetry: the variable OTEL_EXPORTER_OTLP_METRICS_TIMEOUT holds no number of milliseconds",
            "telemetry: the variable OTEL_EXPORTER_OTLP_METRICS_HEADERS has a header that cannot be sent",
        ];
        assert_eq!(settings.problems, expected);
    }

    #[test]
    fn protocols_and_exporters_that_we_do_not_have_are_refused() {
        let settings = read(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_METRICS_EXPORTER", "prometheus"),
        ]);
        let settings = settings.unwrap();
        assert!(settings.traces.is_none() && settings.metrics.is_none());
        let expected = [
            "telemetry: the variable OTEL_EXPORTER_OTLP_PROTOCOL asks for a protocol other than http/protobuf",
            "telemetry: the variable OTEL_METRICS_EXPORTER asks for an exporter other than otlp",
        ];
        assert_eq!(settings.problems, expected);
    }
}
