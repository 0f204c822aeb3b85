//! Chat completions, the interface that Ollama, llama.cpp, vLLM and many others share with `OpenAI`.

mod calls;
mod request;
mod stream;

use std::fmt;

use cocode_core::Dialect;
use cocode_wire::{HeaderMap, HttpClient, Url};

use super::exchange::exchange;
use super::http::{Endpoint, KeyHeader, Patience, Place};
use super::key::ApiKey;
use crate::provider::{Delta, ModelRequest, Provider, ProviderError, Reply, Work};

/// What a provider of this kind is made of.
pub struct ChatOptions {
    /// What it is called, for people and in the store.
    pub name: String,
    /// Such as `http://localhost:11434/v1`; `/chat/completions` is below it.
    pub base_url: Url,
    /// What lets us in, if anything has to.
    pub key: Option<ApiKey>,
    /// Headers beside or instead of the usual ones.
    pub headers: HeaderMap,
    /// Makes the connections.
    pub http: HttpClient,
    /// How tools are described: plainly, unless it is known that more is understood.
    pub dialect: Dialect,
    /// Which member limits what is written.
    pub limit: OutputLimit,
    /// How long it may take.
    pub patience: Patience,
}

/// Which member limits what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputLimit {
    /// `max_tokens`, which nearly everybody knows.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`, which models of `OpenAI` that think want.
    MaxCompletionTokens,
}

/// Whoever completes chats.
#[derive(Debug)]
pub struct Chat {
    endpoint: Endpoint,
    dialect: Dialect,
    limit: OutputLimit,
}

impl ChatOptions {
    /// The usual ones.
    pub fn new(
        name: impl Into<String>,
        base_url: Url,
        key: Option<ApiKey>,
        http: HttpClient,
    ) -> Self {
        Self {
            name: name.into(),
            base_url,
            key,
            headers: HeaderMap::new(),
            http,
            dialect: Dialect::Plain,
            limit: OutputLimit::default(),
            patience: Patience::default(),
        }
    }
}

impl Chat {
    /// Contacts nobody yet.
    pub fn new(options: ChatOptions) -> Self {
        let ChatOptions {
            name,
            base_url,
            key,
            headers,
            http,
            dialect,
            limit,
            patience,
        } = options;
        let place = Place {
            name,
            base_url,
            key,
            headers,
            http,
            patience,
        };
        Self {
            endpoint: Endpoint::new(place, "/chat/completions", KeyHeader::Bearer),
            dialect,
            limit,
        }
    }
}

impl Provider for Chat {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let body = request::body(&request, self.name(), self.limit);
            let reader = stream::Incoming::new(self.name());
            exchange(&self.endpoint, &request.model.name, &body, reader, on_delta).await
        })
    }
}

impl fmt::Debug for ChatOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and addresses can hold secrets.
        formatter
            .debug_struct("ChatOptions")
            .field("name", &self.name)
            .field("host", &self.base_url.host_str())
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}
