//! Requests that stand alone (2026-07-28): everything about them is in the request itself, twice
//! in part, and both times must say the same.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::names::{METHOD, NAME, PROTOCOL_VERSION};
use super::options::HttpServerOptions;
use crate::frame::Frame;
use crate::http::values::decoded;
use crate::raw::RawJson;
use crate::rpc_error::{RpcError, code};

/// What a request says about itself in its body.
#[derive(Debug, Default)]
pub(super) struct Claims<'a> {
    /// The revision it is written in.
    pub(super) version: Option<Cow<'a, str>>,
    has_capabilities: bool,
    name: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(rename = "taskId", borrow, default)]
    task: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", borrow, default)]
    version: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", borrow, default)]
    capabilities: Option<&'a RawValue>,
}

/// Which member of the parameters a request is named after.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Name,
    Uri,
    Task,
}

fn named(method: &str) -> Option<Named> {
    match method {
        "tools/call" | "prompts/get" => Some(Named::Name),
        "resources/read" => Some(Named::Uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some(Named::Task),
        _ => None,
    }
}

impl<'a> Claims<'a> {
    /// Reads them from the parameters of a request of that method. What cannot be read
    /// unambiguously, because it is there twice for instance, is not there.
    pub(super) fn of(method: &str, params: Option<&'a RawJson>) -> Self {
        let Some(params) = params.and_then(|params| object::<Params<'_>>(params.as_bytes())) else {
            return Self::default();
        };
        let name = match named(method) {
            Some(Named::Name) => params.name,
            Some(Named::Uri) => params.uri,
            Some(Named::Task) => params.task,
            None => None,
        };
        let meta = params.meta;
        let meta = meta.and_then(|meta| object::<Meta<'_>>(meta.get().as_bytes()));
        let version = meta.as_ref().and_then(|meta| meta.version);
        let capabilities = meta.as_ref().and_then(|meta| meta.capabilities);
        Self {
            version: version.and_then(text),
            has_capabilities: capabilities.is_some_and(|raw| raw.get().starts_with('{')),
            name: name.and_then(text),
        }
    }
}

/// A derived reader would take an array for the list of members.
fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    if json.first() != Some(&b'{') {
        return None;
    }
    serde_json::from_slice(json).ok()
}

/// The text of a JSON string, which is borrowed where it holds no escapes.
fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// Checks a request or notification against its headers, in the order in which a client can mend
/// what is wrong.
pub(super) fn check(
    frame: &Frame,
    claims: &Claims<'_>,
    headers: &HeaderMap,
    options: &HttpServerOptions,
) -> Result<(), RpcError> {
    let header = one(headers, &PROTOCOL_VERSION)?;
    let version = match (header, claims.version.as_deref()) {
        (None, _) => return Err(missing(&PROTOCOL_VERSION)),
        (Some(header), Some(body)) if header != body => {
            return Err(mismatch(&PROTOCOL_VERSION, header, body));
        }
        (Some(header), _) => header,
    };
    if !options.stateless.contains(&version) {
        return Err(unsupported(version, options));
    }
    if frame.id().is_none() {
        // No revision says what headers a notification has.
        return Ok(());
    }
    if claims.version.is_none() {
        return Err(no_meta("protocolVersion"));
    }
    let method = frame.method();
    match one(headers, &METHOD)? {
        None => return Err(missing(&METHOD)),
        Some(header) if header != method => return Err(mismatch(&METHOD, header, method)),
        Some(_same) => {}
    }
    if named(method).is_some() {
        check_name(claims, headers)?;
    }
    if !claims.has_capabilities {
        return Err(no_meta("clientCapabilities"));
    }
    Ok(())
}

fn check_name(claims: &Claims<'_>, headers: &HeaderMap) -> Result<(), RpcError> {
    let header = one(headers, &NAME)?;
    match (header, claims.name.as_deref()) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(missing(&NAME)),
        (Some(header), None) => Err(mismatch(&NAME, header, "")),
        (Some(header), Some(body)) => {
            let named = decoded(header).ok_or_else(|| malformed(&NAME))?;
            if named == body {
                Ok(())
            } else {
                Err(mismatch(&NAME, header, body))
            }
        }
    }
}

/// The only value of a header, without the blanks around it.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(malformed(name));
    }
    let text = value.to_str().map_err(|_opaque| malformed(name))?;
    Ok(Some(text.trim_matches([' ', '\t'])))
}

fn missing(name: &HeaderName) -> RpcError {
    let message = format!("Header mismatch: the {name} header is missing");
    RpcError::new(code::HEADER_MISMATCH, message)
}

fn malformed(name: &HeaderName) -> RpcError {
    let message = format!("Header mismatch: the {name} header is malformed");
    RpcError::new(code::HEADER_MISMATCH, message)
}

fn mismatch(name: &HeaderName, header: &str, body: &str) -> RpcError {
    let message =
        format!("Header mismatch: the {name} header says '{header}', and the body '{body}'");
    RpcError::new(code::HEADER_MISMATCH, message)
}

fn no_meta(key: &str) -> RpcError {
    let message = format!("Invalid params: io.modelcontextprotocol/{key} is missing from _meta");
    RpcError::new(code::INVALID_PARAMS, message)
}

fn unsupported(requested: &str, options: &HttpServerOptions) -> RpcError {
    let newest_first = options.stateless.iter().rev();
    let supported: Vec<&str> = newest_first
        .chain(options.stateful.iter().rev())
        .copied()
        .collect();
    let data = serde_json::json!({ "supported": supported, "requested": requested });
    RpcError {
        code: code::UNSUPPORTED_PROTOCOL_VERSION,
        message: "Unsupported protocol version".into(),
        data: RawJson::of(&data).ok(),
    }
}

/// The status that goes with an answer.
pub(super) fn status_of(error: Option<i64>) -> StatusCode {
    match error {
        Some(code::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(
            code::PARSE_ERROR
            | code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CLIENT_CAPABILITY
            | code::UNSUPPORTED_PROTOCOL_VERSION,
        ) => StatusCode::BAD_REQUEST,
        // Parameters that somebody further on does not like were understood here.
        Some(_) | None => StatusCode::OK,
    }
}
