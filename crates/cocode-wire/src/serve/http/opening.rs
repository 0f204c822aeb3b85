//! The request that opens a session: whether there is room for it, and what becomes of the session if it
//! is refused.

use std::sync::Arc;

use http::StatusCode;

use super::handler::Shared;
use super::held::Requests;
use super::post::{Incomer, too_many_requests, ways};
use super::reply;
use super::session::Session;
use super::told::Told;
use super::work::{InSession, Work};
use crate::frame::{Frame, FrameKind};
use crate::serve::service::{Asked, Serving};

/// Opens a session, if there is room for it.
pub(super) fn open(shared: &Arc<Shared>, incomer: Incomer, frame: Frame) -> Work {
    if frame.kind() != FrameKind::Request {
        let message = "Initialize is a request";
        return Work::done(reply::refusal(StatusCode::BAD_REQUEST, message));
    }
    let mut ground = incomer.ground;
    ground.visitor = match shared.seat(ground.visitor) {
        Ok(visitor) => visitor,
        Err(reply) => return Work::Done(reply),
    };
    let told = shared.keeper.is_some().then(|| frame.params());
    let told = told.and_then(|params| Told::hello(params.as_ref()));
    let sessions = &shared.sessions;
    let opened = sessions.open(&*incomer.endpoint, ground, told);
    let Some(session) = opened else {
        return Work::done(reply::unavailable("There are too many sessions"));
    };
    session.client.learn(&frame);
    let Some(active) = session.begin_request(usize::MAX) else {
        return Work::done(too_many_requests());
    };
    let requests = Requests::One(frame.id());
    let (channel, stream) = ways(&session, incomer.accepts, requests);
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
                if let Some(keeper) = &shared.keeper {
                    // Before the client goes elsewhere.
                    keeper.keep(&session).await;
                }
            }
        }
        answer
    })
}
