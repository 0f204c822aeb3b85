//! Why there are no tokens. Says nothing that is secret: neither ours nor what the server repeated.

use std::fmt;

use super::super::client_auth::ClientAuthenticationError;
use super::super::http::HttpError;
use super::super::key::KeyError;

/// Why there are no tokens.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TokenError {
    /// The code, refresh token or assertion is worth nothing (any more).
    #[error("{} does not accept the grant: it has ended, was revoked, or was used before{}", .0.url, .0.in_words())]
    InvalidGrant(TokenRefusal),
    /// It does not believe that we are who we say, or does not know us.
    #[error("{} does not accept the client: its id or its proof is wrong, or it was deleted{}", .0.url, .0.in_words())]
    InvalidClient(TokenRefusal),
    /// Nobody may have that.
    #[error("{} does not allow the requested scopes{}", .0.url, .0.in_words())]
    InvalidScope(TokenRefusal),
    /// We may not ask in this way.
    #[error("{} does not allow this client to ask for tokens in this way{}", .0.url, .0.in_words())]
    UnauthorizedClient(TokenRefusal),
    /// Nobody may ask in this way.
    #[error("{} gives no tokens for this kind of grant{}", .0.url, .0.in_words())]
    UnsupportedGrant(TokenRefusal),
    /// Another reason.
    #[error("{} refused to give tokens{}", .0.url, .0.in_words())]
    OtherRefusal(TokenRefusal),
    /// It may work later.
    #[error(transparent)]
    Temporary(#[from] TemporaryTrouble),
    /// The answer cannot be used.
    #[error("{url} gave an answer that cannot be used: {reason}")]
    Malformed {
        /// Where the answer comes from.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// We do not go there, or cannot from here.
    #[error(transparent)]
    Address(HttpError),
    /// The client has not got what it needs for this.
    #[error(transparent)]
    Client(#[from] ClientAuthenticationError),
    /// The proof of our key cannot be made.
    #[error("the proof of the key that tokens are bound to cannot be made")]
    Proof(#[source] KeyError),
}

/// What an authorization server said when it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRefusal {
    /// Where it was said.
    pub url: String,
    /// The HTTP status.
    pub status: u16,
    /// The code of the error, such as `invalid_grant`; empty, if there was none.
    pub error: String,
    /// What it said about it.
    pub description: Option<String>,
}

/// Why there are no tokens now.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{url} gives no tokens at the moment: {reason}")]
pub struct TemporaryTrouble {
    /// Where.
    pub url: String,
    /// What happened.
    pub reason: String,
    /// Seconds that the server asks us to wait.
    pub retry_after: Option<u64>,
    /// Whether the request may have reached the server. A code or a refresh token that is good once
    /// may then be used up, though we saw no tokens for it.
    pub sent: bool,
    /// What broke, if no answer came.
    #[source]
    pub source: Option<HttpError>,
}

impl TokenError {
    /// Whether the same request will fail in the same way again.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Temporary(_) => false,
            Self::InvalidGrant(_)
            | Self::InvalidClient(_)
            | Self::InvalidScope(_)
            | Self::UnauthorizedClient(_)
            | Self::UnsupportedGrant(_)
            | Self::OtherRefusal(_)
            | Self::Malformed { .. }
            | Self::Address(_)
            | Self::Client(_)
            | Self::Proof(_) => true,
        }
    }

    /// What the server said, if it refused.
    pub fn refusal(&self) -> Option<&TokenRefusal> {
        match self {
            Self::InvalidGrant(refusal)
            | Self::InvalidClient(refusal)
            | Self::InvalidScope(refusal)
            | Self::UnauthorizedClient(refusal)
            | Self::UnsupportedGrant(refusal)
            | Self::OtherRefusal(refusal) => Some(refusal),
            Self::Temporary(_)
            | Self::Malformed { .. }
            | Self::Address(_)
            | Self::Client(_)
            | Self::Proof(_) => None,
        }
    }
}

impl TokenRefusal {
    /// Sorts a refusal by its code. Beside those of RFC 6749 there are some that large servers made
    /// up: GitHub's (with `bad_` or `incorrect_`) and Slack's. A status says nothing about the client:
    /// RFC 6749 keeps 401 for that, but whoever stands before the server may answer so as well.
    pub(super) fn sorted(self) -> TokenError {
        match self.error.as_str() {
            "invalid_grant"
            | "bad_verification_code"
            | "bad_refresh_token"
            | "invalid_code"
            | "code_already_used"
            | "invalid_refresh_token" => TokenError::InvalidGrant(self),
            "invalid_client"
            | "incorrect_client_credentials"
            | "bad_client_secret"
            | "invalid_client_id" => TokenError::InvalidClient(self),
            "invalid_scope" => TokenError::InvalidScope(self),
            "unauthorized_client" => TokenError::UnauthorizedClient(self),
            "unsupported_grant_type" => TokenError::UnsupportedGrant(self),
            _ => TokenError::OtherRefusal(self),
        }
    }

    fn in_words(&self) -> String {
        format!(" ({self})")
    }
}

impl fmt::Display for TokenRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "HTTP {}", self.status)?;
        if !self.error.is_empty() {
            write!(formatter, ", {}", self.error)?;
        }
        match &self.description {
            Some(description) => write!(formatter, ": {description}"),
            None => Ok(()),
        }
    }
}
