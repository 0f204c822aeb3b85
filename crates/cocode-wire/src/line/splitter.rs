//! Cuts a stream of bytes into lines, with a cap. Pure: knows nothing of I/O.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;

use crate::raw::RawJson;
use crate::salvage::IdScanner;

/// One thing found in the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line without its newline, within the cap.
    Whole(Bytes),
    /// A line over the cap; its bytes were dropped as they came.
    TooLarge {
        /// The request that it seems to answer.
        id: Option<u64>,
        /// The id of the request that it seems to be.
        asked: Option<RawJson>,
        /// The beginning of it.
        head: Bytes,
    },
}

/// Bytes of an oversized line that are kept to show them.
const HEAD_BYTES: usize = 512;

#[derive(Debug)]
pub(crate) struct Splitter {
    max_line: usize,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    discarding: Option<Discarding>,
}

#[derive(Debug)]
struct Discarding {
    scanner: IdScanner,
    head: Bytes,
}

impl Splitter {
    pub(crate) fn new(max_line: usize) -> Self {
        Self {
            max_line,
            searched: 0,
            discarding: None,
        }
    }

    /// Takes the next line out of `buffer`, or `None` if more bytes are needed.
    pub(crate) fn next(&mut self, buffer: &mut BytesMut) -> Option<Line> {
        loop {
            let Some(offset) = memchr(b'\n', &buffer[self.searched..]) else {
                self.searched = buffer.len();
                if buffer.len() > self.max_line || self.discarding.is_some() {
                    self.discard(buffer);
                }
                return None;
            };
            let end = self.searched + offset;
            self.searched = 0;
            if let Some(mut discarding) = self.discarding.take() {
                discarding.scanner.feed(&buffer[..=end]);
                buffer.advance(end + 1);
                return Some(discarding.finish());
            }
            if end > self.max_line {
                let mut discarding = Discarding::begin(&buffer[..end]);
                discarding.scanner.feed(&buffer[..=end]);
                buffer.advance(end + 1);
                return Some(discarding.finish());
            }
            let line = buffer.split_to(end).freeze();
            buffer.advance(1);
            let line = trim(line);
            if !line.is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// What is left when the stream has ended.
    pub(crate) fn finish(&mut self, buffer: &mut BytesMut) -> Option<Line> {
        self.searched = 0;
        if let Some(mut discarding) = self.discarding.take() {
            discarding.scanner.feed(buffer);
            buffer.clear();
            return Some(discarding.finish());
        }
        let rest = trim(buffer.split().freeze());
        (!rest.is_empty()).then_some(Line::Whole(rest))
    }

    fn discard(&mut self, buffer: &mut BytesMut) {
        let discarding = self
            .discarding
            .get_or_insert_with(|| Discarding::begin(buffer));
        discarding.scanner.feed(buffer);
        buffer.clear();
        self.searched = 0;
    }
}

impl Discarding {
    fn begin(bytes: &[u8]) -> Self {
        let head = Bytes::copy_from_slice(&bytes[..bytes.len().min(HEAD_BYTES)]);
        Self {
            scanner: IdScanner::default(),
            head,
        }
    }

    fn finish(self) -> Line {
        Line::TooLarge {
            id: self.scanner.id(),
            asked: self.scanner.asked(),
            head: self.head,
        }
    }
}

/// Without blanks around it: servers on other systems end lines with `\r\n`.
fn trim(mut line: Bytes) -> Bytes {
    let leading = line.len() - line.trim_ascii_start().len();
    line.advance(leading);
    line.truncate(line.trim_ascii_end().len());
    line
}

#[cfg(test)]
#[path = "splitter_tests.rs"]
mod tests;
