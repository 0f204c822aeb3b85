//! HTTP+SSE, the transport of revision 2024-11-05: one stream carries everything to the client, and
//! what the client sends is only acknowledged where it arrives.

use std::sync::Arc;

use http::StatusCode;
use http::request::Parts;
use hyper::body::Incoming;

use super::accept::is_json;
use super::body::Body;
use super::events;
use super::guests::{Length, Visitor};
use super::handler::{Shared, visit};
use super::post::{endpoint, parse, too_many_requests};
use super::receive::receive;
use super::reply::{self, Reply};
use super::session::{Ground, Transport};
use super::session_events::SessionEvents;
use super::streams::{Outlet, STANDALONE};
use crate::frame::FrameKind;
use crate::serve::service::Asked;

/// Where clients post their messages.
pub(super) const MESSAGES: &str = "/messages";
const PARAMETER: &str = "sessionId=";

/// Opens the stream of a new session.
pub(super) fn open(
    shared: &Arc<Shared>,
    name: Option<String>,
    visitor: Visitor,
    parts: &Parts,
) -> Reply {
    let visit = visit(parts, visitor.guest.as_ref());
    let endpoint = match endpoint(&*shared.site, name.as_deref(), &visit) {
        Ok(endpoint) => endpoint,
        Err(reply) => return *reply,
    };
    let visitor = match shared.seat(visitor) {
        Ok(visitor) => visitor,
        Err(reply) => return *reply,
    };
    let ground = Ground {
        endpoint: name,
        transport: Transport::Sse,
        visitor,
    };
    let Some(session) = shared.sessions.open(&*endpoint, ground, None) else {
        return reply::unavailable("There are too many sessions");
    };
    let Some(turn) = session.streams.attach(STANDALONE, None) else {
        return reply::unavailable("The session has ended");
    };
    if !shared.sessions.admit(&session, &shared.guests) {
        return reply::session_not_found();
    }
    let path = format!("{MESSAGES}?{PARAMETER}{}", session.id);
    let interval = shared.options.limits.comment_interval;
    let events = SessionEvents::new(&session, STANDALONE, turn.reader, interval)
        .staying(
            shared
                .guests
                .open(&session.ground.visitor, Length::Standing),
        )
        .opening_with(events::endpoint(&path))
        .ending(Arc::clone(&shared.sessions));
    reply::events(Body::session(events))
}

/// Takes a message of a session.
pub(super) async fn message(
    shared: &Arc<Shared>,
    visitor: &Visitor,
    parts: Parts,
    body: Incoming,
) -> Reply {
    let headers = parts.headers;
    if !is_json(&headers) {
        let message = "The content type is not application/json";
        return reply::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    let query = parts.uri.query().unwrap_or_default();
    let id = query
        .split('&')
        .find_map(|pair| pair.strip_prefix(PARAMETER));
    let Some(id) = id else {
        return reply::refusal(StatusCode::BAD_REQUEST, "sessionId is missing");
    };
    let Some(session) = shared.sessions.find_sse(id, visitor) else {
        return reply::session_not_found();
    };
    let limits = &shared.options.limits;
    let bytes = match receive(body, limits).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.reply(),
    };
    let frame = match parse(&bytes) {
        Ok(frame) => frame,
        Err(reply) => return *reply,
    };
    match frame.kind() {
        FrameKind::Notification => session.conversation.notification(frame),
        FrameKind::Response => session.conversation.response(frame),
        FrameKind::Request => {
            let Some(active) = session.begin_request(limits.max_session_requests) else {
                return too_many_requests();
            };
            session.client.learn(&frame);
            let stream = Arc::new(Outlet(Arc::clone(&session.streams)));
            let conversation = Arc::clone(&session.conversation);
            let serving = conversation.request(Asked {
                frame,
                headers,
                stream,
            });
            session.work_aside(serving, active);
        }
    }
    reply::empty(StatusCode::ACCEPTED)
}
