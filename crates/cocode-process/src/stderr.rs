//! The last words of a child: reads its stderr to the end, keeps the tail, shows lines live.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

use crate::spec::StderrTap;

/// How much of a child's stderr is kept.
pub const STDERR_TAIL_BYTES: usize = 64 * 1024;

/// The longest line given to a [`StderrTap`]; the rest of a longer line is left out.
pub const STDERR_LINE_BYTES: usize = 8 * 1024;

/// One read from the pipe.
const CHUNK_BYTES: usize = 16 * 1024;

/// A handle to the last [`STDERR_TAIL_BYTES`] of a child's stderr. It outlives the child.
#[derive(Clone, Default)]
pub struct StderrTail {
    ring: Arc<Mutex<Ring>>,
}

impl StderrTail {
    /// The last `max` lines, oldest first, without line ends. Bytes that are not UTF-8 are
    /// replaced. A line whose beginning is no longer kept is left out, unless it is all there is.
    pub fn lines(&self, max: usize) -> Vec<String> {
        let (bytes, truncated) = {
            let ring = self.ring();
            (
                ring.bytes.iter().copied().collect::<Vec<u8>>(),
                ring.truncated,
            )
        };
        let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        if truncated && lines.len() > 1 {
            lines.remove(0);
        }
        if bytes.is_empty() {
            lines.clear();
        }
        let skipped = lines.len().saturating_sub(max);
        lines
            .into_iter()
            .skip(skipped)
            .map(without_carriage_return)
            .collect()
    }

    fn push(&self, chunk: &[u8]) {
        self.ring().push(chunk);
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // Nothing in here can leave the ring half changed, so a poisoned lock is still good.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StderrTail {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StderrTail")
            .field("bytes", &self.ring().bytes.len())
            .finish()
    }
}

#[derive(Default)]
struct Ring {
    bytes: VecDeque<u8>,
    truncated: bool,
}

impl Ring {
    fn push(&mut self, chunk: &[u8]) {
        let surplus = (self.bytes.len() + chunk.len()).saturating_sub(STDERR_TAIL_BYTES);
        if surplus > 0 {
            self.truncated = true;
            let from_ring = surplus.min(self.bytes.len());
            self.bytes.drain(..from_ring);
            self.bytes
                .extend(chunk.get(surplus - from_ring..).unwrap_or_default());
        } else {
            self.bytes.extend(chunk);
        }
    }
}

/// Reads stderr until its end, which comes when the last process that holds it has exited.
pub(crate) async fn read_to_end(
    mut pipe: pipe::Receiver,
    tail: StderrTail,
    tap: Option<StderrTap>,
) {
    let mut lines = tap.map(LineTap::new);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) => break,
            Ok(length) => {
                let bytes = chunk.get(..length).unwrap_or_default();
                tail.push(bytes);
                if let Some(lines) = &mut lines {
                    lines.push(bytes);
                }
            }
            Err(error) => {
                tracing::debug!(%error, "cannot read a child's stderr any further");
                break;
            }
        }
    }
    if let Some(lines) = &mut lines {
        lines.finish();
    }
}

/// Cuts a stream into lines for a tap, holding at most one capped line.
struct LineTap {
    tap: StderrTap,
    line: Vec<u8>,
}

impl LineTap {
    fn new(tap: StderrTap) -> Self {
        Self {
            tap,
            line: Vec::new(),
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, complete) = match piece.strip_suffix(b"\n") {
                Some(text) => (text, true),
                None => (piece, false),
            };
            let room = STDERR_LINE_BYTES - self.line.len();
            self.line.extend(text.iter().take(room));
            if complete {
                self.emit();
            }
        }
    }

    fn finish(&mut self) {
        if !self.line.is_empty() {
            self.emit();
        }
    }

    fn emit(&mut self) {
        (self.tap)(&without_carriage_return(&self.line));
        self.line.clear();
    }
}

fn without_carriage_return(line: &[u8]) -> String {
    String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line)).into_owned()
}

#[cfg(test)]
#[path = "stderr_tests.rs"]
mod tests;
