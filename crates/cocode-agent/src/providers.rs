//! Whoever has models: the Messages interface of Anthropic, the Responses interface of `OpenAI`, the chat
//! completions that many servers share, and the model of the client that called.
//!
//! Each says one thing in its own words and reads the answer back into the words of this crate. None
//! tries again by itself: [`Retrying`] does that for all of them.

mod anthropic;
mod complaint;
mod exchange;
mod history;
mod http;
mod key;
mod retry_after;

pub use anthropic::{Anthropic, AnthropicOptions, Thinking};
pub use http::Patience;
pub use key::{ApiKey, InvalidKey};
