//! Asks the management API of a gateway or of the daemon: at a socket of the user, or at an address and
//! with a token.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use cocode_admin::{Problem, ProblemFacts};
use cocode_wire::{EventBody, EventLimits, FetchError, HttpClient, HttpSettings, StreamEvent, Url};
use http::{HeaderValue, Method, Request, StatusCode, header};
use serde::de::DeserializeOwned;

/// The most that is read of an answer.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// The most that is read of a refusal.
const MAX_REFUSAL_BYTES: usize = 64 * 1024;
/// How long a stream of events may be silent, on which a comment comes every 15 s.
const SILENT_FOR: Duration = Duration::from_mins(1);
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// Where all of it is.
const ROOT: [&str; 2] = ["api", "v1"];

/// Whom to ask.
#[derive(Clone)]
pub(crate) struct ApiClient {
    http: HttpClient,
    base: Url,
    /// What lets us in, where the way that we come does not.
    token: Option<HeaderValue>,
}

impl std::fmt::Debug for ApiClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ApiClient").finish_non_exhaustive()
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ApiError {
    #[error("no answer came within {} s", after.as_secs())]
    TimedOut { after: Duration },
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// It does not want to.
    #[error("{}", problem.message)]
    Refused {
        status: StatusCode,
        problem: ProblemFacts,
    },
    /// There is something else at that address.
    #[error("the answer, with status {status}, is none of a management API")]
    Stranger { status: StatusCode },
    #[error("the answer is not understood")]
    Answer(#[source] serde_json::Error),
    #[error("what is asked cannot be written down")]
    Question(#[source] http::Error),
}

impl ApiClient {
    /// The API of whoever listens at a socket, who knows us by the way we come.
    pub(crate) fn at_socket(path: &Path) -> Option<Self> {
        Some(Self {
            http: HttpClient::at_socket(path),
            base: Url::parse("http://localhost/").ok()?,
            token: None,
        })
    }

    /// The API at an address, for whoever has that token.
    pub(crate) fn at_url(
        base: Url,
        token: Option<&str>,
        settings: HttpSettings,
    ) -> Result<Self, header::InvalidHeaderValue> {
        let token = token.map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Self {
            http: HttpClient::new(settings),
            base,
            token: token.transpose()?,
        })
    }

    /// Reads something, below `/api/v1`.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        within: Duration,
    ) -> Result<T, ApiError> {
        self.exchange(self.request(Method::GET, path, JSON)?, within)
            .await
    }

    /// Reads a list of at most so many, below `/api/v1`.
    pub(crate) async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        limit: u64,
        within: Duration,
    ) -> Result<T, ApiError> {
        let mut request = self.request(Method::GET, path, JSON)?;
        let uri = format!("{}?limit={limit}", request.uri());
        *request.uri_mut() = uri
            .parse()
            .map_err(|error| ApiError::Question(http::Error::from(error)))?;
        self.exchange(request, within).await
    }

    /// Has something done, below `/api/v1`.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        within: Duration,
    ) -> Result<T, ApiError> {
        self.exchange(self.request(Method::POST, path, JSON)?, within)
            .await
    }

    /// Has something forgotten, below `/api/v1`.
    pub(crate) async fn delete(&self, path: &[&str], within: Duration) -> Result<(), ApiError> {
        let request = self.request(Method::DELETE, path, JSON)?;
        self.fetched(request, within).await.map(drop)
    }

    /// Hears what happens from now on.
    pub(crate) async fn events(&self, within: Duration) -> Result<ApiEvents, ApiError> {
        let request = self.request(Method::GET, &["events"], EVENTS)?;
        let limits = EventLimits {
            first_byte: within,
            idle: SILENT_FOR,
            max_event_bytes: MAX_ANSWER_BYTES,
            max_total_bytes: usize::MAX,
        };
        let answer = self.http.fetch_events(request, limits).await?;
        let (head, body) = answer.into_parts();
        if head.status != StatusCode::OK {
            let body = body.into_start(MAX_REFUSAL_BYTES).await;
            return Err(refusal(head.status, &body));
        }
        if !body.is_event_stream() {
            let status = head.status;
            return Err(ApiError::Stranger { status });
        }
        Ok(ApiEvents(body))
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<T, ApiError> {
        let body = self.fetched(request, within).await?;
        serde_json::from_slice(&body).map_err(ApiError::Answer)
    }

    async fn fetched(&self, request: Request<Bytes>, within: Duration) -> Result<Bytes, ApiError> {
        let fetching = self.http.fetch(request, MAX_ANSWER_BYTES);
        let answer = tokio::time::timeout(within, fetching)
            .await
            .map_err(|_elapsed| ApiError::TimedOut { after: within })??;
        if !answer.status().is_success() {
            return Err(refusal(answer.status(), answer.body()));
        }
        Ok(answer.into_body())
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        accept: &'static str,
    ) -> Result<Request<Bytes>, ApiError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(ROOT).extend(path);
        }
        let request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(header::ACCEPT, accept);
        let request = match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, token),
            None => request,
        };
        request.body(Bytes::new()).map_err(ApiError::Question)
    }
}

fn refusal(status: StatusCode, body: &[u8]) -> ApiError {
    match serde_json::from_slice(body) {
        Ok(Problem { error: problem }) => ApiError::Refused { status, problem },
        Err(_other) => ApiError::Stranger { status },
    }
}

/// What happens, as it is told.
#[derive(Debug)]
pub(crate) struct ApiEvents(EventBody);

impl ApiEvents {
    /// The next event; nothing if the other end has ended the stream in order. Cancel safe.
    pub(crate) async fn next(&mut self) -> Result<Option<StreamEvent>, ApiError> {
        Ok(self.0.next().await?)
    }
}

/// What an event tells.
pub(crate) fn told<T: DeserializeOwned>(event: &StreamEvent) -> Result<T, ApiError> {
    serde_json::from_slice(&event.data).map_err(ApiError::Answer)
}
