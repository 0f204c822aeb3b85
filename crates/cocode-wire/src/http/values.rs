//! Header values made from names, URIs and tool arguments.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// Marks a value that is carried in base64.
const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// `text` as a header value: plain where that is safe, otherwise in the base64 form that the
/// specification defines for `Mcp-Name` and `Mcp-Param-*`.
pub fn header_value(text: &str) -> HeaderValue {
    let safe = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e))
        && text.trim() == text
        && !(text.starts_with(PREFIX) && text.ends_with(SUFFIX));
    let plain = if safe {
        HeaderValue::from_str(text).ok()
    } else {
        None
    };
    plain.unwrap_or_else(|| {
        let encoded = format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text));
        // Base64 and the markers are visible ASCII, which is always a valid value.
        HeaderValue::from_str(&encoded).unwrap_or(HeaderValue::from_static(""))
    })
}

/// The text that a header value stands for, without the blanks around it: the way back from
/// [`header_value`]. Nothing if the value is no such text: bytes that are not visible ASCII, or base64
/// that is none.
pub fn header_text(value: &HeaderValue) -> Option<Cow<'_, str>> {
    decoded(value.to_str().ok()?.trim_matches([' ', '\t']))
}

/// The same, of a value that is known to be text.
pub(crate) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    let encoded = text
        .strip_prefix(PREFIX)
        .and_then(|text| text.strip_suffix(SUFFIX));
    match encoded {
        None => Some(Cow::Borrowed(text)),
        Some(encoded) => {
            let bytes = STANDARD.decode(encoded).ok()?;
            String::from_utf8(bytes).ok().map(Cow::Owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{header_text, header_value};

    #[test]
    fn values_follow_the_table_of_the_specification() {
        for (text, expected) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("us west 1", "us west 1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(header_value(text), expected, "for {text:?}");
            assert_eq!(header_text(&header_value(text)).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_stands_for_no_text_is_none() {
        for bad in [&b"=?base64?*?="[..], b"=?base64?/w==?=", b"caf\xe9"] {
            let value = http::HeaderValue::from_bytes(bad).unwrap();
            assert_eq!(header_text(&value), None, "{value:?}");
        }
    }

    #[test]
    fn blanks_around_a_value_mean_nothing() {
        let value = http::HeaderValue::from_static(" \t=?base64?IHBhZGRlZCA=?= ");
        assert_eq!(header_text(&value).as_deref(), Some(" padded "));
    }
}
