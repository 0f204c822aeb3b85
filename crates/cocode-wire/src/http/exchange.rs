//! One POST of the streamable HTTP transport and everything that can come back.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::Response;

use super::response::{Body, BodyLine, body_kind, read_lines, read_start, refuse};
use super::resume::resume;
use super::stream::{Awaits, Position, StreamEnd, deliver_answer, pump};
use super::streamable::{SessionState, Shared};
use crate::error::LinkError;
use crate::frame::Frame;
use crate::inbox::excerpt;
use crate::limits::MAX_ERROR_BODY_BYTES;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const JSON_OR_EVENTS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Posts a request and delivers what answers it.
pub(super) async fn request(
    shared: &Shared,
    id: u64,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(), LinkError> {
    let opens_session = shared.is_opening(id);
    let session = if opens_session {
        SessionState::default()
    } else {
        shared.session()
    };
    let response = post(shared, &session, headers, body).await?;
    // Other answers may repeat the header, also that of a session which has been replaced.
    if opens_session {
        shared.begin_session(response.headers());
    }
    match body_kind(&response) {
        Body::Json => {
            let (inbox, awaits) = (&*shared.inbox, Awaits::Answer(id));
            let mut answered = false;
            // Some servers stream messages in here, one a line.
            let text = read_lines(response, shared.max_frame, |line| {
                if Frame::parse(line.clone()).is_err() {
                    return BodyLine::Part;
                }
                (answered, _) = deliver_answer(inbox, &line, awaits);
                if answered {
                    BodyLine::Answer
                } else {
                    BodyLine::Message
                }
            });
            let text = text.await?;
            if answered {
                return Ok(());
            }
            match deliver_answer(inbox, &text, awaits) {
                (true, _) => Ok(()),
                (false, None) => Err(LinkError::NoAnswer {
                    detail: excerpt(&text),
                }),
                (false, Some(reason)) => Err(LinkError::Malformed {
                    reason,
                    excerpt: String::new(),
                }),
            }
        }
        Body::Events => {
            let mut position = Position::default();
            let (inbox, max) = (&*shared.inbox, shared.max_frame);
            match pump(response, inbox, Awaits::Answer(id), &mut position, max).await {
                StreamEnd::Answered => Ok(()),
                StreamEnd::Failed(error) => Err(error),
                StreamEnd::Ended if session.resumable && position.last_id.is_some() => {
                    resume(shared, id, position).await
                }
                StreamEnd::Ended => Err(LinkError::NoAnswer {
                    detail: position.oddity,
                }),
            }
        }
        Body::None => Err(LinkError::NoAnswer {
            detail: String::new(),
        }),
        Body::Other(content_type) => {
            let text = read_start(response, MAX_ERROR_BODY_BYTES).await;
            Err(LinkError::ContentType {
                content_type,
                excerpt: excerpt(&text),
            })
        }
    }
}

/// Posts a message that has no answer. Whatever a lax server puts into the body is ignored.
pub(super) async fn message(
    shared: &Shared,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(), LinkError> {
    let session = shared.session();
    post(shared, &session, headers, body).await.map(drop)
}

async fn post(
    shared: &Shared,
    session: &SessionState,
    own: HeaderMap,
    body: Bytes,
) -> Result<Response, LinkError> {
    let mut headers = shared.request_headers(session);
    headers.insert(header::CONTENT_TYPE, JSON);
    headers.insert(header::ACCEPT, JSON_OR_EVENTS);
    for (name, value) in own {
        if let Some(name) = name {
            headers.insert(name, value);
        }
    }
    let sending = shared
        .sender
        .send(Method::POST, &shared.url, headers, Some(body));
    let response = sending.await?;
    refuse(response, session.id.is_some()).await
}
