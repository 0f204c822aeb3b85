//! The server ends of links: whoever connects, over whatever carries it, meets an [`Endpoint`].
//!
//! A link cuts what clients send into frames, keeps what belongs together together (connections,
//! sessions, streams), and enforces limits. What the messages mean is for the [`Conversation`].

mod service;

pub use service::{Answer, Asked, Conversation, Endpoint, Serving, Sink};
