//! The error member of a response, read leniently: a sloppy server still gets its say.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::raw::RawJson;

/// Codes that JSON-RPC and MCP give a meaning to.
pub mod code {
    /// The JSON could not be parsed.
    pub const PARSE_ERROR: i64 = -32700;
    /// Not a valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters do not fit.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something broke inside.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// A resource does not exist (revisions up to 2025-11-25).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Headers and body disagree (2026-07-28).
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client did not declare a capability that is needed (2026-07-28).
    pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
    /// The protocol version is not supported (2026-07-28).
    pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
    /// A URL has to be visited first (2025-11-25).
    pub const URL_ELICITATION_REQUIRED: i64 = -32042;
}

/// What a peer answered instead of a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// The code, or 0 where the peer sent none that is a number.
    pub code: i64,
    /// The message, or a description of what came in its place.
    pub message: String,
    /// Whatever the peer added.
    pub data: Option<RawJson>,
}

#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default)]
    code: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
}

impl RpcError {
    /// An error of our own making, for answering a peer.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(crate) fn lenient(raw: &RawJson) -> Self {
        let members = raw.decode::<Members<'_>>().ok();
        // A derived reader would take an array for the list of members.
        let Some(members) = members.filter(|_| raw.as_str().starts_with('{')) else {
            return Self::new(0, text_of(raw.as_str()));
        };
        let code = members
            .code
            .and_then(|code| number_in(code.get()))
            .unwrap_or(0);
        let message = members.message.map_or_else(
            || format!("the server gave no message: {raw}"),
            |message| text_of(message.get()),
        );
        Self {
            code,
            message,
            data: members.data.map(|data| raw.share(data).detached()),
        }
    }
}

/// The text of a JSON string, or any other JSON as it stands.
fn text_of(json: &str) -> String {
    serde_json::from_str::<Cow<'_, str>>(json).map_or_else(|_| json.to_owned(), Cow::into_owned)
}

/// `-32601`, `"-32601"` and `-32601.0` are the same number to a lenient reader.
fn number_in(json: &str) -> Option<i64> {
    let text = json.trim_matches('"');
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}
