//! Picks up the stream of one request after its connection ended early.

use http::{HeaderValue, Method, header};
use reqwest::Response;

use super::client::shown;
use super::response::{Body, body_kind, refuse};
use super::stream::{Awaits, Position, StreamEnd, pump};
use super::streamable::Shared;
use crate::error::LinkError;
use crate::limits::{MAX_RESUME_FAILURES, STREAM_OPEN_TIMEOUT};

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Reconnects, from where the stream stood, until the answer to `id` has come. The caller's
/// deadline ends this by abandoning the exchange.
pub(super) async fn resume(
    shared: &Shared,
    id: u64,
    mut position: Position,
) -> Result<(), LinkError> {
    let mut failures = 0;
    loop {
        tokio::time::sleep(position.wait()).await;
        let response = match reopen(shared, &position).await {
            Ok(response) => response,
            // A server that answers the attempt means it; a broken network may heal.
            Err(error @ (LinkError::Unreachable { .. } | LinkError::Broken { .. }))
                if failures < MAX_RESUME_FAILURES =>
            {
                tracing::debug!(%error, failures, "cannot resume the stream yet");
                failures += 1;
                continue;
            }
            Err(error) => return Err(of_the_request(error)),
        };
        failures = 0;
        let (inbox, max) = (&*shared.inbox, shared.max_frame);
        match pump(response, inbox, Awaits::Answer(id), &mut position, max).await {
            StreamEnd::Answered => return Ok(()),
            StreamEnd::Failed(error) => return Err(error),
            StreamEnd::Ended if position.last_id.is_some() => {}
            // The server took the position back, and without one there is nothing to go on from.
            StreamEnd::Ended => {
                return Err(LinkError::NoAnswer {
                    detail: position.oddity,
                });
            }
        }
    }
}

/// What the end of resuming says about the request itself: unlike a refused POST, nothing of whether
/// it has run, so that nobody may take it for one that was never sent.
fn of_the_request(error: LinkError) -> LinkError {
    match error {
        LinkError::Unreachable { url, source } => LinkError::Broken { url, source },
        // Whoever asks for credentials is to be heard; the request is not repeated for it.
        LinkError::Broken { .. }
        | LinkError::NoAnswer { .. }
        | LinkError::AuthRequired(_)
        | LinkError::Credentials(_) => error,
        _ => LinkError::NoAnswer {
            detail: format!("it cannot be resumed: {error}"),
        },
    }
}

/// Opens an event stream by GET, at `position`.
pub(super) async fn reopen(shared: &Shared, position: &Position) -> Result<Response, LinkError> {
    let session = shared.session();
    let mut headers = shared.request_headers(&session);
    headers.insert(header::ACCEPT, EVENTS);
    let last_id = position.last_id.as_deref().map(HeaderValue::from_str);
    if let Some(Ok(last_id)) = last_id {
        headers.insert("last-event-id", last_id);
    }
    let sending = shared.sender.send(Method::GET, &shared.url, headers, None);
    let response = match tokio::time::timeout(STREAM_OPEN_TIMEOUT, sending).await {
        Ok(response) => response?,
        Err(elapsed) => {
            let (url, source) = (shown(&shared.url), std::sync::Arc::new(elapsed));
            return Err(LinkError::Broken { url, source });
        }
    };
    let response = refuse(response, session.id.is_some()).await?;
    match body_kind(&response) {
        Body::Events => Ok(response),
        Body::None => Err(LinkError::NoAnswer {
            detail: "no event stream".into(),
        }),
        Body::Json => Err(LinkError::ContentType {
            content_type: "application/json".into(),
            excerpt: String::new(),
        }),
        Body::Other(content_type) => Err(LinkError::ContentType {
            content_type,
            excerpt: String::new(),
        }),
    }
}
