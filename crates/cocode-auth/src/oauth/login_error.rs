//! Why nobody is signed in, and what to do about it.

use cocode_wire::CredentialsErrorKind;

use super::authorize::{AuthorizeError, CallbackError};
use super::current::Unfit;
use super::discovery::DiscoveryError;
use super::key::KeyError;
use super::random::NoRandomness;
use super::registration::RegistrationError;
use super::sign_in::SourceError;
use super::token::TokenError;
use super::token_servers::Advice;
use super::user_agent::UserAgentError;
use super::vault::VaultError;

/// Why nobody is signed in. No message contains a secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// Tokens could be read on their way to the server.
    #[error(
        "tokens are not sent to {url}, where everybody on the way could read them: only https is safe there"
    )]
    PlainServer {
        /// Where.
        url: String,
    },
    /// The authorization server was not found.
    #[error(transparent)]
    Discovery(#[from] DiscoveryError),
    /// We are no client there.
    #[error("{}", if source.needs_registration() { "the authorization server does not know us" } else { "no client could be registered" })]
    Registration {
        /// What people do about it at this server.
        advice: Advice,
        /// Why.
        #[source]
        source: RegistrationError,
    },
    /// Nothing can be asked for.
    #[error(transparent)]
    Authorize(#[from] AuthorizeError),
    /// No answer came.
    #[error(transparent)]
    UserAgent(#[from] UserAgentError),
    /// The answer is no permission.
    #[error(transparent)]
    Callback(#[from] CallbackError),
    /// There are no tokens.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// They cannot be stored.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Something that the configuration names cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// No key could be made or used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// There is nothing that nobody can guess.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The client that is configured belongs to somebody else.
    #[error(
        "the server now names the authorization server {found}, but the configured client belongs \
         to {expected}"
    )]
    IssuerChanged {
        /// Who knows the client.
        expected: String,
        /// Who would have been shown it.
        found: String,
    },
    /// Nobody said who may be shown the secret of the client, and nobody is there to ask.
    #[error(
        "the server names the authorization server {found}, and nothing says that it may be shown \
         the client's secret"
    )]
    IssuerUnknown {
        /// Who would have been shown it.
        found: String,
    },
    /// It gives out no tokens.
    #[error("{issuer} names no token endpoint")]
    NoTokenEndpoint {
        /// Who.
        issuer: String,
    },
    /// Tokens are to be bound to a key, and cannot be.
    #[error("{issuer} cannot bind tokens to a key, which `oauth.dpop = \"always\"` asks for")]
    NoDpop {
        /// Who.
        issuer: String,
    },
    /// The tokens cannot be used.
    #[error(transparent)]
    Unfit(Unfit),
    /// There are no tokens.
    #[error("the authorization server gave no token")]
    NoToken,
    /// The configured address is none.
    #[error("`oauth.client_metadata_url` is no URL")]
    MetadataUrl,
    /// The identity provider cannot be asked.
    #[error("the identity provider cannot be asked: {0}")]
    IdentityProvider(&'static str),
}

impl LoginError {
    /// What is missing.
    pub fn kind(&self) -> CredentialsErrorKind {
        match self {
            Self::Registration { source, .. } if source.is_temporary() => {
                CredentialsErrorKind::Temporary
            }
            Self::Registration { source, .. } if source.needs_registration() => {
                CredentialsErrorKind::NeedsClientRegistration
            }
            Self::Discovery(error) if error.is_temporary() => CredentialsErrorKind::Temporary,
            Self::Token(error) if !error.is_final() => CredentialsErrorKind::Temporary,
            // What vouches for a program is renewed by somebody else.
            Self::Token(TokenError::InvalidGrant(_)) | Self::Vault(_) => {
                CredentialsErrorKind::Temporary
            }
            Self::Source(error) if error.may_pass() => CredentialsErrorKind::Temporary,
            Self::UserAgent(_) | Self::Callback(_) => CredentialsErrorKind::NeedsAuth,
            _ => CredentialsErrorKind::Unusable,
        }
    }

    /// What to do about it, for the server of this name.
    pub fn hints(&self, server: &str) -> Vec<String> {
        match self {
            Self::Registration { advice, source } if source.needs_registration() => {
                advice.hints(server)
            }
            Self::Callback(error) => vec![error.hint().to_owned()],
            Self::IssuerChanged { .. } => vec![
                "if you trust the new one, register a client there, and set `oauth.issuer` and \
                 `oauth.client_id`"
                    .to_owned(),
            ],
            Self::IssuerUnknown { found } => vec![format!(
                "if that is the right one, say so in the configuration of `{server}`: \
                 `oauth.issuer = {found:?}`"
            )],
            Self::UserAgent(UserAgentError::TimedOut { .. }) => {
                vec![format!("`cocode mcp login {server}` begins anew")]
            }
            _ => Vec::new(),
        }
    }
}
