//! The Responses interface of `OpenAI`. Nothing is kept over there: every request has the whole
//! conversation, and thoughts travel encrypted.

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
pub struct ResponsesOptions {
    /// What it is called, for people and in the store.
    pub name: String,
    /// Such as `https://api.openai.com`; `/v1/responses` is below it.
    pub base_url: Url,
    /// What lets us in, if anything has to.
    pub key: Option<ApiKey>,
    /// Headers beside or instead of the usual ones.
    pub headers: HeaderMap,
    /// Makes the connections.
    pub http: HttpClient,
    /// How models think; nothing for models that do not, which refuse to be told.
    pub reasoning: Option<Reasoning>,
    /// Where images of tools go.
    pub output_images: OutputImages,
    /// How long it may take.
    pub patience: Patience,
}

/// How models think.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// Such as `low`, `medium` or `high`; as the model does by itself, if not given.
    pub effort: Option<String>,
    /// Such as `auto`; thoughts are not told at all, if not given.
    pub summary: Option<String>,
}

/// Where images of tools go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputImages {
    /// Into the output of the call, as documented.
    #[default]
    Inside,
    /// Into a message that follows, for servers that take only text as an output.
    Following,
}

/// `OpenAI`, or who speaks as it does.
#[derive(Debug)]
pub struct Responses {
    endpoint: Endpoint,
    manner: Manner,
}

/// What requests of a provider have in common.
#[derive(Clone, Debug)]
struct Manner {
    reasoning: Option<Reasoning>,
    output_images: OutputImages,
}

impl ResponsesOptions {
    /// The usual ones, for models that think.
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
            reasoning: Some(Reasoning {
                effort: None,
                summary: Some("auto".into()),
            }),
            output_images: OutputImages::default(),
            patience: Patience::default(),
        }
    }
}

impl Responses {
    /// Contacts nobody yet.
    pub fn new(options: ResponsesOptions) -> Self {
        let ResponsesOptions {
            name,
            base_url,
            key,
            headers,
            http,
            reasoning,
            output_images,
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
        let manner = Manner {
            reasoning,
            output_images,
        };
        Self {
            endpoint: Endpoint::new(place, "/v1/responses", KeyHeader::Bearer),
            manner,
        }
    }
}

impl Provider for Responses {
    fn name(&self) -> &str {
        &self.endpoint.name
    }

    fn dialect(&self) -> Dialect {
        Dialect::OpenAiStrict
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let body = request::body(&request, self.name(), &self.manner);
            let reader = stream::Incoming::new(self.name());
            exchange(&self.endpoint, &request.model.name, &body, reader, on_delta).await
        })
    }
}

impl fmt::Debug for ResponsesOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and addresses can hold secrets.
        formatter
            .debug_struct("ResponsesOptions")
            .field("name", &self.name)
            .field("host", &self.base_url.host_str())
            .field("reasoning", &self.reasoning)
            .field("output_images", &self.output_images)
            .finish_non_exhaustive()
    }
}
