//! Delivers the messages of one event stream, and notes what must be known to resume it.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;
use tokio::time::Instant;

use super::client::chain;
use super::events::{Event, EventParser, EventTooLarge};
use crate::deliver::{frames_in, malformed};
use crate::error::LinkError;
use crate::frame::FrameKind;
use crate::inbox::{Inbox, Malformed, MalformedReason, Origin};
use crate::limits::{DEFAULT_STREAM_RETRY, MAX_NAMED_RETRY, MIN_STREAM_RETRY};

/// After the answer has come, how long the server may take to end its stream, so that the
/// connection can be used again.
pub(super) const TAIL_WAIT: Duration = Duration::from_millis(200);

/// Whose answer a stream should bring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaits {
    /// Nobody's: the stream of unsolicited messages.
    Nothing,
    /// The answer to this request.
    Answer(u64),
}

/// Where a stream stands, across its reconnections.
#[derive(Debug, Default)]
pub(crate) struct Position {
    pub(crate) last_id: Option<String>,
    pub(crate) retry: Option<Duration>,
    /// What came that could not be used, for the error if the answer never comes.
    pub(crate) oddity: String,
}

impl Position {
    /// How long to wait before the stream is opened again. The specification wants the server's
    /// `retry:` respected, so only values that make no sense are changed.
    pub(crate) fn wait(&self) -> Duration {
        self.retry
            .unwrap_or(DEFAULT_STREAM_RETRY)
            .clamp(MIN_STREAM_RETRY, MAX_NAMED_RETRY)
    }
}

/// How a stream ended.
#[derive(Debug)]
pub(crate) enum StreamEnd {
    /// With the awaited answer.
    Answered,
    /// Without it; the server closed the stream or the connection broke.
    Ended,
    /// The awaited answer cannot come any more.
    Failed(LinkError),
}

/// Reads `response` to its end.
pub(crate) async fn pump(
    mut response: Response,
    inbox: &dyn Inbox,
    awaits: Awaits,
    position: &mut Position,
    max_event: usize,
) -> StreamEnd {
    let mut parser = EventParser::resuming(max_event, position.last_id.clone());
    let awaiting = matches!(awaits, Awaits::Answer(_));
    let too_large = StreamEnd::Failed(LinkError::AnswerTooLarge { limit: max_event });
    let mut answered = false;
    let mut tail_end = None;
    loop {
        let next = response.chunk();
        let chunk = if answered {
            // Fixed by the answer: a server that talks on does not keep the stream.
            let end = *tail_end.get_or_insert_with(|| Instant::now() + TAIL_WAIT);
            match tokio::time::timeout_at(end, next).await {
                Ok(chunk) => chunk,
                Err(_still_open) => return StreamEnd::Answered,
            }
        } else {
            next.await
        };
        match chunk {
            Ok(Some(chunk)) => parser.feed(&chunk),
            Ok(None) => break,
            Err(error) => {
                position.oddity = chain(&error.without_url());
                break;
            }
        }
        loop {
            let event = parser.next();
            if position.last_id.as_deref() != parser.last_id() {
                position.last_id = parser.last_id().map(str::to_owned);
            }
            position.retry = parser.retry().or(position.retry);
            match event {
                Ok(Some(event)) => answered |= deliver(inbox, &event, awaits, position),
                Ok(None) => break,
                // Nothing else worth waiting for comes on the stream of one request.
                Err(EventTooLarge { .. }) if awaiting && !answered => return too_large,
                Err(EventTooLarge { id }) => inbox.malformed(Malformed::too_large(max_event, id)),
            }
        }
        if awaiting && !answered && parser.is_over_the_cap() {
            return too_large;
        }
    }
    if answered {
        StreamEnd::Answered
    } else {
        StreamEnd::Ended
    }
}

/// Whether the event brought the awaited answer.
fn deliver(inbox: &dyn Inbox, event: &Event, awaits: Awaits, position: &mut Position) -> bool {
    if event.data.is_empty() || !matches!(event.name.as_str(), "" | "message") {
        return false;
    }
    let (answered, oddity) = deliver_answer(inbox, &event.data, awaits);
    if let Some(oddity) = oddity {
        position.oddity = oddity;
    }
    answered
}

/// Delivers one JSON text that came in answer to a request, or on no request's behalf. Says
/// whether the awaited answer was in it, and what was unusable.
pub(crate) fn deliver_answer(
    inbox: &dyn Inbox,
    text: &Bytes,
    awaits: Awaits,
) -> (bool, Option<String>) {
    let origin = match awaits {
        Awaits::Answer(id) => Origin::Request(id),
        Awaits::Nothing => Origin::Shared,
    };
    let mut answered = false;
    let mut oddity = None;
    for member in frames_in(text) {
        match member {
            Ok(frame) => {
                if let (FrameKind::Response, Awaits::Answer(id)) = (frame.kind(), awaits) {
                    // An error without an id, in answer to our request, is the answer to it.
                    let error = frame.error().filter(|_| frame.id().is_none());
                    if let Some(error) = error {
                        let (status, body) = (200, String::new());
                        let rpc = Some(error);
                        inbox.failed(
                            id,
                            LinkError::Status {
                                status,
                                body,
                                rpc,
                                retry_after: None,
                            },
                        );
                        answered = true;
                        continue;
                    }
                    answered |= frame.numeric_id() == Some(id);
                }
                inbox.frame(frame, origin);
            }
            Err(error) => {
                let mut malformed = malformed(text, &error);
                oddity = Some(match &malformed.reason {
                    MalformedReason::NotJsonRpc(why) => format!("{why}: {}", malformed.excerpt),
                    other => other.to_string(),
                });
                if let Awaits::Answer(_) = awaits {
                    // The exchange itself fails its request, with more to say.
                    malformed.id = None;
                }
                inbox.malformed(malformed);
            }
        }
    }
    (answered, oddity)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Position;

    #[test]
    fn the_wait_is_the_one_that_the_server_named() {
        let hour = Duration::from_hours(1);
        for (named, expected) in [
            (None, Duration::from_secs(1)),
            (Some(Duration::ZERO), Duration::from_millis(50)),
            (Some(Duration::from_millis(60)), Duration::from_millis(60)),
            (Some(Duration::from_mins(10)), Duration::from_mins(10)),
            (Some(hour), hour),
            (Some(Duration::MAX), hour),
        ] {
            let position = Position {
                retry: named,
                ..Position::default()
            };
            assert_eq!(position.wait(), expected, "for {named:?}");
        }
    }
}
