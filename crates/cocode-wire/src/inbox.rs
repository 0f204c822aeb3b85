//! Where links deliver: the other side of a link, as the link sees it.

use crate::error::{Closed, LinkError};
use crate::frame::Frame;

/// Receives what a link reads. Called in the order of arrival, from the link's own tasks, so an
/// implementation must not block: it hands over and returns.
pub trait Inbox: Send + Sync + 'static {
    /// A message arrived.
    fn frame(&self, frame: Frame, origin: Origin);

    /// Something arrived that is no message.
    fn malformed(&self, malformed: Malformed);

    /// Request `id` will get no answer on this link.
    fn failed(&self, id: u64, error: LinkError);

    /// The server has ended the session, and said so outside of any request.
    fn session_gone(&self) {}

    /// The link is gone; nothing follows.
    fn closed(&self, reason: Closed);
}

/// On which stream a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The one stream that everything shares.
    Shared,
    /// The stream that answers our request of this id (streamable HTTP).
    Request(u64),
}

/// Something a peer sent that could not be used.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// What is wrong with it.
    pub reason: MalformedReason,
    /// The request it seems to answer.
    pub id: Option<u64>,
    /// The beginning of it.
    pub excerpt: String,
}

impl Malformed {
    /// A message over the cap, of which nothing is left but maybe its id.
    pub(crate) fn too_large(limit: usize, id: Option<u64>) -> Self {
        let reason = MalformedReason::TooLarge { limit };
        Self {
            reason,
            id,
            excerpt: String::new(),
        }
    }
}

/// What is wrong with an unusable message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MalformedReason {
    /// Longer than the cap.
    TooLarge {
        /// The cap in bytes.
        limit: usize,
    },
    /// Not UTF-8.
    NotUtf8,
    /// Not JSON, or JSON that is no JSON-RPC message.
    NotJsonRpc(String),
    /// The stream ended in the middle of it.
    CutShort,
}

impl std::fmt::Display for MalformedReason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge { limit } => {
                write!(formatter, "a message over the cap of {limit} bytes")
            }
            Self::NotUtf8 => formatter.write_str("a message that is not UTF-8"),
            Self::NotJsonRpc(why) => write!(formatter, "a message that is not JSON-RPC: {why}"),
            Self::CutShort => formatter.write_str("a message that was cut short"),
        }
    }
}

/// The beginning of `bytes`, fit to be shown to a person.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(4 * crate::limits::MAX_EXCERPT_CHARS)];
    let text: String = String::from_utf8_lossy(head)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(crate::limits::MAX_EXCERPT_CHARS)
        .collect();
    let text = text.trim().to_owned();
    if text.len() < bytes.len() {
        format!("{text}…")
    } else {
        text
    }
}
