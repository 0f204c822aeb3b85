//! Reads lines and delivers them as frames, until the stream ends.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::splitter::{Line, Splitter};
use super::writer::LineWriter;
use crate::deliver::deliver_text;
use crate::error::Closed;
use crate::frame::Frame;
use crate::inbox::{Inbox, Malformed, MalformedReason, Origin, excerpt};
use crate::salvage::salvage_id;

pub(crate) type Source = Pin<Box<dyn AsyncRead + Send>>;

/// The least and most free space offered to one read: small answers cost little, and a large one
/// does not arrive in small pieces.
const MIN_READ: usize = 8 * 1024;
const MAX_READ: usize = 256 * 1024;

/// So many messages in one read mean that many requests are in flight.
const CROWD: usize = 2;

/// What has been read of a stream of lines and not been taken yet. Offers each read as much room as
/// the stream seems to need.
#[derive(Debug)]
pub(crate) struct Intake {
    buffer: BytesMut,
    room: usize,
    splitter: Splitter,
}

impl Intake {
    /// Begins with `unread` bytes, which came before those that will be read.
    pub(crate) fn new(unread: BytesMut, max_line: usize) -> Self {
        Self {
            buffer: unread,
            room: MIN_READ,
            splitter: Splitter::new(max_line),
        }
    }

    /// Reads once. Ready with `false` at the end of the stream.
    pub(crate) fn poll_fill(
        &mut self,
        source: &mut Source,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<bool>> {
        let Self { buffer, room, .. } = self;
        if buffer.capacity() - buffer.len() < *room / 2 {
            buffer.reserve(*room);
        }
        let free = buffer.capacity() - buffer.len();
        let reading = pin!(source.read_buf(buffer));
        let read = match reading.poll(context) {
            Poll::Ready(Ok(read)) => read,
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        };
        if read == free {
            *room = (*room * 2).min(MAX_READ);
        } else if read < *room / 8 {
            *room = (*room / 2).max(MIN_READ);
        }
        Poll::Ready(Ok(read > 0))
    }

    /// The next line that has arrived whole.
    pub(crate) fn next(&mut self) -> Option<Line> {
        self.splitter.next(&mut self.buffer)
    }

    /// What is left when the stream has ended.
    pub(crate) fn finish(&mut self) -> Option<Line> {
        self.splitter.finish(&mut self.buffer)
    }
}

/// Delivers everything that comes from `source`, and says how it ended. The writer of the same link
/// is told when many answers came at once: as many requests may follow.
pub(crate) async fn pump(
    mut source: Source,
    inbox: &Arc<dyn Inbox>,
    writer: &LineWriter,
    max_frame: usize,
) -> Closed {
    let mut intake = Intake::new(BytesMut::new(), max_frame);
    loop {
        let filled = poll_fn(|context| intake.poll_fill(&mut source, context)).await;
        match filled {
            Ok(true) => {}
            Ok(false) => {
                if let Some(rest) = intake.finish() {
                    deliver_rest(&**inbox, rest, max_frame);
                }
                return Closed::ByPeer;
            }
            Err(error) => return Closed::Io(Arc::new(error)),
        }
        let mut n_lines = 0_usize;
        while let Some(line) = intake.next() {
            n_lines += 1;
            if n_lines == CROWD {
                writer.gather();
            }
            deliver(&**inbox, line, max_frame);
        }
        if n_lines >= CROWD {
            writer.release();
        }
    }
}

fn deliver(inbox: &dyn Inbox, line: Line, limit: usize) {
    match line {
        Line::Whole(bytes) => deliver_text(inbox, &bytes, Origin::Shared),
        Line::TooLarge { id, asked: _, head } => inbox.malformed(Malformed {
            reason: MalformedReason::TooLarge { limit },
            id,
            excerpt: excerpt(&head),
        }),
    }
}

/// The unfinished line at the end of a stream: a whole message if only its newline is missing.
fn deliver_rest(inbox: &dyn Inbox, rest: Line, limit: usize) {
    match rest {
        Line::Whole(bytes) => match Frame::parse(bytes.clone()) {
            Ok(frame) => inbox.frame(frame, Origin::Shared),
            Err(_not_whole) => inbox.malformed(Malformed {
                reason: MalformedReason::CutShort,
                id: salvage_id(&bytes),
                excerpt: excerpt(&bytes),
            }),
        },
        too_large @ Line::TooLarge { .. } => deliver(inbox, too_large, limit),
    }
}
