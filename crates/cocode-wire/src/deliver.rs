//! From a JSON text to the inbox: messages, batches of them, and what is neither.

use bytes::Bytes;

use crate::frame::{Frame, FrameError};
use crate::inbox::{Inbox, Malformed, MalformedReason, Origin, excerpt};
use crate::salvage::salvage_id;

/// Delivers one JSON text: a message or a batch of them.
pub(crate) fn deliver_text(inbox: &dyn Inbox, bytes: &Bytes, origin: Origin) {
    for member in frames_in(bytes) {
        match member {
            Ok(frame) => inbox.frame(frame, origin),
            Err(error) => inbox.malformed(malformed(bytes, &error)),
        }
    }
}

/// The messages in one JSON text.
pub(crate) fn frames_in(bytes: &Bytes) -> FramesIn {
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        return FramesIn {
            one: Some(Frame::parse(bytes.clone())),
            more: Vec::new().into_iter(),
        };
    }
    match Frame::parse_batch(bytes) {
        Ok(members) => FramesIn {
            one: None,
            more: members.into_iter(),
        },
        Err(error) => FramesIn {
            one: Some(Err(error)),
            more: Vec::new().into_iter(),
        },
    }
}

/// One frame, which is nearly always all there is, or the members of a batch.
pub(crate) struct FramesIn {
    one: Option<Result<Frame, FrameError>>,
    more: std::vec::IntoIter<Result<Frame, FrameError>>,
}

impl Iterator for FramesIn {
    type Item = Result<Frame, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.one.take().or_else(|| self.more.next())
    }
}

/// Describes a text that is no frame.
pub(crate) fn malformed(bytes: &Bytes, error: &FrameError) -> Malformed {
    let reason = match error {
        _ if std::str::from_utf8(bytes).is_err() => MalformedReason::NotUtf8,
        FrameError::NotJson(source) => MalformedReason::NotJsonRpc(source.to_string()),
        FrameError::NotAnObject | FrameError::NoRole | FrameError::Version => {
            MalformedReason::NotJsonRpc(error.to_string())
        }
    };
    Malformed {
        reason,
        id: salvage_id(bytes),
        excerpt: excerpt(bytes),
    }
}
