//! The seam to whoever has models.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use cocode_core::{Dialect, ProviderTool};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::{Block, Message};
use crate::model::{Model, Usage};

/// A future of this crate.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whoever has models.
pub trait Provider: Send + Sync {
    /// What it is called, for people and in the store.
    fn name(&self) -> &str;

    /// How it wants tools to be described.
    fn dialect(&self) -> Dialect;

    /// Lets a model go on with a conversation. What it says is told piece by piece, and whole at the
    /// end. One attempt: who wants more asks again. Dropping the future ends the request.
    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>>;
}

impl<P: Provider + ?Sized> Provider for Arc<P> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn dialect(&self) -> Dialect {
        (**self).dialect()
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        (**self).reply(request, on_delta)
    }
}

/// What a model is given.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest<'a> {
    /// Which model.
    pub model: &'a Model,
    /// What it is told before anything else.
    pub system: &'a str,
    /// What was said so far. The roles take turns, and the last is the user.
    pub messages: &'a [Message],
    /// The tools that it may call, in the dialect of the provider.
    pub tools: &'a [Arc<ProviderTool>],
    /// Tokens that it may write, if fewer than it can.
    pub max_output_tokens: Option<u64>,
    /// The same for every request of a conversation: caches may be chosen by it.
    pub conversation: &'a str,
}

/// A piece of what a model says, as it says it.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of what it thinks.
    Reasoning(String),
    /// It begins to write the call of this tool.
    ToolCall {
        /// Its name.
        name: String,
    },
    /// What was told so far does not count: the request is made again.
    Restart {
        /// Why.
        why: String,
        /// After how long.
        after: Duration,
    },
}

/// What a model said.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// All of it.
    pub content: Vec<Block>,
    /// Why it stopped.
    pub stop: Stop,
    /// What that took.
    pub usage: Usage,
    /// The model that it was, if the provider says so.
    pub model: Option<String>,
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It is done.
    Done,
    /// It waits for tools.
    ToolCalls,
    /// It has written as much as it may.
    MaxTokens,
    /// It will not answer, or is not let.
    Refused(Option<String>),
    /// Something else, in the words of the provider.
    Other(String),
}

/// Why there is no reply. No message holds a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// There is no way there, or it broke before anything was said.
    #[error("{provider} cannot be reached: {why}")]
    Unreachable {
        /// Whom.
        provider: String,
        /// What happened.
        why: String,
    },
    /// Too many requests, or too many tokens, for now.
    #[error("{provider} takes no more requests for now: {message}")]
    RateLimited {
        /// Who.
        provider: String,
        /// In its words.
        message: String,
        /// When to ask again, if it said so.
        retry_after: Option<Duration>,
    },
    /// Something is wrong over there, for now.
    #[error("{provider} failed ({status}): {message}")]
    Failing {
        /// Who.
        provider: String,
        /// The status of the answer, or of the event that said so.
        status: u16,
        /// In its words.
        message: String,
        /// When to ask again, if it said so.
        retry_after: Option<Duration>,
    },
    /// The stream of the reply ended before the reply did.
    #[error("the reply of {provider} broke off: {why}")]
    BrokeOff {
        /// Whose.
        provider: String,
        /// What happened.
        why: String,
        /// What was said so far; calls that are not whole are not in it.
        said: Vec<Block>,
    },
    /// The conversation is longer than what the model sees.
    #[error("the conversation is too long for the model: {message}")]
    TooLong {
        /// In the words of the provider.
        message: String,
    },
    /// The key is missing, wrong, or does not allow this.
    #[error("{provider} does not let us in ({status}): {message}")]
    Unauthorized {
        /// Who.
        provider: String,
        /// The status of the answer.
        status: u16,
        /// In its words.
        message: String,
    },
    /// There is no such model, or address.
    #[error("{provider} does not know the model `{model}`: {message}")]
    UnknownModel {
        /// Who.
        provider: String,
        /// What was asked for.
        model: String,
        /// In its words.
        message: String,
    },
    /// The provider does not take the request.
    #[error("{provider} does not take the request{}: {message}", in_brackets(*status))]
    Rejected {
        /// Who.
        provider: String,
        /// The status of the answer, or zero where there is none.
        status: u16,
        /// In its words.
        message: String,
    },
    /// The answer is not what the provider documents.
    #[error("the answer of {provider} is not understood: {why}")]
    NotUnderstood {
        /// Whose.
        provider: String,
        /// What is wrong with it.
        why: String,
    },
}

/// ` (status)`, or nothing.
fn in_brackets(status: u16) -> String {
    match status {
        0 => String::new(),
        status => format!(" ({status})"),
    }
}

/// Asks the client that called for its own model.
pub trait Sampler: Send + Sync {
    /// Whether that model may be given tools.
    fn takes_tools(&self) -> bool;

    /// `sampling/createMessage`: its parameters in, its result out, or why there is none.
    fn create_message(&self, params: Value) -> Work<'_, Result<Value, String>>;
}

/// Which model a conversation wants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// By name; the usual one, if not given.
    pub model: Option<String>,
    /// Of this provider; the usual one, if not given.
    pub provider: Option<String>,
}

/// A model, and who has it.
#[derive(Clone)]
pub struct Chosen {
    /// Who has it.
    pub provider: Arc<dyn Provider>,
    /// What is known of it.
    pub model: Model,
}

/// Finds models by what is configured.
pub trait Providers: Send + Sync {
    /// The model of a conversation. What is wrong is said for people: what, where it is configured,
    /// and what to do.
    fn choose<'a>(
        &'a self,
        choice: &'a ModelChoice,
        sampler: Option<Arc<dyn Sampler>>,
    ) -> Work<'a, Result<Chosen, ChoiceError>>;
}

/// There is no such model, and this is what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ChoiceError {
    /// What is wrong.
    pub message: String,
    /// What to do about it, each a sentence.
    pub hints: Vec<String>,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Chosen")
            .field("provider", &self.provider.name())
            .field("model", &self.model)
            .finish()
    }
}
