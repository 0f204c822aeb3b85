//! Several messages in one body, which some revisions with sessions allow.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;

use super::handler::Shared;
use super::held::Requests;
use super::post::{Incomer, answered, noting, too_many_requests, was_lost, ways};
use super::reply;
use super::session::{Active, Session};
use super::work::{InSession, Work};
use crate::frame::{Frame, FrameKind};
use crate::raw::RawJson;
use crate::rpc_error::{RpcError, code};
use crate::serve::lost::gateway_lost;
use crate::serve::service::{Answer, Asked, Serving};

/// The members of a batch.
pub(super) type Members = Vec<Result<Frame, Box<(Option<RawJson>, RpcError)>>>;

/// Turns a batch away.
pub(super) fn refuse(code: i64, message: &str) -> Work {
    let error = RpcError::new(code, message);
    Work::done(reply::failure(StatusCode::BAD_REQUEST, None, &error))
}

/// Serves the members of a batch.
pub(super) fn serve(
    shared: &Arc<Shared>,
    session: Arc<Session>,
    incomer: &Incomer,
    members: Members,
) -> Work {
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
    let requests = members.iter().flatten().filter(is_request);
    let ids: Vec<RawJson> = requests.filter_map(Frame::id).collect();
    let active = (0..ids.len()).map(|_| session.begin_request(limits.max_session_requests));
    let Some(mut active) = active.collect::<Option<Vec<_>>>() else {
        return Work::done(too_many_requests());
    };
    let (channel, stream) = ways(&session, incomer.accepts, Requests::Many(ids));
    let mut servings: Vec<Serving> = Vec::new();
    for member in members {
        let frame = match member {
            Ok(frame) => frame,
            Err(invalid) => {
                let (id, error) = *invalid;
                let refusal = Answer::error(&id.unwrap_or_else(null), &error);
                servings.push(Box::pin(std::future::ready(refusal)));
                continue;
            }
        };
        match frame.kind() {
            FrameKind::Notification => session.conversation.notification(frame),
            FrameKind::Response => answered(&session, frame),
            FrameKind::Request if was_lost(&incomer.headers, frame.method()) => {
                let id = frame.id().unwrap_or_else(null);
                let lost = Answer::error(&id, &gateway_lost());
                servings.push(Box::pin(std::future::ready(lost)));
            }
            FrameKind::Request => servings.push(noting(shared, &session, frame, |frame| Asked {
                frame,
                headers: incomer.headers.clone(),
                stream: Arc::clone(&stream),
            })),
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

fn null() -> RawJson {
    RawJson::from_verified(Bytes::from_static(b"null"))
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
