//! Cuts an event stream into events as the HTML standard says. Pure: knows nothing of I/O.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr2;

use crate::salvage::IdScanner;

/// Room for field names and comments beside the data of an event.
const FIELD_ROOM: usize = 1024;

/// One dispatched event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// The `event:` field; empty means `message`.
    pub(crate) name: String,
    /// All `data:` lines, joined by newlines.
    pub(crate) data: Bytes,
}

/// An event was longer than the cap; its bytes were dropped as they came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EventTooLarge {
    /// The request that it seems to answer.
    pub(crate) id: Option<u64>,
}

/// Reads events out of chunks of any size.
#[derive(Debug)]
pub(crate) struct EventParser {
    max_event: usize,
    buffer: BytesMut,
    searched: usize,
    /// The last line ended with `\r`; a `\n` that follows belongs to it.
    swallow_newline: bool,
    started: bool,
    name: String,
    /// The data lines so far, if there were any.
    data: Option<BytesMut>,
    pending_id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Set while the rest of an event over the cap is dropped.
    oversized: Option<IdScanner>,
    /// The beginning of the current line has been dropped.
    line_cut: bool,
}

impl EventParser {
    pub(crate) fn new(max_event: usize) -> Self {
        Self {
            max_event,
            buffer: BytesMut::new(),
            searched: 0,
            swallow_newline: false,
            started: false,
            name: String::new(),
            data: None,
            pending_id: None,
            last_id: None,
            retry: None,
            oversized: None,
            line_cut: false,
        }
    }

    /// For a stream that goes on at the event `last_id`.
    pub(crate) fn resuming(max_event: usize, last_id: Option<String>) -> Self {
        Self {
            last_id,
            ..Self::new(max_event)
        }
    }

    /// The id of the last event that was dispatched with one; an empty id takes it away.
    pub(crate) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The last reconnection time that the server asked for.
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Whether the event that is being read is over the cap already.
    pub(crate) fn is_over_the_cap(&self) -> bool {
        self.oversized.is_some()
    }

    pub(crate) fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole event, or `None` if more bytes are needed. After an error, the events that
    /// follow are fine.
    pub(crate) fn next(&mut self) -> Result<Option<Event>, EventTooLarge> {
        while let Some(line) = self.next_line() {
            let ends_event = line.is_empty() && !self.line_cut;
            self.line_cut = false;
            match &mut self.oversized {
                Some(_) if ends_event => return Err(self.give_up()),
                Some(scanner) => scanner.feed(&line),
                None if ends_event => {
                    if let Some(event) = self.dispatch() {
                        return Ok(Some(event));
                    }
                }
                None => {
                    self.field(&line);
                    if self.data_bytes() > self.max_event {
                        self.drop_data();
                    }
                }
            }
        }
        let waiting = self.buffer.len() + self.data_bytes();
        if self.oversized.is_some() || waiting > self.max_event.saturating_add(FIELD_ROOM) {
            let begun = self.buffer.split();
            self.searched = 0;
            self.line_cut |= !begun.is_empty();
            self.drop_data().feed(&begun);
        }
        Ok(None)
    }

    fn data_bytes(&self) -> usize {
        self.data.as_ref().map_or(0, BytesMut::len)
    }

    /// Drops what is there of an event over the cap, but for its id.
    fn drop_data(&mut self) -> &mut IdScanner {
        let data = self.data.take().unwrap_or_default();
        let scanner = self.oversized.get_or_insert_default();
        scanner.feed(&data);
        scanner
    }

    /// The end of an event over the cap.
    fn give_up(&mut self) -> EventTooLarge {
        let mut scanner = self.oversized.take().unwrap_or_default();
        scanner.feed(b",");
        // Its id counts as a position in the stream all the same.
        let _nothing_left = self.dispatch();
        EventTooLarge { id: scanner.id() }
    }

    fn next_line(&mut self) -> Option<Bytes> {
        if self.swallow_newline && !self.buffer.is_empty() {
            self.swallow_newline = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let Some(offset) = memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let end = self.searched + offset;
        self.searched = 0;
        self.swallow_newline = self.buffer[end] == b'\r';
        let mut line = self.buffer.split_to(end).freeze();
        self.buffer.advance(1);
        if !self.started {
            self.started = true;
            if line.starts_with(b"\xef\xbb\xbf") {
                line.advance(3);
            }
        }
        Some(line)
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line);
        let (name, value) = match colon {
            // A comment: how servers keep a quiet stream alive.
            Some(0) => return,
            Some(at) => (&line[..at], line.slice(at + 1..)),
            None => (&line[..], Bytes::new()),
        };
        let value = if value.first() == Some(&b' ') {
            value.slice(1..)
        } else {
            value
        };
        match name {
            b"event" => self.name = String::from_utf8_lossy(&value).into_owned(),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.extend_from_slice(b"\n");
                    data.extend_from_slice(&value);
                }
                // Nearly always the only line, and then it is not copied.
                None => self.data = Some(value.into()),
            },
            b"id" if !value.contains(&0) => {
                self.pending_id = Some(String::from_utf8_lossy(&value).into_owned());
            }
            b"retry" => {
                let text = std::str::from_utf8(&value).unwrap_or_default();
                if let Ok(milliseconds) = text.parse() {
                    self.retry = Some(Duration::from_millis(milliseconds));
                }
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Event> {
        if let Some(id) = self.pending_id.take() {
            // An empty id resets the position in the stream.
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let name = std::mem::take(&mut self.name);
        let data = self.data.take()?.freeze();
        Some(Event { name, data })
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
