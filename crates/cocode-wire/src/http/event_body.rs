//! Plain HTTP exchanges whose answer is a stream of events, read one by one. No link, and no JSON-RPC.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, header};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::{HttpClient, shown};
use super::events::EventParser;
use super::fetch::{FetchError, head};
use super::response::{broken, text};
use crate::error::LinkError;

/// How long and how much an answer may be that comes in events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLimits {
    /// Until the head of the answer is there, the time for connecting included.
    pub first_byte: Duration,
    /// Between two pieces of the answer. Comments and events that mean nothing count as pieces.
    pub idle: Duration,
    /// The data of one event, in bytes.
    pub max_event_bytes: usize,
    /// The whole answer, in bytes.
    pub max_total_bytes: usize,
}

/// One event of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEvent {
    /// The `event:` field; empty means `message`.
    pub name: String,
    /// All `data:` lines, joined by newlines.
    pub data: Bytes,
}

/// The body of an answer, while it comes. Dropping it ends the exchange.
pub struct EventBody {
    response: reqwest::Response,
    parser: EventParser,
    limits: EventLimits,
    /// When something came last.
    heard: Instant,
    n_bytes: usize,
}

impl HttpClient {
    /// Sends a request and takes the head of its answer. Whatever the status is, it is an answer, and
    /// its body is a stream of events only if the server says so.
    pub async fn fetch_events(
        &self,
        request: Request<Bytes>,
        limits: EventLimits,
    ) -> Result<Response<EventBody>, FetchError> {
        let after = limits.first_byte;
        let response = timeout(after, self.send(request))
            .await
            .map_err(|_elapsed| FetchError::NoAnswer { after })??;
        let head = head(&response);
        let body = EventBody {
            response,
            parser: EventParser::new(limits.max_event_bytes),
            limits,
            heard: Instant::now(),
            n_bytes: 0,
        };
        Ok(head.map(|()| body))
    }
}

impl EventBody {
    /// Whether the server calls the body a stream of events.
    pub fn is_event_stream(&self) -> bool {
        let content_type = text(self.response.headers(), header::CONTENT_TYPE.as_str());
        let essence = content_type.unwrap_or_default();
        let essence = essence.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    }

    /// The next event, or nothing at the end of the body. An event that has not ended by then is none.
    ///
    /// Cancel safe: what has come of an event stays here.
    pub async fn next(&mut self) -> Result<Option<StreamEvent>, FetchError> {
        let limit = self.limits.max_event_bytes;
        loop {
            match self.parser.next() {
                Ok(Some(event)) => {
                    let (name, data) = (event.name, event.data);
                    return Ok(Some(StreamEvent { name, data }));
                }
                Ok(None) if self.parser.is_over_the_cap() => return Err(too_large(limit)),
                Ok(None) => {}
                Err(_over_the_cap) => return Err(too_large(limit)),
            }
            match self.chunk().await? {
                Some(chunk) => self.parser.feed(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// All that is left of the body, but no more than `max_bytes`, where it is no stream of events.
    pub async fn into_bytes(mut self, max_bytes: usize) -> Result<Bytes, FetchError> {
        let mut body = BytesMut::new();
        while let Some(chunk) = self.chunk().await? {
            if body.len() + chunk.len() > max_bytes {
                return Err(too_large(max_bytes));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    /// At most `max_bytes` from the start of what is left: enough to say what is wrong. A body that
    /// breaks or never ends is cut.
    pub async fn into_start(mut self, max_bytes: usize) -> Bytes {
        let mut body = BytesMut::new();
        while let Ok(Some(chunk)) = self.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(max_bytes - body.len())]);
            if body.len() == max_bytes {
                break;
            }
        }
        body.freeze()
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, FetchError> {
        let after = self.limits.idle;
        let url = shown(self.response.url());
        let chunk = timeout_at(self.heard + after, self.response.chunk())
            .await
            .map_err(|_elapsed| FetchError::Silent { after })?
            .map_err(|error| broken(&url, error))?;
        self.heard = Instant::now();
        self.n_bytes += chunk.as_ref().map_or(0, Bytes::len);
        if self.n_bytes > self.limits.max_total_bytes {
            return Err(too_large(self.limits.max_total_bytes));
        }
        Ok(chunk)
    }
}

impl fmt::Debug for EventBody {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EventBody")
            .field("limits", &self.limits)
            .field("n_bytes", &self.n_bytes)
            .finish_non_exhaustive()
    }
}

fn too_large(limit: usize) -> FetchError {
    LinkError::AnswerTooLarge { limit }.into()
}

#[cfg(test)]
#[path = "event_body_tests.rs"]
mod tests;
