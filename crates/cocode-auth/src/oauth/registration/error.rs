//! Why we are no client of an authorization server, and what can be done about it.

use super::document::InvalidMetadataUrl;
use crate::oauth::http::HttpError;

/// Why we are no client.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RegistrationError {
    /// Nothing that the authorization server offers can be used: somebody has to register a client.
    #[error("the authorization server {issuer} lets no program register itself")]
    NotOffered {
        /// Who.
        issuer: String,
    },
    /// Registration is only for some.
    #[error(
        "the authorization server does not let everybody register: {url} answered with HTTP {status}{}",
        after(details)
    )]
    Closed {
        /// Where.
        url: String,
        /// The answer.
        status: u16,
        /// What it said.
        details: String,
    },
    /// The address of the callback is not taken.
    #[error(
        "the authorization server does not accept the callback {redirect_uri}{}; try another one \
         with `--callback-port` or `--callback-url`",
        after(details)
    )]
    RedirectRefused {
        /// The callback.
        redirect_uri: String,
        /// What the authorization server said.
        details: String,
    },
    /// The registration was refused for another reason.
    #[error(
        "the registration at {url} was refused (HTTP {status}){}",
        after(details)
    )]
    Refused {
        /// Where.
        url: String,
        /// The answer.
        status: u16,
        /// What it said.
        details: String,
    },
    /// Perhaps at the next attempt.
    #[error("cannot register now: {url} answered with HTTP {status}")]
    Unavailable {
        /// Where.
        url: String,
        /// The answer.
        status: u16,
    },
    /// The exchange failed.
    #[error("cannot register")]
    Http(#[from] HttpError),
    /// The answer makes no client.
    #[error("the registration at {url} was answered with something else than a client: {reason}")]
    BadAnswer {
        /// Where.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The client would have to prove who it is in a way that we do not know.
    #[error(
        "the authorization server {issuer} accepts clients only that prove who they are by {}",
        methods.join(", ")
    )]
    Authentication {
        /// Who.
        issuer: String,
        /// What it accepts.
        methods: Vec<String>,
    },
    /// The document cannot be used.
    #[error(transparent)]
    MetadataUrl(#[from] InvalidMetadataUrl),
    /// The document is wanted and there is none.
    #[error(
        "there is no document that describes this client: name its address in \
         `client_metadata_url`, or choose another registration"
    )]
    NoMetadataUrl,
    /// The document is wanted and of no use there.
    #[error("the authorization server {issuer} takes no documents that describe clients")]
    NoMetadataDocuments {
        /// Who.
        issuer: String,
    },
}

fn after(details: &str) -> String {
    match details {
        "" => String::new(),
        details => format!(": {details}"),
    }
}

impl RegistrationError {
    /// Whether it may go better at the next attempt.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. }
                | Self::Http(HttpError::Failed { .. } | HttpError::TimedOut { .. })
        )
    }

    /// Whether a client that somebody registers by hand would help.
    pub fn needs_registration(&self) -> bool {
        matches!(
            self,
            Self::NotOffered { .. } | Self::Closed { .. } | Self::Authentication { .. }
        )
    }
}
