//! A message that arrives by POST at an endpoint: to which era and session it belongs, and how it is
//! answered.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, StatusCode};
use hyper::body::Incoming;

use super::accept::{Accepts, is_json};
use super::answer::{Channel, First, Held, Queue, RequestEvents, SessionEvents, first};
use super::body::Body;
use super::events::{EventId, event, priming};
use super::handler::Shared;
use super::names::{PROTOCOL_VERSION, SESSION_ID};
use super::receive::receive;
use super::reply::{self, Reply};
use super::session::{Active, Ground, Session, Transport};
use super::stateless::{self, Claims};
use super::streams::Outlet;
use crate::frame::{Frame, FrameKind};
use crate::raw::RawJson;
use crate::rpc_error::{RpcError, code};
use crate::serve::service::{Answer, Asked, Endpoint, Serving, Sink};

/// The revision of a request, as far as the headers tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Said {
    Nothing,
    Stateful,
    /// Stateless, or unknown.
    Other,
}

/// A message and what came with it.
struct Incomer {
    headers: HeaderMap,
    accepts: Accepts,
    ground: Ground,
    endpoint: Arc<dyn Endpoint>,
}

/// Answers a POST to the endpoint of that name.
pub(super) async fn post(
    shared: &Arc<Shared>,
    name: Option<String>,
    headers: HeaderMap,
    body: Incoming,
) -> Reply {
    if !is_json(&headers) {
        let message = "The content type is not application/json";
        return reply::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    let accepts = Accepts::of(&headers);
    if !accepts.json && !accepts.events {
        let message = "The client takes neither application/json nor text/event-stream";
        return reply::refusal(StatusCode::NOT_ACCEPTABLE, message);
    }
    let Some(endpoint) = shared.site.endpoint(name.as_deref()) else {
        return reply::refusal(StatusCode::NOT_FOUND, "There is no such endpoint");
    };
    let bytes = match receive(body, &shared.options.limits).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.reply(),
    };
    let incomer = Incomer {
        headers,
        accepts,
        ground: Ground {
            endpoint: name,
            transport: Transport::Streamable,
        },
        endpoint,
    };
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return several(shared, incomer, &bytes).await;
    }
    match parse(bytes) {
        Ok(frame) => one(shared, incomer, frame).await,
        Err(reply) => *reply,
    }
}

/// A message, or the answer to what is none.
pub(super) fn parse(bytes: Bytes) -> Result<Frame, Box<Reply>> {
    let refuse = |code, message: &str| {
        let error = RpcError::new(code, message);
        Box::new(reply::failure(StatusCode::BAD_REQUEST, None, &error))
    };
    let frame = match Frame::parse(bytes.clone()) {
        Ok(frame) => frame,
        Err(_) if RawJson::parse(bytes).is_ok() => {
            return Err(refuse(code::INVALID_REQUEST, "Not a JSON-RPC message"));
        }
        Err(_) => return Err(refuse(code::PARSE_ERROR, "Parse error")),
    };
    let usable = |id: RawJson| matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    if frame.id().is_some_and(|id| !usable(id)) {
        let message = "An id is a string or a number";
        return Err(refuse(code::INVALID_REQUEST, message));
    }
    Ok(frame)
}

async fn one(shared: &Arc<Shared>, incomer: Incomer, frame: Frame) -> Reply {
    let has_session = incomer.headers.contains_key(SESSION_ID);
    let claims = match said(shared, &incomer.headers) {
        // Nothing inside a message of a session is of interest here.
        Said::Nothing | Said::Stateful if has_session => None,
        Said::Nothing | Said::Stateful => {
            Some(Claims::of(&frame)).filter(|claims| claims.version.is_some())
        }
        Said::Other => {
            let claims = Claims::of(&frame);
            // Only clients with sessions send this, whatever else they claim.
            let is_handshake = frame.method() == "initialize" && claims.version.is_none();
            (!is_handshake).then_some(claims)
        }
    };
    match claims {
        Some(claims) => alone(shared, incomer, frame, &claims).await,
        None => in_session(shared, incomer, frame).await,
    }
}

fn said(shared: &Shared, headers: &HeaderMap) -> Said {
    let Some(version) = headers.get(PROTOCOL_VERSION) else {
        return Said::Nothing;
    };
    let is = |revision: &&str| version.as_bytes() == revision.as_bytes();
    if shared.options.stateful.iter().any(is) {
        Said::Stateful
    } else {
        Said::Other
    }
}

/// A message of no session.
async fn alone(shared: &Arc<Shared>, incomer: Incomer, frame: Frame, claims: &Claims) -> Reply {
    let Incomer {
        headers,
        accepts,
        ground: _,
        endpoint,
    } = incomer;
    if frame.kind() == FrameKind::Response {
        let message = "Responses are not sent in this revision";
        return reply::refusal(StatusCode::BAD_REQUEST, message);
    }
    if let Err(error) = stateless::check(&frame, claims, &headers, &shared.options) {
        return reply::failure(StatusCode::BAD_REQUEST, frame.id().as_ref(), &error);
    }
    let conversation = endpoint.stateless();
    if frame.kind() == FrameKind::Notification {
        conversation.notification(frame);
        return reply::empty(StatusCode::ACCEPTED);
    }
    let limits = &shared.options.limits;
    let queue = Arc::new(Queue::new(accepts.events, limits.max_queued));
    let stream: Arc<dyn Sink> = Arc::clone(&queue) as _;
    let mut serving = conversation.request(Asked {
        frame,
        headers,
        stream,
    });
    let patience = accepts.events.then_some(limits.stream_after);
    let said = |context: &std::task::Context<'_>| queue.poll_said(context);
    match first(&mut serving, said, patience, || shared.has_ended()).await {
        First::GivenUp => reply::unavailable("The server ends"),
        First::Answer(answer) => whole(&queue, &answer, accepts),
        First::Stream => {
            let end = Box::pin(shared.ended());
            let interval = limits.comment_interval;
            let events = RequestEvents::new(serving, queue, interval, end);
            reply::events(Body::request(events))
        }
    }
}

/// An answer that was there before its stream was.
fn whole(queue: &Queue, answer: &Answer, accepts: Accepts) -> Reply {
    let status = stateless::status_of(answer.error);
    let spoken = !queue.is_empty();
    if !spoken && answer.body.is_empty() {
        return unanswered(accepts);
    }
    if spoken || (!accepts.json && status == StatusCode::OK) {
        return reply::events(Body::whole(queue.take(Some(answer))));
    }
    reply::json(status, answer.body.clone())
}

/// The answer to a request that its client has cancelled, which has none: a stream that ends.
fn unanswered(accepts: Accepts) -> Reply {
    if accepts.events {
        reply::events(Body::empty())
    } else {
        reply::empty(StatusCode::NO_CONTENT)
    }
}

/// A message of a session, or the request that opens one.
async fn in_session(shared: &Arc<Shared>, incomer: Incomer, frame: Frame) -> Reply {
    if frame.method() == "initialize" && !incomer.headers.contains_key(SESSION_ID) {
        return open_session(shared, incomer, frame).await;
    }
    let session = match find(shared, &incomer.headers, &incomer.ground) {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    match frame.kind() {
        FrameKind::Notification => {
            session.touch();
            session.conversation.notification(frame);
            reply::empty(StatusCode::ACCEPTED)
        }
        FrameKind::Response => {
            session.touch();
            session.conversation.response(frame);
            reply::empty(StatusCode::ACCEPTED)
        }
        FrameKind::Request => {
            let Some(active) = session.begin_request(shared.options.limits.max_session_requests)
            else {
                return reply::unavailable("Too many requests of this session are under way");
            };
            let (channel, stream) = ways(&session, incomer.accepts);
            let conversation = Arc::clone(&session.conversation);
            let serving = conversation.request(Asked {
                frame,
                headers: incomer.headers,
                stream,
            });
            let held = Held::new(Arc::clone(&session), channel, (serving, active), false);
            answer(shared, &session, held, incomer.accepts).await
        }
    }
}

/// The session that the headers name.
pub(super) fn find(
    shared: &Shared,
    headers: &HeaderMap,
    ground: &Ground,
) -> Result<Arc<Session>, Box<Reply>> {
    let refuse = |status, message| Err(Box::new(reply::refusal(status, message)));
    let mut ids = headers.get_all(SESSION_ID).iter();
    let id = match (ids.next(), ids.next()) {
        (None, _) => return refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing"),
        (Some(_), Some(_)) => {
            return refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is there twice");
        }
        (Some(id), None) => id.to_str().unwrap_or_default(),
    };
    match shared.sessions.find(id, ground) {
        Some(session) => Ok(session),
        None => refuse(StatusCode::NOT_FOUND, "Session not found"),
    }
}

/// How messages about a request reach the client: on its own stream if the client takes such, else
/// on the stream of the session.
fn ways(session: &Session, accepts: Accepts) -> (Option<Arc<Channel>>, Arc<dyn Sink>) {
    let streams = Arc::clone(&session.streams);
    if accepts.events {
        let channel = Arc::new(Channel::new(streams));
        (Some(Arc::clone(&channel)), channel)
    } else {
        (None, Arc::new(Outlet(streams)))
    }
}

async fn open_session(shared: &Arc<Shared>, incomer: Incomer, frame: Frame) -> Reply {
    let Incomer {
        headers,
        accepts,
        ground,
        endpoint,
    } = incomer;
    if frame.kind() != FrameKind::Request {
        return reply::refusal(StatusCode::BAD_REQUEST, "Initialize is a request");
    }
    let Some(session) = shared.sessions.open(&*endpoint, ground) else {
        return reply::unavailable("There are too many sessions");
    };
    let Some(active) = session.begin_request(usize::MAX) else {
        return reply::unavailable("There are too many requests");
    };
    let (channel, stream) = ways(&session, accepts);
    let conversation = Arc::clone(&session.conversation);
    let serving = conversation.request(Asked {
        frame,
        headers,
        stream,
    });
    let serving = settling(shared, &session, serving);
    let held = Held::new(Arc::clone(&session), channel, (serving, active), true);
    let id = HeaderValue::from_str(&session.id);
    let mut reply = answer(shared, &session, held, accepts).await;
    if let (Ok(id), false) = (id, session.has_failed()) {
        shared.sessions.admit(&session);
        reply.headers_mut().insert(SESSION_ID, id);
    }
    reply
}

/// Notes how the opening of a session went, whoever gets its answer. A session that failed ends
/// when its answer has been sent.
fn settling(shared: &Arc<Shared>, session: &Arc<Session>, serving: Serving) -> Serving {
    let shared = Arc::downgrade(shared);
    let session = Arc::downgrade(session);
    Box::pin(async move {
        let answer = serving.await;
        if let (Some(shared), Some(session)) = (shared.upgrade(), session.upgrade()) {
            if answer.error.is_some() {
                session.fail();
                shared.sessions.forget(&session);
            } else {
                session.learn_revision(&answer);
            }
        }
        answer
    })
}

/// The answer to a request of a session, in the form that suits it.
async fn answer(
    shared: &Shared,
    session: &Arc<Session>,
    mut held: Held,
    accepts: Accepts,
) -> Reply {
    let limits = &shared.options.limits;
    let patience = if accepts.prefers_events {
        Duration::ZERO
    } else {
        limits.stream_after
    };
    let patience = accepts.events.then_some(patience);
    match held.first(patience, || shared.has_ended()).await {
        First::GivenUp => reply::unavailable("The server ends"),
        First::Answer(answer) => match held.close() {
            None if answer.body.is_empty() => unanswered(accepts),
            None if accepts.json => reply::json(StatusCode::OK, answer.body),
            None => reply::events(Body::whole(event(&answer.body, None))),
            Some(stream) => {
                session.streams.finish(stream, &answer);
                streamed(shared, session, stream, None)
            }
        },
        First::Stream => match held.stream() {
            Some((stream, work)) => streamed(shared, session, stream, work),
            None => unanswered(accepts),
        },
    }
}

fn streamed(
    shared: &Shared,
    session: &Arc<Session>,
    stream: u64,
    work: Option<(Serving, Active)>,
) -> Reply {
    let Some(turn) = session.streams.attach(stream, None) else {
        return reply::refusal(StatusCode::NOT_FOUND, "The session has ended");
    };
    let interval = shared.options.limits.comment_interval;
    let mut events = SessionEvents::new(session, stream, turn.reader, interval);
    if session.primes_streams() {
        events = events.opening_with(priming(EventId { stream, place: 0 }));
    }
    if let Some((serving, active)) = work {
        events = events.working(serving, active);
    }
    reply::events(Body::session(events))
}

/// A batch, which some revisions with sessions allow.
async fn several(shared: &Arc<Shared>, incomer: Incomer, bytes: &Bytes) -> Reply {
    let refuse = |code, message: &str| {
        let error = RpcError::new(code, message);
        reply::failure(StatusCode::BAD_REQUEST, None, &error)
    };
    let Ok(members) = Frame::parse_batch(bytes) else {
        return refuse(code::PARSE_ERROR, "Parse error");
    };
    if said(shared, &incomer.headers) == Said::Other {
        return refuse(code::INVALID_REQUEST, "This revision has no batches");
    }
    let session = match find(shared, &incomer.headers, &incomer.ground) {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    let limits = &shared.options.limits;
    let initializes = members
        .iter()
        .flatten()
        .any(|frame| frame.method() == "initialize");
    if !session.takes_batches() || initializes {
        return refuse(code::INVALID_REQUEST, "No batch is allowed here");
    }
    if members.is_empty() || members.len() > limits.max_batch {
        return refuse(code::INVALID_REQUEST, "A batch of that size is not allowed");
    }
    let Some(active) = session.begin_request(limits.max_session_requests) else {
        return reply::unavailable("Too many requests of this session are under way");
    };
    let (channel, stream) = ways(&session, incomer.accepts);
    let mut servings: Vec<Serving> = Vec::new();
    for member in members {
        let Ok(frame) = member else {
            let error = RpcError::new(code::INVALID_REQUEST, "Not a JSON-RPC message");
            let null = RawJson::from_verified(Bytes::from_static(b"null"));
            let refusal = Answer::error(&null, &error);
            servings.push(Box::pin(std::future::ready(refusal)));
            continue;
        };
        match frame.kind() {
            FrameKind::Notification => session.conversation.notification(frame),
            FrameKind::Response => session.conversation.response(frame),
            FrameKind::Request => {
                let conversation = Arc::clone(&session.conversation);
                servings.push(conversation.request(Asked {
                    frame,
                    headers: incomer.headers.clone(),
                    stream: Arc::clone(&stream),
                }));
            }
        }
    }
    if servings.is_empty() {
        return reply::empty(StatusCode::ACCEPTED);
    }
    let work = (together(servings), active);
    let held = Held::new(Arc::clone(&session), channel, work, false);
    answer(shared, &session, held, incomer.accepts).await
}

/// One answer made of all.
fn together(servings: Vec<Serving>) -> Serving {
    Box::pin(async move {
        let mut text = Vec::new();
        for answer in join_all(servings).await {
            if answer.body.is_empty() {
                continue;
            }
            text.push(if text.is_empty() { b'[' } else { b',' });
            text.extend_from_slice(&answer.body);
        }
        if text.is_empty() {
            return Answer::none();
        }
        text.push(b']');
        Answer {
            body: text.into(),
            error: None,
        }
    })
}
