//! The key of a provider, which cannot be printed.

use std::fmt;

use http::HeaderValue;

/// A key that lets requests in at a provider.
#[derive(Clone)]
pub struct ApiKey(String);

/// A text that cannot be sent as a key. The text is not in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key is empty or holds characters that no key has: copy it again, without line breaks")]
pub struct InvalidKey;

impl ApiKey {
    /// Takes a key as people paste it: blanks around it do not count.
    pub fn new(text: &str) -> Result<Self, InvalidKey> {
        let text = text.trim();
        let is_sendable = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || !is_sendable {
            return Err(InvalidKey);
        }
        Ok(Self(text.to_owned()))
    }

    /// The value of a header with the key behind a prefix, which nobody prints.
    pub(super) fn header(&self, prefix: &str) -> HeaderValue {
        let value = HeaderValue::from_str(&format!("{prefix}{}", self.0));
        // What the constructor lets through is always a valid value.
        let mut value = value.unwrap_or(HeaderValue::from_static(""));
        value.set_sensitive(true);
        value
    }

    /// A text of somebody else without the key in it.
    pub(super) fn removed_from(&self, text: &str) -> String {
        text.replace(&self.0, "…")
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ApiKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::{ApiKey, InvalidKey};

    #[test]
    fn a_key_is_taken_without_its_blanks_and_never_shown() {
        let key = ApiKey::new(" sk-secret\n").unwrap();
        assert_eq!(key.header("Bearer "), "Bearer sk-secret");
        assert!(key.header("").is_sensitive());
        assert_eq!(
            format!("{key:?} {:?}", key.header("")),
            "ApiKey(…) Sensitive"
        );
        assert_eq!(key.removed_from("no key sk-secret!"), "no key …!");
    }

    #[test]
    fn what_cannot_be_a_key_is_refused() {
        for text in ["", "  ", "a b", "a\nb", "schlüssel"] {
            assert_eq!(ApiKey::new(text).unwrap_err(), InvalidKey, "{text:?}");
        }
    }
}
