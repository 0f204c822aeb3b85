//! Reads the first line of a connection without losing what follows it.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The first line of a connection, and what came with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstLine {
    /// The line without its end.
    pub line: Bytes,
    /// What was read beyond it; see [`LineOptions::unread`](super::LineOptions::unread).
    pub rest: Bytes,
}

/// Why a connection has no first line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FirstLineError {
    /// The line is longer than the cap.
    #[error("the first line is over the cap of {limit} bytes")]
    TooLong {
        /// The cap.
        limit: usize,
    },
    /// The line did not come in time.
    #[error("no first line came within {} s", after.as_secs())]
    TimedOut {
        /// How long it was waited for.
        after: Duration,
    },
    /// The connection ended before the end of the line.
    #[error("the connection ended before its first line did")]
    Ended,
    /// There were too many connections without a complete first line, and this was the oldest.
    #[error("the connection was closed for a newer one")]
    Evicted,
    /// Reading failed.
    #[error("cannot read the first line")]
    Io(#[source] std::io::Error),
}

/// Reads one line of at most `limit` bytes, all of which must come within `patience`.
///
/// Not cancel safe: what was read is lost with the future.
pub async fn read_first_line(
    source: &mut (impl AsyncRead + Unpin),
    limit: usize,
    patience: Duration,
) -> Result<FirstLine, FirstLineError> {
    let reading = tokio::time::timeout(patience, read(source, limit));
    reading
        .await
        .unwrap_or(Err(FirstLineError::TimedOut { after: patience }))
}

async fn read(
    source: &mut (impl AsyncRead + Unpin),
    limit: usize,
) -> Result<FirstLine, FirstLineError> {
    let mut buffer = BytesMut::new();
    let mut n_searched = 0;
    loop {
        let read = source.read_buf(&mut buffer).await;
        if read.map_err(FirstLineError::Io)? == 0 {
            return Err(FirstLineError::Ended);
        }
        let end = memchr(b'\n', &buffer[n_searched..]).map(|offset| n_searched + offset);
        if end.unwrap_or(buffer.len()) > limit {
            return Err(FirstLineError::TooLong { limit });
        }
        if let Some(end) = end {
            let mut line = buffer.split_to(end).freeze();
            if line.ends_with(b"\r") {
                line.truncate(end - 1);
            }
            buffer.advance(1);
            let rest = buffer.freeze();
            return Ok(FirstLine { line, rest });
        }
        n_searched = buffer.len();
    }
}
