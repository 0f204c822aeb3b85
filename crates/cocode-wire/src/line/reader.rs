//! Reads lines and delivers them as frames, until the stream ends.

use std::pin::Pin;
use std::sync::Arc;

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

/// Delivers everything that comes from `source`, and says how it ended. The writer of the same link
/// is told when many answers came at once: as many requests may follow.
pub(crate) async fn pump(
    mut source: Source,
    inbox: &Arc<dyn Inbox>,
    writer: &LineWriter,
    max_frame: usize,
) -> Closed {
    let mut splitter = Splitter::new(max_frame);
    let mut buffer = BytesMut::new();
    let mut room = MIN_READ;
    loop {
        if buffer.capacity() - buffer.len() < room / 2 {
            buffer.reserve(room);
        }
        let free = buffer.capacity() - buffer.len();
        match source.read_buf(&mut buffer).await {
            Ok(0) => {
                if let Some(rest) = splitter.finish(&mut buffer) {
                    deliver_rest(&**inbox, rest, max_frame);
                }
                return Closed::ByPeer;
            }
            Ok(read) if read == free => room = (room * 2).min(MAX_READ),
            Ok(read) if read < room / 8 => room = (room / 2).max(MIN_READ),
            Ok(_) => {}
            Err(error) => return Closed::Io(Arc::new(error)),
        }
        let mut n_lines = 0_usize;
        while let Some(line) = splitter.next(&mut buffer) {
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
        Line::TooLarge { id, head } => inbox.malformed(Malformed {
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
