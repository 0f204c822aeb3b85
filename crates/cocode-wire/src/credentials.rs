//! The seam where credentials come onto the requests of a link, and where a refusal is answered.

use std::fmt;
use std::pin::Pin;

use http::{HeaderMap, Method};
use url::Url;

use crate::error::Challenge;

/// What a source of credentials gives back, now or later.
pub type CredentialsWork<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, CredentialsError>> + Send + 'a>>;

/// Knows how to be let in at one server. Asked before every request, so that tokens can be renewed
/// in time, and after every refusal.
pub trait Credentials: fmt::Debug + Send + Sync + 'static {
    /// The headers that let this request in; none, if there is nothing to show yet.
    fn headers<'a>(&'a self, request: RequestLine<'a>) -> CredentialsWork<'a, HeaderMap>;

    /// The server refused the request with 401 or 403. Says whether it is to be sent once more,
    /// with headers asked for anew.
    fn refused<'a>(&'a self, refusal: Refusal<'a>) -> CredentialsWork<'a, bool>;

    /// Sees the headers of every answer that was no refusal.
    fn answered(&self, _headers: &HeaderMap) {}
}

/// Which request is meant.
#[derive(Clone, Copy, Debug)]
pub struct RequestLine<'a> {
    /// How.
    pub method: &'a Method,
    /// Where to.
    pub url: &'a Url,
}

/// A request that was refused.
#[derive(Clone, Copy)]
pub struct Refusal<'a> {
    /// Which it was.
    pub request: RequestLine<'a>,
    /// What [`Credentials::headers`] had given for it.
    pub sent: &'a HeaderMap,
    /// What the server said.
    pub challenge: &'a Challenge,
    /// All headers of the refusal.
    pub headers: &'a HeaderMap,
    /// How often this request was refused before.
    pub before: u32,
}

impl fmt::Debug for Refusal<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Refusal")
            .field("challenge", &self.challenge)
            .field("before", &self.before)
            .finish_non_exhaustive()
    }
}

/// Why there are no credentials. Says nothing that is secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.told())]
pub struct CredentialsError {
    /// What is missing.
    pub kind: CredentialsErrorKind,
    /// What happened.
    pub message: String,
    /// What led to it, nearest first.
    pub causes: Vec<String>,
    /// What to do about it.
    pub hints: Vec<String>,
}

/// What is missing to be let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialsErrorKind {
    /// Somebody has to sign in.
    NeedsAuth,
    /// Somebody has to register a client, or to set a token.
    NeedsClientRegistration,
    /// Something that may be there at the next attempt.
    Temporary,
    /// Something that is configured cannot be used.
    Unusable,
}

impl CredentialsError {
    /// An error without causes or hints.
    pub fn new(kind: CredentialsErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Adds an error and all that led to it.
    #[must_use]
    pub fn because(mut self, error: &dyn std::error::Error) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            self.causes.push(error.to_string());
            cause = error.source();
        }
        self
    }

    /// Adds something to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    fn told(&self) -> String {
        let mut text = self.message.clone();
        for cause in &self.causes {
            text.push_str(": ");
            text.push_str(cause);
        }
        text
    }
}
