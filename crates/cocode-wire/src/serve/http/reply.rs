//! The answers of the transport itself, and the heads of all others.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::Body;
use crate::encode;
use crate::raw::RawJson;
use crate::rpc_error::{RpcError, code};

pub(super) type Reply = Response<Body>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// One JSON document.
pub(super) fn json(status: StatusCode, text: Bytes) -> Reply {
    let mut response = Response::new(Body::whole(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A stream of events, or a whole one.
pub(super) fn events(body: Body) -> Reply {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// Nothing but a status.
pub(super) fn empty(status: StatusCode) -> Reply {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A failed answer to request `id`, or to something that had none.
pub(super) fn failure(status: StatusCode, id: Option<&RawJson>, error: &RpcError) -> Reply {
    let null = RawJson::from_verified(Bytes::from_static(b"null"));
    let text = encode::error_response(id.unwrap_or(&null), error);
    json(status, text.into())
}

/// Turns a request away that is wrong in itself.
pub(super) fn refusal(status: StatusCode, message: &str) -> Reply {
    failure(status, None, &RpcError::new(code::INVALID_REQUEST, message))
}

/// Turns a request away that may be sent again later.
pub(super) fn unavailable(message: &str) -> Reply {
    let error = RpcError::new(code::INTERNAL_ERROR, message);
    let mut response = failure(StatusCode::SERVICE_UNAVAILABLE, None, &error);
    let soon = HeaderValue::from_static("5");
    response.headers_mut().insert(RETRY_AFTER, soon);
    response
}

/// Turns a method away that the path does not know.
pub(super) fn not_allowed(allowed: &'static str) -> Reply {
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed");
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
