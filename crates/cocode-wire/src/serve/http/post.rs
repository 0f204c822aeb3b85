//! A message that arrives by POST at an endpoint: to which era and session it belongs, and what work
//! it gives.
//!
//! All of that is decided at once when the body is there, so that a request that waits for its answer
//! holds nothing but the work on it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;

use super::accept::{Accepts, is_json};
use super::answer::Queue;
use super::guests::{Length, Visitor};
use super::handler::{Shared, visit};
use super::held::Channel;
use super::names::{PROTOCOL_VERSION, SESSION_ID};
use super::receive::receive;
use super::reply::{self, Reply};
use super::session::{Active, Ground, Session, Transport};
use super::site::{Site, Visit};
use super::stateless::{self, Claims};
use super::streams::Outlet;
use super::work::{Alone, InSession, Work};
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

/// What came with a message.
pub(super) struct Incomer {
    headers: HeaderMap,
    accepts: Accepts,
    ground: Ground,
    endpoint: Arc<dyn Endpoint>,
}

/// Answers a POST.
pub(super) async fn post(shared: &Arc<Shared>, incomer: Incomer, body: Incoming) -> Reply {
    let bytes = match receive(body, &shared.options.limits).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.reply(),
    };
    match begin(shared, incomer, bytes) {
        Work::Done(reply) => *reply,
        Work::Alone(work) => work.answer(shared).await,
        Work::InSession(work) => work.answer(shared).await,
    }
}

/// Looks at the head of a POST to the endpoint of that name.
pub(super) fn enter(
    shared: &Shared,
    name: Option<String>,
    parts: Parts,
    visitor: Visitor,
) -> Result<Incomer, Box<Reply>> {
    let headers = &parts.headers;
    let refuse = |status, message| Err(Box::new(reply::refusal(status, message)));
    if !is_json(headers) {
        let message = "The content type is not application/json";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    let accepts = Accepts::of(headers);
    if !accepts.json && !accepts.events {
        let message = "The client takes neither application/json nor text/event-stream";
        return refuse(StatusCode::NOT_ACCEPTABLE, message);
    }
    let visit = visit(&parts, visitor.guest.as_ref());
    let endpoint = endpoint(&*shared.site, name.as_deref(), &visit)?;
    Ok(Incomer {
        headers: parts.headers,
        accepts,
        ground: Ground {
            endpoint: name,
            transport: Transport::Streamable,
            visitor,
        },
        endpoint,
    })
}

/// The endpoint that somebody comes to.
pub(super) fn endpoint(
    site: &dyn Site,
    name: Option<&str>,
    visit: &Visit<'_>,
) -> Result<Arc<dyn Endpoint>, Box<Reply>> {
    match site.endpoint_for(name, visit) {
        Ok(Some(endpoint)) => Ok(endpoint),
        Ok(None) => Err(Box::new(reply::no_endpoint(site, visit))),
        Err(what) => Err(Box::new(reply::refusal(StatusCode::BAD_REQUEST, &what))),
    }
}

/// Looks at the body.
fn begin(shared: &Arc<Shared>, incomer: Incomer, bytes: Bytes) -> Work {
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return several(shared, &incomer, &bytes);
    }
    let frame = match parse(bytes) {
        Ok(frame) => frame,
        Err(reply) => return Work::Done(reply),
    };
    match stands_alone(shared, &incomer.headers, &frame) {
        Ok(true) => alone(shared, incomer, frame),
        Ok(false) => in_session(shared, incomer, frame),
        Err(reply) => Work::Done(reply),
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
    if !has_usable_id(&frame) {
        return Err(refuse(code::INVALID_REQUEST, UNUSABLE_ID));
    }
    Ok(frame)
}

const UNUSABLE_ID: &str = "An id is a string or a number";

/// Whether a message has no id, or one that an answer can name.
fn has_usable_id(frame: &Frame) -> bool {
    let usable = |id: RawJson| matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    frame.id().is_none_or(usable)
}

/// Whether a message belongs to no session; one that does not is checked.
fn stands_alone(shared: &Shared, headers: &HeaderMap, frame: &Frame) -> Result<bool, Box<Reply>> {
    let said = said(shared, headers);
    if said != Said::Other && headers.contains_key(SESSION_ID) {
        // Nothing inside a message of a session is of interest here.
        return Ok(false);
    }
    let params = frame.params();
    let claims = Claims::of(frame.method(), params.as_ref());
    // Only clients with sessions initialize, whatever else they claim.
    let has_none = said != Said::Other || frame.method() == "initialize";
    if has_none && claims.version.is_none() {
        return Ok(false);
    }
    if frame.kind() == FrameKind::Response {
        let message = "Responses are not sent in this revision";
        let reply = reply::refusal(StatusCode::BAD_REQUEST, message);
        return Err(Box::new(reply));
    }
    match stateless::check(frame, &claims, headers, &shared.options) {
        Ok(()) => Ok(true),
        Err(error) => {
            let id = frame.id();
            let reply = reply::failure(StatusCode::BAD_REQUEST, id.as_ref(), &error);
            Err(Box::new(reply))
        }
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
fn alone(shared: &Shared, incomer: Incomer, frame: Frame) -> Work {
    let conversation = incomer.endpoint.stateless();
    if frame.kind() == FrameKind::Notification {
        conversation.notification(frame);
        return Work::done(reply::empty(StatusCode::ACCEPTED));
    }
    let accepts = incomer.accepts;
    let listens = frame.method() == "subscriptions/listen";
    if !accepts.events && listens {
        let message = "What is listened to is told as text/event-stream";
        return Work::done(reply::refusal(StatusCode::NOT_ACCEPTABLE, message));
    }
    let max_queued = shared.options.limits.max_queued;
    let queue = Arc::new(Queue::new(accepts.events, max_queued));
    let stream: Arc<dyn Sink> = Arc::clone(&queue) as _;
    let serving = conversation.request(Asked {
        frame,
        headers: incomer.headers,
        stream,
    });
    Work::Alone(Alone {
        serving,
        queue,
        accepts,
        visitor: incomer.ground.visitor,
        length: if listens {
            Length::Standing
        } else {
            Length::Answer
        },
    })
}

/// A message of a session, or the request that opens one.
fn in_session(shared: &Arc<Shared>, incomer: Incomer, frame: Frame) -> Work {
    if frame.method() == "initialize" && !incomer.headers.contains_key(SESSION_ID) {
        return open_session(shared, incomer, frame);
    }
    let session = match find(shared, &incomer.headers, &incomer.ground) {
        Ok(session) => session,
        Err(reply) => return Work::Done(reply),
    };
    match frame.kind() {
        FrameKind::Notification => {
            session.touch();
            session.conversation.notification(frame);
            Work::done(reply::empty(StatusCode::ACCEPTED))
        }
        FrameKind::Response => {
            session.touch();
            session.conversation.response(frame);
            Work::done(reply::empty(StatusCode::ACCEPTED))
        }
        FrameKind::Request => {
            let Some(active) = session.begin_request(shared.options.limits.max_session_requests)
            else {
                return Work::done(too_many_requests());
            };
            let (channel, stream) = ways(&session, incomer.accepts);
            let conversation = Arc::clone(&session.conversation);
            let serving = conversation.request(Asked {
                frame,
                headers: incomer.headers,
                stream,
            });
            Work::InSession(InSession::new(
                session,
                channel,
                (serving, active),
                incomer.accepts,
            ))
        }
    }
}

pub(super) fn too_many_requests() -> Reply {
    reply::unavailable("Too many requests of this session are under way")
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
        None => Err(Box::new(reply::session_not_found())),
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

fn open_session(shared: &Arc<Shared>, incomer: Incomer, frame: Frame) -> Work {
    if frame.kind() != FrameKind::Request {
        let message = "Initialize is a request";
        return Work::done(reply::refusal(StatusCode::BAD_REQUEST, message));
    }
    let opened = shared.sessions.open(&*incomer.endpoint, incomer.ground);
    let Some(session) = opened else {
        return Work::done(reply::unavailable("There are too many sessions"));
    };
    let Some(active) = session.begin_request(usize::MAX) else {
        return Work::done(too_many_requests());
    };
    let (channel, stream) = ways(&session, incomer.accepts);
    let conversation = Arc::clone(&session.conversation);
    let serving = conversation.request(Asked {
        frame,
        headers: incomer.headers,
        stream,
    });
    let serving = settling(shared, &session, serving);
    let work = InSession::new(session, channel, (serving, active), incomer.accepts);
    Work::InSession(work.opening())
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

/// A batch, which some revisions with sessions allow.
fn several(shared: &Shared, incomer: &Incomer, bytes: &Bytes) -> Work {
    let refuse = |code, message: &str| {
        let error = RpcError::new(code, message);
        Work::done(reply::failure(StatusCode::BAD_REQUEST, None, &error))
    };
    let Ok(members) = Frame::parse_batch(bytes) else {
        return refuse(code::PARSE_ERROR, "Parse error");
    };
    if said(shared, &incomer.headers) == Said::Other {
        return refuse(code::INVALID_REQUEST, "This revision has no batches");
    }
    let session = match find(shared, &incomer.headers, &incomer.ground) {
        Ok(session) => session,
        Err(reply) => return Work::Done(reply),
    };
    let limits = &shared.options.limits;
    let mut frames = members.iter().flatten();
    let initializes = frames.any(|frame| frame.method() == "initialize");
    if !session.takes_batches() || initializes {
        return refuse(code::INVALID_REQUEST, "No batch is allowed here");
    }
    if members.is_empty() || members.len() > limits.max_batch {
        return refuse(code::INVALID_REQUEST, "A batch of that size is not allowed");
    }
    let is_request = |frame: &&Frame| frame.kind() == FrameKind::Request;
    let n_requests = members.iter().flatten().filter(is_request).count();
    let active = (0..n_requests).map(|_| session.begin_request(limits.max_session_requests));
    let Some(mut active) = active.collect::<Option<Vec<_>>>() else {
        return Work::done(too_many_requests());
    };
    let (channel, stream) = ways(&session, incomer.accepts);
    let mut servings: Vec<Serving> = Vec::new();
    for member in members {
        let member = match member {
            Ok(frame) if has_usable_id(&frame) => Ok(frame),
            Ok(_) => Err(UNUSABLE_ID),
            Err(_) => Err("Not a JSON-RPC message"),
        };
        let frame = match member {
            Ok(frame) => frame,
            Err(what) => {
                let error = RpcError::new(code::INVALID_REQUEST, what);
                let null = RawJson::from_verified(Bytes::from_static(b"null"));
                let refusal = Answer::error(&null, &error);
                servings.push(Box::pin(std::future::ready(refusal)));
                continue;
            }
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
        return Work::done(reply::empty(StatusCode::ACCEPTED));
    }
    let whole = active.pop().or_else(|| session.begin_request(usize::MAX));
    let Some(whole) = whole else {
        return Work::done(too_many_requests());
    };
    let work = (together(servings, active), whole);
    Work::InSession(InSession::new(session, channel, work, incomer.accepts))
}

/// One answer made of all.
fn together(servings: Vec<Serving>, active: Vec<Active>) -> Serving {
    Box::pin(async move {
        let _active = active;
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
