//! What somebody is told who is not let in. It never holds what they came with.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;

/// Why a request is not let in, and all that an answer needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: &'static str,
    challenge: Option<HeaderValue>,
    retry_after: Option<Duration>,
}

/// What a client is told about how to come in, as the value of `WWW-Authenticate`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Challenge {
    pub(crate) error: Option<&'static str>,
    pub(crate) description: Option<String>,
    pub(crate) scope: Option<String>,
    pub(crate) resource_metadata: Option<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            hint: "",
            challenge: None,
            retry_after: None,
        }
    }

    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    pub(crate) fn challenge(mut self, challenge: &Challenge) -> Self {
        self.challenge = challenge.value();
        self
    }

    pub(crate) fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// A word for what is wrong, such as `invalid_token`.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What is wrong, for people.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What could be done about it, where that can be said.
    pub fn advice(&self) -> Option<&'static str> {
        Some(self.hint).filter(|hint| !hint.is_empty())
    }

    /// When it is worth to try again, where that is known.
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The value of `WWW-Authenticate`, where there is one.
    pub fn www_authenticate(&self) -> Option<&HeaderValue> {
        self.challenge.as_ref()
    }

    /// The headers of the answer.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
        let never = HeaderValue::from_static("no-store");
        headers.insert(header::CACHE_CONTROL, never);
        if let Some(challenge) = &self.challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge.clone());
        }
        if let Some(after) = self.retry_after {
            let seconds = HeaderValue::from(after.as_secs().max(1));
            headers.insert(header::RETRY_AFTER, seconds);
        }
        headers
    }

    /// The body of the answer.
    pub fn body(&self) -> Bytes {
        let hints: Vec<&str> = [self.hint]
            .into_iter()
            .filter(|hint| !hint.is_empty())
            .collect();
        let error = json!({ "code": self.code, "message": self.message, "hints": hints });
        Bytes::from(json!({ "error": error }).to_string())
    }
}

impl Challenge {
    /// As it stands in the header. Parts are texts of ours or were checked to fit.
    fn value(&self) -> Option<HeaderValue> {
        let parts = [
            ("error", self.error),
            ("error_description", self.description.as_deref()),
            ("scope", self.scope.as_deref()),
            ("resource_metadata", self.resource_metadata.as_deref()),
        ];
        let mut text = "Bearer realm=\"cocode\"".to_owned();
        for (name, value) in parts {
            if let Some(value) = value.filter(|value| is_quotable(value)) {
                text.extend([", ", name, "=\"", value, "\""]);
            }
        }
        HeaderValue::try_from(text).ok()
    }
}

/// Whether a text can stand in quotes as it is.
fn is_quotable(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::{Challenge, Refusal};

    #[test]
    fn an_answer_has_all_that_a_client_needs() {
        let challenge = Challenge {
            error: Some("insufficient_scope"),
            description: Some("with \"quotes\"".to_owned()),
            scope: Some("a b".to_owned()),
            resource_metadata: Some("https://gateway.example/.well-known/x".to_owned()),
        };
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "insufficient_scope", "no")
            .challenge(&challenge)
            .hint("do")
            .retry_after(Duration::from_millis(10));
        let headers = refusal.headers();
        assert_eq!(
            headers["www-authenticate"],
            "Bearer realm=\"cocode\", error=\"insufficient_scope\", scope=\"a b\", \
             resource_metadata=\"https://gateway.example/.well-known/x\""
        );
        assert_eq!(headers["retry-after"], "1");
        assert_eq!(headers["cache-control"], "no-store");
        assert_eq!(
            refusal.body(),
            r#"{"error":{"code":"insufficient_scope","hints":["do"],"message":"no"}}"#
        );
    }
}
