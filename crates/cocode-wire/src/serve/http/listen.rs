//! Streams that a client of a session opens by GET, new or broken ones, and the end of a session by
//! DELETE.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::accept::Accepts;
use super::body::Body;
use super::event_id::{EventId, requests};
use super::events::push_event;
use super::guests::{Length, Visitor};
use super::handler::{Next, Shared, visit};
use super::legacy_sse;
use super::names::{LAST_EVENT_ID, PROTOCOL_VERSION, SESSION_ID};
use super::post::{NoSession, endpoint, find};
use super::reply::{self, Reply};
use super::revival::{self, Arrival, revive};
use super::session::{Ground, Session, Transport};
use super::session_events::{SessionEvents, take_work};
use super::streams::STANDALONE;
use crate::encode;
use crate::serve::lost::gateway_lost;

/// Answers a GET to the endpoint of that name.
pub(super) fn get(
    shared: &Arc<Shared>,
    name: Option<String>,
    visitor: Visitor,
    parts: Parts,
) -> Next {
    let headers = &parts.headers;
    let accepts = Accepts::of(headers);
    let has_session = headers.contains_key(SESSION_ID);
    if !has_session && !headers.contains_key(PROTOCOL_VERSION) {
        if accepts.names_events {
            // Clients of the oldest revision begin like this.
            return Next::Done(legacy_sse::open(shared, name, visitor, &parts));
        }
        let visit = visit(&parts, visitor.guest.as_ref());
        return Next::Done(match endpoint(&*shared.site, name.as_deref(), &visit) {
            Ok(_there) => reply::wants_no_events("GET, POST, DELETE"),
            Err(reply) => *reply,
        });
    }
    if let Err(reply) = check_version(shared, headers) {
        return Next::Done(*reply);
    }
    if !accepts.events {
        let message = "The client does not take text/event-stream";
        return Next::Done(reply::refusal(StatusCode::NOT_ACCEPTABLE, message));
    }
    let ground = Ground {
        endpoint: name,
        transport: Transport::Streamable,
        visitor,
    };
    let (id, keeper) = match find(shared, headers, &ground) {
        Ok(session) => return Next::Done(open(shared, &session, &ground, headers)),
        Err(NoSession::Refused(reply)) => return Next::Done(*reply),
        Err(NoSession::NotHere(id, keeper)) => (id, keeper),
    };
    let visit = visit(&parts, ground.visitor.guest.as_ref());
    let Ok(endpoint) = endpoint(&*shared.site, ground.endpoint.as_deref(), &visit) else {
        return Next::Done(reply::session_not_found());
    };
    let shared = Arc::clone(shared);
    Next::Later(Box::pin(async move {
        let arrival = Arrival {
            id,
            ground: ground.clone(),
            endpoint,
            headers: parts.headers.clone(),
        };
        match revive(&shared, &keeper, arrival).await {
            Ok(session) => open(&shared, &session, &ground, &parts.headers),
            Err(reply) => *reply,
        }
    }))
}

/// Opens the stream that the client wants, or goes on with one that broke.
fn open(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    ground: &Ground,
    headers: &HeaderMap,
) -> Reply {
    let unknown = || reply::refusal(StatusCode::BAD_REQUEST, "Last-Event-ID is unknown");
    let last = match headers.get(LAST_EVENT_ID).map(HeaderValue::to_str) {
        None => None,
        Some(text) => {
            let id = text.ok().and_then(|text| EventId::parse(text.trim()));
            let Some(id) = id else {
                return unknown();
            };
            Some(id)
        }
    };
    // Streams of the session as it was elsewhere are not here.
    let is_from_here = |id: &EventId<'_>| id.origin == session.streams.origin;
    if let Some(id) = last.filter(|id| !is_from_here(id) && id.stream != STANDALONE) {
        return lost(&id).unwrap_or_else(unknown);
    }
    let last = last.filter(is_from_here);
    let stream = last.map_or(STANDALONE, |id| id.stream);
    let Some(turn) = session.streams.attach(stream, last.map(|id| id.place)) else {
        return unknown();
    };
    // The work on a request must not hang on a connection that its client has given up.
    if let Some(serving) = turn.work.as_ref().and_then(take_work)
        && let Some(active) = session.begin_request(usize::MAX)
    {
        session.adopt(serving, Some(stream), active);
    }
    let interval = shared.options.limits.comment_interval;
    let mut events = SessionEvents::new(session, stream, turn.reader, interval)
        .staying(shared.guests.open(&ground.visitor, Length::Standing));
    if last.is_none() && session.primes_streams() {
        events = events.opening_with(session.streams.priming(stream, turn.after));
    }
    reply::events(Body::session(events))
}

/// What is said on a stream whose server is gone: that its requests are lost. `None` if it does not say
/// which they are.
fn lost(id: &EventId<'_>) -> Option<Reply> {
    if id.place == EventId::END {
        // It was said, and nothing follows. With this status, clients do not come back.
        return Some(reply::not_allowed("POST, DELETE"));
    }
    let requests = requests(id.about);
    let error = gateway_lost();
    let end = EventId {
        place: EventId::END,
        ..*id
    };
    let mut text = Vec::new();
    for request in &requests {
        let answer = encode::error_response(request, &error);
        push_event(&mut text, &answer, Some(end));
    }
    (!requests.is_empty()).then(|| reply::events(Body::whole(text.into())))
}

/// Answers a DELETE to the endpoint of that name.
pub(super) fn delete(
    shared: &Arc<Shared>,
    name: Option<String>,
    visitor: Visitor,
    headers: &HeaderMap,
) -> Next {
    if let Err(reply) = check_version(shared, headers) {
        return Next::Done(*reply);
    }
    let ground = Ground {
        endpoint: name,
        transport: Transport::Streamable,
        visitor,
    };
    match find(shared, headers, &ground) {
        Err(NoSession::Refused(reply)) => Next::Done(*reply),
        Err(NoSession::NotHere(id, keeper)) => Next::Later(Box::pin(async move {
            if revival::end(&keeper, &id, &ground).await {
                reply::empty(StatusCode::NO_CONTENT)
            } else {
                reply::session_not_found()
            }
        })),
        Ok(session) => {
            shared.sessions.end(&session);
            match (&shared.keeper, session.key()) {
                (Some(keeper), Some(key)) => {
                    let keeper = Arc::clone(keeper);
                    Next::Later(Box::pin(async move {
                        keeper.end(key).await;
                        reply::empty(StatusCode::NO_CONTENT)
                    }))
                }
                _ => Next::Done(reply::empty(StatusCode::NO_CONTENT)),
            }
        }
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
