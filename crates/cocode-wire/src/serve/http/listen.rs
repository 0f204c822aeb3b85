//! Streams that a client of a session opens by GET, new or broken ones, and the end of a session by
//! DELETE.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::accept::Accepts;
use super::body::Body;
use super::events::{EventId, priming};
use super::guests::{Length, Visitor};
use super::handler::{Shared, visit};
use super::legacy_sse;
use super::names::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use super::post::{endpoint, find};
use super::reply::{self, Reply};
use super::session::{Ground, Transport};
use super::session_events::{SessionEvents, take_work};
use super::streams::STANDALONE;

/// Answers a GET to the endpoint of that name.
pub(super) fn get(
    shared: &Arc<Shared>,
    name: Option<String>,
    visitor: Visitor,
    parts: &Parts,
) -> Reply {
    let headers = &parts.headers;
    let accepts = Accepts::of(headers);
    let has_session = headers.contains_key(SESSION_ID);
    if !has_session && !headers.contains_key(PROTOCOL_VERSION) {
        if accepts.names_events {
            // Clients of the oldest revision begin like this.
            return legacy_sse::open(shared, name, visitor, parts);
        }
        let visit = visit(parts, visitor.guest.as_ref());
        return match endpoint(&*shared.site, name.as_deref(), &visit) {
            Ok(_there) => reply::wants_no_events("GET, POST, DELETE"),
            Err(reply) => *reply,
        };
    }
    if let Err(reply) = check_version(shared, headers) {
        return *reply;
    }
    if !accepts.events {
        let message = "The client does not take text/event-stream";
        return reply::refusal(StatusCode::NOT_ACCEPTABLE, message);
    }
    let ground = Ground {
        endpoint: name,
        transport: Transport::Streamable,
        visitor,
    };
    let session = match find(shared, headers, &ground) {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    let last = match headers.get(LAST_EVENT_ID).map(http::HeaderValue::to_str) {
        None => None,
        Some(text) => {
            let id = text.ok().and_then(|text| EventId::parse(text.trim()));
            let Some(id) = id else {
                return reply::refusal(StatusCode::BAD_REQUEST, "Last-Event-ID is unknown");
            };
            Some(id)
        }
    };
    let stream = last.map_or(STANDALONE, |id| id.stream);
    let Some(turn) = session.streams.attach(stream, last.map(|id| id.place)) else {
        return reply::refusal(StatusCode::BAD_REQUEST, "Last-Event-ID is unknown");
    };
    // The work on a request must not hang on a connection that its client has given up.
    if let Some(serving) = turn.work.as_ref().and_then(take_work)
        && let Some(active) = session.begin_request(usize::MAX)
    {
        session.adopt(serving, Some(stream), active);
    }
    let interval = shared.options.limits.comment_interval;
    let mut events = SessionEvents::new(&session, stream, turn.reader, interval)
        .staying(shared.guests.open(&ground.visitor, Length::Standing));
    if last.is_none() && session.primes_streams() {
        let place = turn.after;
        events = events.opening_with(priming(EventId { stream, place }));
    }
    reply::events(Body::session(events))
}

/// Answers a DELETE to the endpoint of that name.
pub(super) fn delete(
    shared: &Arc<Shared>,
    name: Option<String>,
    visitor: Visitor,
    headers: &HeaderMap,
) -> Reply {
    if let Err(reply) = check_version(shared, headers) {
        return *reply;
    }
    let ground = Ground {
        endpoint: name,
        transport: Transport::Streamable,
        visitor,
    };
    match find(shared, headers, &ground) {
        Ok(session) => {
            shared.sessions.end(&session);
            reply::empty(StatusCode::NO_CONTENT)
        }
        Err(reply) => *reply,
    }
}

/// Only revisions with sessions know these methods.
fn check_version(shared: &Shared, headers: &HeaderMap) -> Result<(), Box<Reply>> {
    let Some(version) = headers.get(PROTOCOL_VERSION) else {
        return Ok(());
    };
    let is = |revision: &&str| version.as_bytes() == revision.as_bytes();
    if shared.options.stateful.iter().any(is) {
        Ok(())
    } else if shared.options.stateless.iter().any(is) {
        Err(Box::new(reply::not_allowed("POST")))
    } else {
        let message = "MCP-Protocol-Version is not supported";
        Err(Box::new(reply::refusal(StatusCode::BAD_REQUEST, message)))
    }
}
