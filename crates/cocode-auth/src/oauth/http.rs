//! HTTP as the parts of OAuth use it: guarded addresses, small answers, no waiting forever.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::{FetchError, HttpClient};
use http::{HeaderMap, Method, Request, Response, header};
use url::Url;

use super::guard::{Guard, GuardError};

/// No document or answer of OAuth is longer.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// How long one exchange may take.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(20);

/// How often a document may be somewhere else.
const MAX_REDIRECTS: usize = 3;

/// Speaks to authorization servers.
#[derive(Clone, Debug)]
pub struct Http {
    client: HttpClient,
    guard: Guard,
}

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HttpError {
    /// We do not go there.
    #[error(transparent)]
    Refused(#[from] GuardError),
    /// The exchange failed.
    #[error("cannot reach {url}")]
    Failed {
        /// Where to, without its query.
        url: String,
        /// Why.
        #[source]
        source: FetchError,
    },
    /// It took too long.
    #[error("{url} did not answer within {} seconds", EXCHANGE_LIMIT.as_secs())]
    TimedOut {
        /// Where to, without its query.
        url: String,
    },
}

impl Http {
    /// Goes where the guard allows, also by the addresses that names turn out to stand for.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the client is used up: what it becomes must be used instead"
    )]
    pub fn new(client: HttpClient, guard: Guard) -> Self {
        let client = client.with_address_filter(Arc::new(guard.clone()));
        Self { client, guard }
    }

    /// The rules for addresses.
    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// Fetches a JSON document. Any status is an answer. The document may be somewhere else, if the
    /// guard allows that too; nothing secret is sent there.
    pub async fn get(&self, url: &Url) -> Result<Response<Bytes>, HttpError> {
        let mut url = url.clone();
        for _redirect in 0..MAX_REDIRECTS {
            let answer = self.get_here(&url).await?;
            let Some(next) = redirected(&url, &answer) else {
                return Ok(answer);
            };
            url = next;
        }
        self.get_here(&url).await
    }

    async fn get_here(&self, url: &Url) -> Result<Response<Bytes>, HttpError> {
        let headers = HeaderMap::new();
        self.exchange(Method::GET, url, headers, Bytes::new()).await
    }

    /// Deletes what is there. Any status is an answer.
    pub async fn delete(
        &self,
        url: &Url,
        headers: HeaderMap,
    ) -> Result<Response<Bytes>, HttpError> {
        self.exchange(Method::DELETE, url, headers, Bytes::new())
            .await
    }

    /// Posts a body and takes JSON back. Any status is an answer.
    pub async fn post(
        &self,
        url: &Url,
        mut headers: HeaderMap,
        content_type: http::HeaderValue,
        body: Bytes,
    ) -> Result<Response<Bytes>, HttpError> {
        headers.insert(header::CONTENT_TYPE, content_type);
        self.exchange(Method::POST, url, headers, body).await
    }

    /// One exchange in the time that it may take, the look at the address included.
    async fn exchange(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Bytes>, HttpError> {
        let exchanged = self.exchange_at_leisure(method, url, headers, body);
        match tokio::time::timeout(EXCHANGE_LIMIT, exchanged).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(HttpError::TimedOut { url: shown(url) }),
        }
    }

    async fn exchange_at_leisure(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Bytes>, HttpError> {
        self.guard.admit(url).await?;
        headers.insert(header::ACCEPT, JSON);
        let failed = |source| HttpError::Failed {
            url: shown(url),
            source,
        };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        *request.uri_mut() = url
            .as_str()
            .parse()
            .map_err(|_no_uri| failed(FetchError::Address))?;
        match self.client.fetch(request, MAX_ANSWER_BYTES).await {
            Err(FetchError::Refused(refused)) => Err(Guard::explain(url, &refused).into()),
            answer => answer.map_err(failed),
        }
    }
}

/// Where an answer says that the document is. What has no place or comes to no address is taken as it
/// is.
fn redirected(url: &Url, answer: &Response<Bytes>) -> Option<Url> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let location = answer.headers().get(header::LOCATION)?;
    url.join(location.to_str().ok()?).ok()
}

const JSON: http::HeaderValue = http::HeaderValue::from_static("application/json");

/// An address fit to be shown: credentials and queries are left out.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail only for addresses that have no host, and those carry no credentials.
    let _cannot_have_any = url.set_username("").and_then(|()| url.set_password(None));
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
