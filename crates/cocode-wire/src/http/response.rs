//! Judges an HTTP response before anybody looks for a message in it.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use reqwest::Response;

use super::client::shown;
use super::stream::TAIL_WAIT;
use crate::error::{Challenge, LinkError};
use crate::frame::Frame;
use crate::inbox::excerpt;
use crate::limits::MAX_ERROR_BODY_BYTES;

/// What kind of body a successful response has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Nothing: the message was accepted.
    None,
    /// One JSON text.
    Json,
    /// A stream of events.
    Events,
    /// Something else.
    Other(String),
}

pub(crate) fn body_kind(response: &Response) -> Body {
    if matches!(
        response.status(),
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT
    ) {
        return Body::None;
    }
    let full = text(response.headers(), header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let essence = full
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Body::Json,
        "text/event-stream" => Body::Events,
        "" if response.content_length() == Some(0) => Body::None,
        "" => Body::Other("no content type".into()),
        other => Body::Other(other.to_owned()),
    }
}

/// The error that a response stands for, if its status is not a success. `had_session` says
/// whether the request named a session, which makes a 404 mean that the session is gone.
pub(crate) async fn refuse(response: Response, had_session: bool) -> Result<Response, LinkError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let headers = response.headers();
    let challenge = challenge(status, headers);
    let asks = !challenge.www_authenticate.is_empty();
    if status == StatusCode::UNAUTHORIZED || (status == StatusCode::FORBIDDEN && asks) {
        return Err(LinkError::AuthRequired(challenge));
    }
    if status.is_redirection() {
        let location = text(headers, header::LOCATION.as_str());
        let location = location.map_or_else(String::new, |location| {
            let target = response.url().join(&location);
            target.map_or_else(|_| "(not a URL)".to_owned(), |target| shown(&target))
        });
        return Err(LinkError::Redirect {
            status: status.as_u16(),
            location,
        });
    }
    if status == StatusCode::NOT_FOUND && had_session {
        return Err(LinkError::SessionGone);
    }
    let retry_after = text(headers, header::RETRY_AFTER.as_str()).and_then(|t| t.parse().ok());
    // The body is only a hint: an unreadable or endless one is cut, not an error of its own.
    let body = read_start(response, MAX_ERROR_BODY_BYTES).await;
    let rpc = Frame::parse(body.clone())
        .ok()
        .and_then(|frame| frame.error());
    Err(LinkError::Status {
        status: status.as_u16(),
        body: excerpt(&body),
        rpc,
        retry_after,
    })
}

/// What a response says about credentials.
pub(crate) fn challenge(status: StatusCode, headers: &HeaderMap) -> Challenge {
    Challenge {
        status: status.as_u16(),
        www_authenticate: all(headers, header::WWW_AUTHENTICATE.as_str()),
        auth_server: text(headers, "mcp-auth-server"),
    }
}

/// Kind of the first line of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLine {
    /// Part of one text, as all that follows it.
    Part,
    /// A message by itself, which was taken.
    Message,
    /// The same, and nothing after it is wanted.
    Answer,
}

/// The whole body, if it is within the cap.
pub(crate) async fn read_body(response: Response, limit: usize) -> Result<Bytes, LinkError> {
    read_lines(response, limit, |_line| BodyLine::Part).await
}

/// The body without the lines that `take` takes as they come. Only a body whose length was not
/// declared has such.
pub(crate) async fn read_lines(
    mut response: Response,
    limit: usize,
    mut take: impl FnMut(Bytes) -> BodyLine,
) -> Result<Bytes, LinkError> {
    let url = shown(response.url());
    let declared = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok());
    if declared.is_some_and(|length| length > limit) {
        return Err(LinkError::AnswerTooLarge { limit });
    }
    let mut body = BytesMut::with_capacity(declared.unwrap_or(0));
    let (mut has_lines, mut n_searched) = (declared.is_none(), 0);
    loop {
        while has_lines && let Some(end) = body[n_searched..].iter().position(|byte| *byte == b'\n')
        {
            let line = body.split_to(n_searched + end + 1).freeze();
            n_searched = 0;
            match take(line.clone()) {
                BodyLine::Message => {}
                BodyLine::Answer => {
                    // The connection can be used again if the body ends.
                    let end = async { while let Ok(Some(_)) = response.chunk().await {} };
                    drop(tokio::time::timeout(TAIL_WAIT, end).await);
                    return Ok(Bytes::new());
                }
                BodyLine::Part => {
                    has_lines = false;
                    let rest = std::mem::replace(&mut body, BytesMut::from(&*line));
                    body.extend_from_slice(&rest);
                }
            }
        }
        n_searched = body.len();
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > limit => {
                return Err(LinkError::AnswerTooLarge { limit });
            }
            // A body that came in one piece is not copied.
            Ok(Some(chunk)) if body.is_empty() && declared == Some(chunk.len()) => {
                return Ok(chunk);
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.freeze()),
            Err(error) => return Err(broken(&url, error)),
        }
    }
}

/// At most `limit` bytes from the start of the body.
pub(crate) async fn read_start(mut response: Response, limit: usize) -> Bytes {
    let mut body = BytesMut::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(limit - body.len())]);
        if body.len() == limit {
            break;
        }
    }
    body.freeze()
}

/// Tells a request that never left from one that may have arrived.
pub(crate) fn transport_error(url: &url::Url, error: reqwest::Error) -> LinkError {
    let url = shown(url);
    if error.is_connect() {
        LinkError::Unreachable {
            url,
            source: std::sync::Arc::new(error.without_url()),
        }
    } else {
        broken(&url, error)
    }
}

pub(crate) fn broken(url: &str, error: reqwest::Error) -> LinkError {
    let source = std::sync::Arc::new(error.without_url());
    LinkError::Broken {
        url: url.to_owned(),
        source,
    }
}

pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn all(headers: &HeaderMap, name: &str) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}
