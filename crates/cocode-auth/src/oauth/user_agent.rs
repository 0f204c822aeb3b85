//! The seam through which a sign-in reaches a person: a terminal and its browser, a page of the
//! gateway, or the scripted user of a test.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use super::authorize::AuthorizationRequest;
use super::callback::ListenError;
use crate::secret::Secret;

/// What a user agent does, now or later.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T, UserAgentError>> + Send + 'a>>;

/// Can bring a person to an authorization server, and the answer back.
pub trait UserAgent: fmt::Debug + Send + Sync {
    /// Makes ready to receive an answer. This comes first because the redirect address must be
    /// known when a client is registered.
    fn prepare<'a>(&'a self, wish: RedirectWish<'a>) -> Work<'a, Box<dyn Visit>>;
}

/// One visit to an authorization server. Dropping it gives up and frees what was made ready.
pub trait Visit: Send {
    /// Where answers arrive.
    fn redirect_uri(&self) -> &str;

    /// Sends the person to the authorization server and waits for the query that comes back. What
    /// it says is to be judged with [`AuthorizationRequest::accept`].
    ///
    /// Dropping the future gives up.
    fn go(self: Box<Self>, request: &AuthorizationRequest) -> Work<'_, Secret>;
}

/// Where answers would best arrive.
#[derive(Clone, Copy, Debug, Default)]
pub struct RedirectWish<'a> {
    /// The redirect address of a registration that could be used again.
    pub kept: Option<&'a str>,
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UserAgentError {
    /// The person took too long, or the answer went astray.
    #[error("nobody signed in within {} seconds", after.as_secs())]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The person gave up, or there is nobody to ask.
    #[error("the sign-in was given up")]
    GivenUp,
    /// The answer could not arrive.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// It broke.
    #[error("{message}")]
    Failed {
        /// What happened.
        message: String,
        /// Why.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}
