//! The answers of the transport itself, and the heads of all others.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::body::Body;
use super::site::{Site, Visit};
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

/// Turns a request away for something that stays, because its guest has too much of that already.
pub(super) fn no_seat(most: usize) -> Reply {
    let message = format!(
        "You may have {most} sessions, WebSockets and listening streams open at a time, and have them: end one first"
    );
    let error = RpcError::new(code::INTERNAL_ERROR, message);
    let mut response = failure(StatusCode::TOO_MANY_REQUESTS, None, &error);
    let later = HeaderValue::from_static("60");
    response.headers_mut().insert(RETRY_AFTER, later);
    response
}

/// Turns a request away for a session that is not there, or belongs to somebody else.
pub(super) fn session_not_found() -> Reply {
    refusal(StatusCode::NOT_FOUND, "Session not found")
}

/// More names than this help nobody.
const MAX_NAMES: usize = 20;

/// Turns a request away for an endpoint that is not there, and says which are.
pub(super) fn no_endpoint(site: &dyn Site, visit: &Visit<'_>) -> Reply {
    let names = site.names_for(visit);
    if names.is_empty() {
        return refusal(StatusCode::NOT_FOUND, "There is no such endpoint");
    }
    let more = names.len().saturating_sub(MAX_NAMES);
    let names: Vec<&str> = names.iter().take(MAX_NAMES).map(String::as_str).collect();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let names = names.join(", ");
    let message = format!("There is no such endpoint: there is one for {names}{more}");
    refusal(StatusCode::NOT_FOUND, &message)
}

/// Turns a GET away that wants no events.
pub(super) fn wants_no_events(allowed: &'static str) -> Reply {
    not_allowed_since(
        allowed,
        "Requests are sent here by POST; a GET has to say that it accepts text/event-stream",
    )
}

/// Turns a method away that the path does not know.
pub(super) fn not_allowed(allowed: &'static str) -> Reply {
    not_allowed_since(allowed, "Method not allowed")
}

fn not_allowed_since(allowed: &'static str, message: &str) -> Reply {
    let mut response = refusal(StatusCode::METHOD_NOT_ALLOWED, message);
    let headers = response.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
