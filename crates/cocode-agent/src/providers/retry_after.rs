//! What the headers of an answer say about asking again.

use std::time::{Duration, SystemTime};

use http::HeaderMap;

/// The longest wait that is taken at its word; more is a mistake.
const MAX_WAIT: Duration = Duration::from_hours(24);

/// When to ask again, and whether at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Advice {
    /// After how long.
    pub(super) after: Option<Duration>,
    /// Whether that makes sense, if the provider says so.
    pub(super) should: Option<bool>,
}

impl Advice {
    /// Reads `retry-after-ms`, `retry-after` (seconds or a date) and `x-should-retry`.
    pub(super) fn read(headers: &HeaderMap, now: SystemTime) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let milliseconds = text("retry-after-ms").and_then(|text| duration(text, 1e-3));
        let after = milliseconds.or_else(|| {
            let text = text("retry-after")?;
            duration(text, 1.0).or_else(|| until(text, now))
        });
        let should = match text("x-should-retry") {
            Some("true") => Some(true),
            Some("false") => Some(false),
            _ => None,
        };
        Self { after, should }
    }
}

fn duration(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    let seconds = Duration::try_from_secs_f64(number * unit).ok()?;
    Some(seconds.min(MAX_WAIT))
}

/// The time until a date of HTTP; a date in the past means now.
fn until(text: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    let left = date.duration_since(now).unwrap_or_default();
    Some(left.min(MAX_WAIT))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::{Advice, MAX_WAIT};

    fn read(headers: &[(&'static str, &'static str)]) -> Advice {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2026 07:28:00 GMT").unwrap();
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        });
        Advice::read(&headers.collect::<HeaderMap>(), now)
    }

    #[test]
    fn waits_are_read_in_every_form() {
        for (headers, expected) in [
            (&[("retry-after", "7")][..], Some(7_000)),
            (&[("retry-after", "0.5")], Some(500)),
            (
                &[("retry-after", "20"), ("retry-after-ms", "1500")],
                Some(1_500),
            ),
            (
                &[("retry-after", "Wed, 21 Oct 2026 07:28:30 GMT")],
                Some(30_000),
            ),
            (&[("retry-after", "Wed, 21 Oct 2020 07:28:30 GMT")], Some(0)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "soon")], None),
            (&[], None),
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(read(headers).after, expected, "{headers:?}");
        }
        assert_eq!(read(&[("retry-after", "1e9")]).after, Some(MAX_WAIT));
    }

    #[test]
    fn a_provider_can_say_whether_to_ask_again() {
        assert_eq!(read(&[("x-should-retry", "false")]).should, Some(false));
        assert_eq!(read(&[("x-should-retry", "true")]).should, Some(true));
        assert_eq!(read(&[("x-should-retry", "perhaps")]).should, None);
        let now = SystemTime::now();
        assert_eq!(Advice::read(&HeaderMap::new(), now), Advice::default());
    }
}
