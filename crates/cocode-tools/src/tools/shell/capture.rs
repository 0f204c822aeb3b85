//! The output of a command: its beginning and its end, however long it is.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::limits::{CHUNK_BYTES, MAX_LINE_BYTES, SHELL_HEAD_BYTES, SHELL_TAIL_BYTES};
use crate::text::{self, count, without_broken_end, without_broken_start};

/// Bytes that came, those in the middle only counted.
#[derive(Debug, Default)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    n_left_out: u64,
}

impl Capture {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = SHELL_HEAD_BYTES - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(SHELL_TAIL_BYTES);
        self.tail.drain(..surplus);
        self.n_left_out += surplus as u64;
    }

    /// Reads what is left of a stream. An error is its end.
    ///
    /// Cancel safe: what was read is kept.
    pub(super) async fn read_to_end(&mut self, stream: &mut (impl AsyncRead + Unpin)) {
        let mut chunk = vec![0; CHUNK_BYTES];
        while let Ok(length) = stream.read(&mut chunk).await
            && length > 0
        {
            self.push(chunk.get(..length).unwrap_or_default());
        }
    }

    /// The last line so far that is not empty.
    pub(super) fn last_line(&self) -> String {
        let end: Vec<u8> = self
            .head
            .iter()
            .chain(&self.tail)
            .rev()
            .skip_while(|byte| byte.is_ascii_whitespace())
            .take_while(|byte| **byte != b'\n')
            .take(MAX_LINE_BYTES)
            .copied()
            .collect();
        let line: Vec<u8> = end.into_iter().rev().collect();
        text::shown(String::from_utf8_lossy(without_broken_start(&line)).as_ref())
    }

    /// All of it that is kept, and whether something was left out.
    pub(super) fn into_text(mut self) -> (String, bool) {
        if self.n_left_out == 0 {
            self.head.extend(self.tail);
            return (String::from_utf8_lossy(&self.head).into_owned(), false);
        }
        let tail: Vec<u8> = self.tail.into();
        let left_out = count(self.n_left_out, "byte", "bytes");
        let head = String::from_utf8_lossy(without_broken_end(&self.head)).into_owned();
        let tail = String::from_utf8_lossy(without_broken_start(&tail)).into_owned();
        (format!("{head}\n[… {left_out} left out …]\n{tail}"), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(chunks: &[&[u8]]) -> (String, bool) {
        let mut capture = Capture::default();
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.into_text()
    }

    #[test]
    fn short_output_is_whole() {
        assert_eq!(captured(&[b"a\n", b"", b"b"]), ("a\nb".to_owned(), false));
        let exact = vec![b'x'; SHELL_HEAD_BYTES + SHELL_TAIL_BYTES];
        let (text, is_cut) = captured(&[&exact]);
        assert!(!is_cut && text.len() == exact.len());
    }

    #[test]
    fn of_long_output_the_beginning_and_the_end_are_kept() {
        let middle = vec![b'x'; SHELL_HEAD_BYTES + SHELL_TAIL_BYTES];
        for size in [1, 1000, middle.len()] {
            let mut chunks: Vec<&[u8]> = vec![b"begin"];
            chunks.extend(middle.chunks(size));
            chunks.push(b"end");
            let (text, is_cut) = captured(&chunks);
            assert!(is_cut && text.starts_with("begin") && text.ends_with("end"));
            assert!(text.contains("[… 8 bytes left out …]"), "{size}");
        }
    }

    #[test]
    fn cuts_are_made_between_characters() {
        let text = "é".repeat(SHELL_HEAD_BYTES + SHELL_TAIL_BYTES);
        let (text, is_cut) = captured(&[b"a", text.as_bytes()]);
        assert!(is_cut && !text.contains('\u{fffd}'));
    }

    #[test]
    fn the_last_line_is_the_last_one_with_something_in_it() {
        let mut capture = Capture::default();
        assert_eq!(capture.last_line(), "");
        capture.push(b"one\ntwo\x1b[0m\n\n  ");
        assert_eq!(capture.last_line(), "two\\u{1b}[0m");
    }
}
