//! Whoever has models: the Messages interface of Anthropic, the Responses interface of `OpenAI`, the chat
//! completions that many servers share, and the model of the client that called.
//!
//! Each says one thing in its own words and reads the answer back into the words of this crate. None
//! tries again by itself: [`Retrying`] does that for all of them.

mod anthropic;
mod chat;
mod complaint;
mod exchange;
mod history;
mod http;
mod key;
mod responses;
mod retry;
mod retry_after;
mod sampling;

pub use anthropic::{Anthropic, AnthropicOptions, Thinking};
pub use chat::{Chat, ChatOptions, OutputLimit};
pub use http::Patience;
pub use key::{ApiKey, InvalidKey};
pub use responses::{OutputImages, Reasoning, Responses, ResponsesOptions};
pub use retry::Retrying;
pub use sampling::{ClientModel, ClientModelOptions};
