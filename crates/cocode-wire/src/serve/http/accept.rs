//! What a client says it can read, and what it says it sends.

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

/// The forms of an answer that a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a thing that a client says"
)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
    /// Whether it asks for events by name, as only clients of MCP do.
    pub(super) names_events: bool,
    /// Whether it names events before JSON, as a client does that would rather have them.
    pub(super) prefers_events: bool,
}

impl Accepts {
    /// Whoever says nothing takes anything.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut accepts = Self {
            json: false,
            events: false,
            names_events: false,
            prefers_events: false,
        };
        let mut said_something = false;
        for value in headers.get_all(ACCEPT) {
            said_something = true;
            // What nearly every client says.
            if value == "application/json, text/event-stream" {
                return Self {
                    json: true,
                    events: true,
                    names_events: true,
                    prefers_events: false,
                };
            }
            let text = value.to_str().unwrap_or_default();
            for range in text.split(',') {
                accepts.add(range);
            }
        }
        if !said_something {
            return Self {
                json: true,
                events: true,
                names_events: false,
                prefers_events: false,
            };
        }
        accepts
    }

    fn add(&mut self, range: &str) {
        let mut parts = range.split(';');
        let name = parts.next().unwrap_or_default().trim();
        if parts.any(is_refusal) {
            return;
        }
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("application/json") || is("application/*") {
            self.json = true;
        } else if is("text/event-stream") {
            self.events = true;
            self.names_events = true;
            self.prefers_events = !self.json;
        } else if is("text/*") {
            self.events = true;
        } else if is("*/*") {
            self.json = true;
            self.events = true;
        }
    }
}

/// `q=0` and `q=0.000` mean "anything but this".
fn is_refusal(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    let value = value.trim();
    name.trim().eq_ignore_ascii_case("q")
        && value.starts_with('0')
        && value.bytes().all(|byte| matches!(byte, b'0' | b'.'))
}

/// Whether a body says that it is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        return false;
    };
    if value == HeaderValue::from_static("application/json") {
        return true;
    }
    let text = value.to_str().unwrap_or_default();
    let name = text.split(';').next().unwrap_or_default();
    name.trim().eq_ignore_ascii_case("application/json")
}

#[cfg(test)]
mod tests {
    use super::{Accepts, is_json};
    use http::HeaderMap;

    #[test]
    fn ranges_and_refusals_are_understood() {
        for (text, json, events, names_events, prefers_events) in [
            (
                "application/json, text/event-stream",
                true,
                true,
                true,
                false,
            ),
            (
                "text/event-stream, application/json",
                true,
                true,
                true,
                true,
            ),
            ("*/*", true, true, false, false),
            ("application/*", true, false, false, false),
            ("text/*", false, true, false, false),
            (
                "Application/JSON ; charset=utf-8",
                true,
                false,
                false,
                false,
            ),
            ("text/event-stream", false, true, true, true),
            (
                "application/json, text/event-stream;q=0",
                true,
                false,
                false,
                false,
            ),
            ("application/json;q=0.000", false, false, false, false),
            ("text/html", false, false, false, false),
            ("", false, false, false, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("accept", text.parse().unwrap());
            let expected = Accepts {
                json,
                events,
                names_events,
                prefers_events,
            };
            assert_eq!(Accepts::of(&headers), expected, "for {text}");
        }
        let anything = Accepts {
            json: true,
            events: true,
            names_events: false,
            prefers_events: false,
        };
        assert_eq!(Accepts::of(&HeaderMap::new()), anything);
    }

    #[test]
    fn only_json_is_json() {
        for (text, expected) in [
            ("application/json", true),
            ("Application/Json; charset=UTF-8", true),
            ("text/plain", false),
            ("application/jsonp", false),
            ("text/plain; application/json", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", text.parse().unwrap());
            assert_eq!(is_json(&headers), expected, "for {text}");
            headers.append("content-type", "application/json".parse().unwrap());
            assert!(!is_json(&headers), "for two of them");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
