//! The Messages interface of Anthropic.

mod request;
mod stream;

use std::fmt;
use std::time::Duration;

use cocode_core::Dialect;
use cocode_wire::{HeaderMap, HttpClient, Url};

use super::exchange::exchange;
use super::http::{Endpoint, KeyHeader, Patience, Place};
use super::key::ApiKey;
use crate::provider::{Delta, ModelRequest, Provider, ProviderError, Reply, Work};

/// The version of the interface that this speaks.
const VERSION: &str = "2023-06-01";

/// The longest silence of a reply: this interface gives signs of life while its models think.
const PINGED_IDLE: Duration = Duration::from_mins(2);

/// What a provider of this kind is made of.
pub struct AnthropicOptions {
    /// What it is called, for people and in the store.
    pub name: String,
    /// Such as `https://api.anthropic.com`; `/v1/messages` is below it.
    pub base_url: Url,
    /// What lets us in, if anything has to.
    pub key: Option<ApiKey>,
    /// Headers beside or instead of the usual ones.
    pub headers: HeaderMap,
    /// Makes the connections.
    pub http: HttpClient,
    /// Whether models think before they speak.
    pub thinking: Thinking,
    /// How long it may take.
    pub patience: Patience,
}

/// Whether models think before they speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// As the model does when nothing is said about it.
    #[default]
    Unsaid,
    /// As much as the model finds right, where models can decide that.
    Adaptive,
    /// Up to so many tokens.
    Budget(u64),
}

/// Anthropic, or who speaks as it does.
#[derive(Debug)]
pub struct Anthropic {
    endpoint: Endpoint,
    thinking: Thinking,
}

impl AnthropicOptions {
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
            thinking: Thinking::default(),
            patience: Patience {
                idle: PINGED_IDLE,
                ..Patience::default()
            },
        }
    }
}

impl Anthropic {
    /// Contacts nobody yet.
    pub fn new(options: AnthropicOptions) -> Self {
        let AnthropicOptions {
            name,
            base_url,
            key,
            headers,
            http,
            thinking,
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
        let endpoint = Endpoint::new(place, "/v1/messages", KeyHeader::Named("x-api-key"));
        let endpoint = endpoint.with_header("anthropic-version", VERSION);
        Self { endpoint, thinking }
    }
}

impl Provider for Anthropic {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn dialect(&self) -> Dialect {
        Dialect::Anthropic
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let body = request::body(&request, self.name(), self.thinking);
            let reader = stream::Incoming::new(self.name());
            exchange(&self.endpoint, &request.model.name, &body, reader, on_delta).await
        })
    }
}

impl fmt::Debug for AnthropicOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and addresses can hold secrets.
        formatter
            .debug_struct("AnthropicOptions")
            .field("name", &self.name)
            .field("host", &self.base_url.host_str())
            .field("thinking", &self.thinking)
            .finish_non_exhaustive()
    }
}
