//! A message that arrives by POST at an endpoint: to which era and session it belongs, and what work
//! it gives.
//!
//! All of that is decided at once when the body is there, so that a request that waits for its answer
//! holds nothing but the work on it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::Incoming;

use super::accept::{Accepts, is_json};
use super::answer::Queue;
use super::batch;
use super::guests::{Length, Visitor};
use super::handler::{Shared, visit};
use super::held::{Channel, Requests};
use super::keeper::Keeper;
use super::names::{PROTOCOL_VERSION, SESSION_ID, UNANSWERED};
use super::opening;
use super::receive::receive;
use super::reply::{self, Reply};
use super::revival::{Arrival, revive};
use super::session::{Ground, Session, Transport};
use super::site::{Site, Visit};
use super::stateless::{self, Claims};
use super::streams::Outlet;
use super::told;
use super::work::{Alone, InSession, Work};
use crate::frame::{Frame, FrameKind};
use crate::raw::RawJson;
use crate::rpc_error::{RpcError, code};
use crate::serve::connection::{invalid_message, members};
use crate::serve::lost::{gateway_lost, only_reads};
use crate::serve::service::{Asked, Endpoint, Serving, Sink};

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
    pub(super) headers: HeaderMap,
    pub(super) accepts: Accepts,
    pub(super) ground: Ground,
    pub(super) endpoint: Arc<dyn Endpoint>,
}

/// Answers a POST.
pub(super) async fn post(shared: &Arc<Shared>, incomer: Incomer, body: Incoming) -> Reply {
    let bytes = match receive(body, &shared.options.limits).await {
        Ok(bytes) => bytes,
        Err(problem) => return problem.reply(),
    };
    match begin(shared, incomer, &bytes) {
        Work::Done(reply) => *reply,
        Work::Alone(work) => work.answer(shared).await,
        Work::InSession(work) => work.answer(shared).await,
        // This is rare, and nobody else should carry its weight.
        Work::Elsewhere(work) => Box::pin(elsewhere(shared, *work)).await,
    }
}

/// Messages of a session that is not here, but may be elsewhere.
pub(super) struct Elsewhere {
    id: String,
    keeper: Arc<Keeper>,
    incomer: Incomer,
    messages: Messages,
}

/// What came in one body.
enum Messages {
    One(Frame),
    Many(batch::Members),
}

/// Serves messages of a session that has to be brought here first.
async fn elsewhere(shared: &Arc<Shared>, work: Elsewhere) -> Reply {
    let Elsewhere {
        id,
        keeper,
        incomer,
        messages,
    } = work;
    let arrival = Arrival {
        id,
        ground: incomer.ground.clone(),
        endpoint: Arc::clone(&incomer.endpoint),
        headers: incomer.headers.clone(),
    };
    let session = match revive(shared, &keeper, arrival).await {
        Ok(session) => session,
        Err(reply) => return *reply,
    };
    let work = match messages {
        Messages::One(frame) => message(shared, session, incomer, frame),
        Messages::Many(members) => batch::serve(shared, session, &incomer, members),
    };
    match work {
        Work::Done(reply) => *reply,
        Work::InSession(work) => work.answer(shared).await,
        Work::Alone(_) | Work::Elsewhere(_) => reply::session_not_found(),
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
fn begin(shared: &Arc<Shared>, incomer: Incomer, bytes: &Bytes) -> Work {
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return several(shared, incomer, bytes);
    }
    let frame = match parse(bytes) {
        Ok(frame) => frame,
        Err(reply) => return Work::Done(reply),
    };
    if frame.kind() == FrameKind::Request && was_lost(&incomer.headers, frame.method()) {
        let id = frame.id();
        let error = gateway_lost();
        return Work::done(reply::failure(StatusCode::OK, id.as_ref(), &error));
    }
    match stands_alone(shared, &incomer.headers, &frame) {
        Ok(true) => alone(shared, incomer, frame),
        Ok(false) => in_session(shared, incomer, frame),
        Err(reply) => Work::Done(reply),
    }
}

/// A message, or the answer to what is none.
pub(super) fn parse(bytes: &Bytes) -> Result<Frame, Box<Reply>> {
    read(bytes).map_err(|invalid| {
        let (id, error) = *invalid;
        Box::new(reply::failure(StatusCode::BAD_REQUEST, id.as_ref(), &error))
    })
}

/// A message, or what is wrong with it, and the id that its answer has.
pub(super) fn read(bytes: &Bytes) -> Result<Frame, Box<(Option<RawJson>, RpcError)>> {
    let frame = Frame::parse_strict(bytes.clone())
        .map_err(|error| Box::new(invalid_message(bytes, &error)))?;
    let usable = |id: RawJson| matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'));
    if frame.id().is_none_or(usable) {
        return Ok(frame);
    }
    let error = RpcError::new(code::INVALID_REQUEST, "An id is a string or a number");
    Err(Box::new((None, error)))
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
    let visitor = incomer.ground.visitor;
    let seated = if listens {
        shared.seat(visitor)
    } else {
        Ok(visitor)
    };
    let visitor = match seated {
        Ok(visitor) => visitor,
        Err(reply) => return Work::Done(reply),
    };
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
        visitor,
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
        return opening::open(shared, incomer, frame);
    }
    match find(shared, &incomer.headers, &incomer.ground) {
        Ok(session) => message(shared, session, incomer, frame),
        Err(none) => none.work(incomer, Messages::One(frame)),
    }
}

/// An answer to a question. One that nobody here has asked is passed over, and not refused: an error would
/// end clients of the first generation, which is worse than a question of another gateway without an answer.
pub(super) fn answered(session: &Session, frame: Frame) {
    if session.streams.has_asked(&frame) {
        session.conversation.response(frame);
    } else {
        tracing::debug!("an answer to what was not asked here is passed over");
    }
}

/// A message of that session.
fn message(shared: &Arc<Shared>, session: Arc<Session>, incomer: Incomer, frame: Frame) -> Work {
    match frame.kind() {
        FrameKind::Notification => {
            session.touch();
            session.conversation.notification(frame);
            Work::done(reply::empty(StatusCode::ACCEPTED))
        }
        FrameKind::Response => {
            session.touch();
            answered(&session, frame);
            Work::done(reply::empty(StatusCode::ACCEPTED))
        }
        FrameKind::Request => {
            let Some(active) = session.begin_request(shared.options.limits.max_session_requests)
            else {
                return Work::done(too_many_requests());
            };
            let accepts = incomer.accepts;
            let (channel, stream) = ways(&session, accepts, Requests::One(frame.id()));
            let serving = noting(shared, &session, frame, |frame| Asked {
                frame,
                headers: incomer.headers,
                stream,
            });
            let work = InSession::new(session, channel, (serving, active), accepts);
            Work::InSession(work)
        }
    }
}

/// Asks the conversation. What it sets is noted, so that another server can be told.
pub(super) fn noting(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    frame: Frame,
    asked: impl FnOnce(Frame) -> Asked,
) -> Serving {
    let conversation = Arc::clone(&session.conversation);
    let noted = (session.is_kept() && told::sets(frame.method())).then(|| frame.clone());
    let serving = conversation.request(asked(frame));
    let (Some(noted), Some(keeper)) = (noted, &shared.keeper) else {
        return serving;
    };
    let (keeper, session) = (Arc::clone(keeper), Arc::downgrade(session));
    Box::pin(async move {
        let answer = serving.await;
        if answer.error.is_none()
            && !answer.body.is_empty()
            && let Some(session) = session.upgrade()
            && let Some(kept) = session.note(noted.method(), noted.params().as_ref())
        {
            keeper.retell(kept);
        }
        answer
    })
}

pub(super) fn too_many_requests() -> Reply {
    reply::unavailable("Too many requests of this session are under way")
}

/// Why there is no session.
pub(super) enum NoSession {
    Refused(Box<Reply>),
    /// It is not here, but may be kept elsewhere, under this id.
    NotHere(String, Arc<Keeper>),
}

impl NoSession {
    fn work(self, incomer: Incomer, messages: Messages) -> Work {
        match self {
            Self::Refused(reply) => Work::Done(reply),
            Self::NotHere(id, keeper) => Work::Elsewhere(Box::new(Elsewhere {
                id,
                keeper,
                incomer,
                messages,
            })),
        }
    }
}

/// The session that the headers name.
pub(super) fn find(
    shared: &Shared,
    headers: &HeaderMap,
    ground: &Ground,
) -> Result<Arc<Session>, NoSession> {
    let refuse = |status, message| {
        let reply = reply::refusal(status, message);
        Err(NoSession::Refused(Box::new(reply)))
    };
    let mut ids = headers.get_all(SESSION_ID).iter();
    let id = match (ids.next(), ids.next()) {
        (None, _) => return refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is missing"),
        (Some(_), Some(_)) => {
            return refuse(StatusCode::BAD_REQUEST, "Mcp-Session-Id is there twice");
        }
        (Some(id), None) => id.to_str().unwrap_or_default(),
    };
    match (shared.sessions.find(id, ground), &shared.keeper) {
        (Some(session), _) => Ok(session),
        (None, Some(keeper)) => Err(NoSession::NotHere(id.to_owned(), Arc::clone(keeper))),
        (None, None) => Err(NoSession::Refused(Box::new(reply::session_not_found()))),
    }
}

/// Whether another gateway was sent this request before and is gone, and it may not be made again.
pub(super) fn was_lost(headers: &HeaderMap, method: &str) -> bool {
    let is_harmless = || {
        only_reads(method.as_bytes())
            || told::sets(method)
            || matches!(method, "initialize" | "subscriptions/listen")
    };
    headers.contains_key(UNANSWERED) && !is_harmless()
}

/// How messages about a request reach the client: on its own stream if the client takes such, else
/// on the stream of the session.
pub(super) fn ways(
    session: &Session,
    accepts: Accepts,
    requests: Requests,
) -> (Option<Arc<Channel>>, Arc<dyn Sink>) {
    let streams = Arc::clone(&session.streams);
    if accepts.events {
        let channel = Arc::new(Channel::new(streams, requests));
        (Some(Arc::clone(&channel)), channel)
    } else {
        (None, Arc::new(Outlet(streams)))
    }
}

/// A batch, which some revisions with sessions allow.
fn several(shared: &Arc<Shared>, incomer: Incomer, bytes: &Bytes) -> Work {
    let members = match members(bytes) {
        Ok(members) => members.iter().map(read).collect(),
        Err(error) => return batch::refuse(error.code, &error.message),
    };
    if said(shared, &incomer.headers) == Said::Other {
        return batch::refuse(code::INVALID_REQUEST, "This revision has no batches");
    }
    match find(shared, &incomer.headers, &incomer.ground) {
        Ok(session) => batch::serve(shared, session, &incomer, members),
        Err(none) => none.work(incomer, Messages::Many(members)),
    }
}
