//! Where a provider is, what lets us in there, and how long it may take.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::{
    EventBody, EventLimits, FetchError, HeaderMap, HeaderName, HeaderValue, HttpClient, LinkError,
    Url, chain,
};
use http::{Method, Request, Response, Uri, header};
use serde_json::Value;

use super::complaint::shown;
use super::key::ApiKey;
use crate::provider::ProviderError;

/// One event of a reply, in bytes: the last one may hold the whole reply again.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// A whole reply on the wire, in bytes. A reply of 128,000 tokens in events of one token each is less.
const MAX_REPLY_BYTES: usize = 128 * 1024 * 1024;

/// As much of an answer is read that is no reply, in bytes.
pub(super) const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long a provider may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until its answer begins. Long: some think before they say anything at all.
    pub first_byte: Duration,
    /// Between two signs of life of an answer that has begun. Long where the interface has none: a
    /// model that thinks, or a slow machine that reads, is silent meanwhile.
    pub idle: Duration,
    /// Until its answer is whole, whatever signs of life it gives.
    pub whole: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_mins(10),
            idle: Duration::from_mins(5),
            whole: Duration::from_hours(1),
        }
    }
}

/// Where requests go.
pub(super) struct Endpoint {
    /// What the provider is called.
    pub(super) name: String,
    url: Url,
    headers: HeaderMap,
    key: Option<ApiKey>,
    http: HttpClient,
    pub(super) patience: Patience,
}

/// What every provider over HTTP is made of.
pub(super) struct Place {
    pub(super) name: String,
    pub(super) base_url: Url,
    pub(super) key: Option<ApiKey>,
    pub(super) headers: HeaderMap,
    pub(super) http: HttpClient,
    pub(super) patience: Patience,
}

/// How a key is shown to a provider.
#[derive(Clone, Copy)]
pub(super) enum KeyHeader {
    /// `x-api-key: KEY`
    Named(&'static str),
    /// `authorization: Bearer KEY`
    Bearer,
}

impl Endpoint {
    /// An endpoint below the address that people configure.
    pub(super) fn new(place: Place, path: &str, key_header: KeyHeader) -> Self {
        let Place {
            name,
            base_url: mut url,
            key,
            headers: own,
            http,
            patience,
        } = place;
        let joined = joined_path(url.path(), path);
        url.set_path(&joined);
        let mut headers = HeaderMap::new();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream, application/json"),
        );
        if let Some(key) = &key {
            match key_header {
                KeyHeader::Named(name) => {
                    headers.insert(HeaderName::from_static(name), key.header(""));
                }
                KeyHeader::Bearer => {
                    headers.insert(header::AUTHORIZATION, key.header("Bearer "));
                }
            }
        }
        // What people configure counts, also where it replaces something of ours.
        headers.extend(own);
        Self {
            name,
            url,
            headers,
            key,
            http,
            patience,
        }
    }

    /// Adds a header of the provider, unless people have configured another value for it.
    pub(super) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        let entry = self.headers.entry(HeaderName::from_static(name));
        entry.or_insert(HeaderValue::from_static(value));
        self
    }

    /// Posts a request. Any status is an answer.
    pub(super) async fn post(&self, body: &Value) -> Result<Response<EventBody>, ProviderError> {
        let uri = Uri::try_from(self.url.as_str());
        let uri = uri.map_err(|_no_uri| self.failed_fetch(&FetchError::Address))?;
        let mut request = Request::new(Bytes::from(body.to_string()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        let limits = EventLimits {
            first_byte: self.patience.first_byte,
            idle: self.patience.idle,
            max_event_bytes: MAX_EVENT_BYTES,
            max_total_bytes: MAX_REPLY_BYTES,
        };
        let answer = self.http.fetch_events(request, limits).await;
        answer.map_err(|error| self.failed_fetch(&error))
    }

    /// What it means that there is no answer at all.
    fn failed_fetch(&self, error: &FetchError) -> ProviderError {
        let provider = self.name.clone();
        match error {
            // Trying again changes nothing about these.
            FetchError::Address | FetchError::Setup(_) | FetchError::Refused(_) => {
                ProviderError::Rejected {
                    provider,
                    status: 0,
                    message: shown(&chain(error)),
                }
            }
            _ => ProviderError::Unreachable {
                provider,
                why: shown(&chain(error)),
            },
        }
    }

    /// What it means that an answer broke. Nothing if it only ended early.
    pub(super) fn is_too_large(error: &FetchError) -> bool {
        matches!(error, FetchError::Link(LinkError::AnswerTooLarge { .. }))
    }

    /// The text of a provider, without the key, should it repeat that.
    pub(super) fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) => key.removed_from(text),
            None => text.to_owned(),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and the query of an address can hold secrets.
        formatter
            .debug_struct("Endpoint")
            .field("name", &self.name)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .finish_non_exhaustive()
    }
}

/// A path below another one. People configure addresses with and without the version at their end.
fn joined_path(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    let base = match path.strip_prefix("/v1/") {
        Some(_) => base.strip_suffix("/v1").unwrap_or(base),
        None => base,
    };
    format!("{base}{path}")
}

#[cfg(test)]
mod tests {
    use super::joined_path;

    #[test]
    fn the_version_is_in_a_path_once() {
        for (base, path, expected) in [
            ("/", "/v1/messages", "/v1/messages"),
            ("/v1", "/v1/messages", "/v1/messages"),
            ("/v1/", "/v1/messages", "/v1/messages"),
            (
                "/proxy/anthropic",
                "/v1/messages",
                "/proxy/anthropic/v1/messages",
            ),
            ("/v1", "/chat/completions", "/v1/chat/completions"),
            (
                "/api/paas/v4/",
                "/chat/completions",
                "/api/paas/v4/chat/completions",
            ),
        ] {
            assert_eq!(joined_path(base, path), expected, "{base} {path}");
        }
    }
}
