//! One JSON-RPC message: its bytes and where its parts are. Nothing inside is decoded.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::raw::RawJson;
use crate::rpc_error::RpcError;
use crate::scan::{self, Parts};

/// A message as it arrived. The envelope is read leniently (a missing `jsonrpc`, an `error: null`
/// beside a result and unknown members are all accepted); whoever needs the inside decodes it.
#[derive(Clone, Debug)]
pub struct Frame {
    bytes: Bytes,
    id: Option<Range<usize>>,
    method: Option<Method>,
    params: Option<Range<usize>>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
    /// Whether `jsonrpc` is `"2.0"`.
    has_version: bool,
}

/// What role a frame plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// Expects an answer.
    Request,
    /// Expects none.
    Notification,
    /// Answers a request.
    Response,
}

/// Why bytes are not a frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// Not JSON, not UTF-8, or not a JSON object.
    #[error("not a JSON-RPC message")]
    NotJson(#[source] serde_json::Error),
    /// JSON, but not an object.
    #[error("not a JSON object")]
    NotAnObject,
    /// An object that is neither a request, a notification nor a response.
    #[error("a JSON object without method, result or error")]
    NoRole,
    /// A message of another version of JSON-RPC, or of none.
    #[error("`jsonrpc` is not \"2.0\"")]
    Version,
}

#[derive(Clone, Debug)]
enum Method {
    Plain(Range<usize>),
    Unescaped(Box<str>),
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Text<'a>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    jsonrpc: Option<&'a RawValue>,
}

/// A string that is borrowed where it holds no escapes; `Option<Cow<str>>` alone always copies.
#[derive(Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Keeps `"result": null` apart from no result at all.
fn present<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

impl Frame {
    /// Reads the envelope of one message.
    pub fn parse(bytes: Bytes) -> Result<Self, FrameError> {
        let Some(parts) = scan::parts(&bytes) else {
            return Self::parse_odd(bytes);
        };
        let Parts {
            id,
            method,
            params,
            result,
            error,
            has_version,
        } = parts;
        if method.is_none() && result.is_none() && error.is_none() {
            return Err(FrameError::NoRole);
        }
        Ok(Self {
            bytes,
            id,
            method: method.map(Method::Plain),
            params,
            result,
            error,
            has_version,
        })
    }

    /// Reads the envelope of a message that is not as messages are, or is none.
    fn parse_odd(bytes: Bytes) -> Result<Self, FrameError> {
        let envelope: Envelope<'_> = serde_json::from_slice(&bytes).map_err(FrameError::NotJson)?;
        // A derived reader would take an array for the list of members.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(FrameError::NotAnObject);
        }
        let base = bytes.as_ptr() as usize;
        let range_of = |part: &str| {
            let start = part.as_ptr() as usize - base;
            start..start + part.len()
        };
        let raw_range = |part: Option<&RawValue>| part.map(|raw| range_of(raw.get()));
        let id = raw_range(envelope.id);
        let params = raw_range(envelope.params);
        let error = raw_range(envelope.error);
        // A null result beside an error is how some servers spell "no result".
        let result = raw_range(
            envelope
                .result
                .filter(|raw| error.is_none() || raw.get() != "null"),
        );
        let method = envelope.method.map(|method| match method.0 {
            Cow::Borrowed(text) => Method::Plain(range_of(text)),
            Cow::Owned(text) => Method::Unescaped(text.into_boxed_str()),
        });
        if method.is_none() && result.is_none() && error.is_none() {
            return Err(FrameError::NoRole);
        }
        Ok(Self {
            has_version: envelope.jsonrpc.is_some_and(|raw| raw.get() == r#""2.0""#),
            bytes,
            id,
            method,
            params,
            result,
            error,
        })
    }

    /// The same for servers, which accept no other version of JSON-RPC.
    pub fn parse_strict(bytes: Bytes) -> Result<Self, FrameError> {
        let frame = Self::parse(bytes)?;
        if frame.has_version {
            Ok(frame)
        } else {
            Err(FrameError::Version)
        }
    }

    /// The members of a JSON-RPC batch, or the one message that `bytes` is.
    pub fn parse_batch(bytes: &Bytes) -> Result<Vec<Result<Self, FrameError>>, FrameError> {
        let members: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(FrameError::NotJson)?;
        let part = |raw: &RawValue| bytes.slice_ref(raw.get().as_bytes());
        Ok(members
            .into_iter()
            .map(|raw| Self::parse(part(raw)))
            .collect())
    }

    /// Request, notification or response.
    pub fn kind(&self) -> FrameKind {
        match (&self.method, &self.id) {
            (None, _) => FrameKind::Response,
            (Some(_), Some(_)) => FrameKind::Request,
            (Some(_), None) => FrameKind::Notification,
        }
    }

    /// The method of a request or notification, empty for a response.
    pub fn method(&self) -> &str {
        match &self.method {
            Some(Method::Plain(range)) => {
                std::str::from_utf8(&self.bytes[range.clone()]).unwrap_or_default()
            }
            Some(Method::Unescaped(text)) => text,
            None => "",
        }
    }

    /// The id as it was written.
    pub fn id(&self) -> Option<RawJson> {
        self.part(self.id.as_ref())
    }

    /// The id as one of ours: a whole number, or the digits of one in a string, which is what
    /// servers send that keep ids as text.
    pub fn numeric_id(&self) -> Option<u64> {
        let text = &self.bytes[self.id.clone()?];
        let text = text
            .strip_prefix(b"\"")
            .and_then(|t| t.strip_suffix(b"\""))
            .unwrap_or(text);
        let text = std::str::from_utf8(text).ok()?;
        text.strip_suffix(".0").unwrap_or(text).parse().ok()
    }

    /// The parameters of a request or notification.
    pub fn params(&self) -> Option<RawJson> {
        self.part(self.params.as_ref())
    }

    /// The result of a successful response.
    pub fn result(&self) -> Option<RawJson> {
        self.part(self.result.as_ref())
    }

    /// The error of a failed response. Takes whatever the peer put there.
    pub fn error(&self) -> Option<RpcError> {
        self.part(self.error.as_ref())
            .map(|raw| RpcError::lenient(&raw))
    }

    /// Whether this answers a request with an error.
    pub fn is_error(&self) -> bool {
        self.error.is_some()
    }

    /// The whole message.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    fn part(&self, range: Option<&Range<usize>>) -> Option<RawJson> {
        range.map(|range| RawJson::from_verified(self.bytes.slice(range.clone())))
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
