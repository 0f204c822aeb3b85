//! Writes messages as server-sent events.

use bytes::Bytes;
use memchr::{memchr, memchr2};

use super::event_id::EventId;
use crate::encode::push_number;

/// A comment that shows a silent stream to be alive.
pub(super) const COMMENT: Bytes = Bytes::from_static(b":\n\n");

/// The names of the fields around one message.
const FIELD_ROOM: usize = 128;

/// How long a client should wait before it opens a broken stream again, in milliseconds.
const RETRY_MILLISECONDS: u64 = 1000;

/// A whole event that carries `message`.
pub(super) fn event(message: &[u8], id: Option<EventId<'_>>) -> Bytes {
    let mut text = Vec::with_capacity(message.len() + FIELD_ROOM);
    push_event(&mut text, message, id);
    text.into()
}

/// Appends an event that carries `message`.
pub(super) fn push_event(text: &mut Vec<u8>, message: &[u8], id: Option<EventId<'_>>) {
    text.extend_from_slice(b"event: message\n");
    push_id(text, id);
    push_data(text, message);
    text.push(b'\n');
}

/// The event that tells a client of HTTP+SSE where to send its messages.
pub(super) fn endpoint(path: &str) -> Bytes {
    format!("event: endpoint\ndata: {path}\n\n").into()
}

/// The event that gives a client a place to resume from before anything was said.
pub(super) fn priming(id: EventId<'_>) -> Bytes {
    let mut text = Vec::with_capacity(FIELD_ROOM);
    push_id(&mut text, Some(id));
    text.extend_from_slice(b"retry: ");
    push_number(&mut text, RETRY_MILLISECONDS);
    text.extend_from_slice(b"\ndata: \n\n");
    text.into()
}

fn push_id(text: &mut Vec<u8>, id: Option<EventId<'_>>) {
    if let Some(id) = id {
        text.extend_from_slice(b"id: ");
        id.push(text);
        text.push(b'\n');
    }
}

/// A line break inside a JSON text stands between its parts, so it may become any other.
fn push_data(text: &mut Vec<u8>, message: &[u8]) {
    if memchr2(b'\n', b'\r', message).is_none() {
        text.extend_from_slice(b"data: ");
        text.extend_from_slice(message);
        text.push(b'\n');
        return;
    }
    let mut rest = message;
    while !rest.is_empty() {
        let end = memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let (line, after) = rest.split_at(end);
        if !line.is_empty() {
            text.extend_from_slice(b"data: ");
            text.extend_from_slice(line);
            text.push(b'\n');
        }
        rest = after.get(1..).unwrap_or_default();
    }
    debug_assert!(memchr(b'\r', text).is_none(), "a line break is left");
}

#[cfg(test)]
mod tests {
    use super::{EventId, endpoint, event, priming};

    #[test]
    fn events_are_written_as_the_standard_says() {
        let id = EventId {
            origin: 1,
            stream: 3,
            place: 17,
            about: "5",
        };
        assert_eq!(&event(b"{}", None)[..], b"event: message\ndata: {}\n\n");
        assert_eq!(
            &event(b"{}", Some(id))[..],
            b"event: message\nid: 00000001.3.17.5\ndata: {}\n\n"
        );
        assert_eq!(
            &priming(id)[..],
            b"id: 00000001.3.17.5\nretry: 1000\ndata: \n\n"
        );
        assert_eq!(
            &endpoint("/m?s=1")[..],
            b"event: endpoint\ndata: /m?s=1\n\n"
        );
        let spread = b"{\r\n\"a\":1,\n\r\"b\":2}\n";
        assert_eq!(
            &event(spread, None)[..],
            b"event: message\ndata: {\ndata: \"a\":1,\ndata: \"b\":2}\n\n"
        );
    }
}
