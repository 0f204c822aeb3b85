//! Gives tokens back, RFC 7009, so that nobody can use them after us.

use http::StatusCode;
use url::Url;

use super::http::shown;
use super::token::{Form, TokenEndpoint, TokenError};
use crate::secret::Secret;

/// What is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenHint {
    /// An access token.
    Access,
    /// A refresh token. Servers usually take back everything that came of it.
    Refresh,
}

/// Why a token was not taken back.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RevokeError {
    /// Tokens of this kind are not.
    #[error("{url} does not take back {}: they end by themselves", .hint.described())]
    Unsupported {
        /// Where.
        url: String,
        /// Which.
        hint: TokenHint,
    },
    /// Nobody answers there.
    #[error(
        "there is nothing at {url} that takes tokens back (HTTP {status}), \
         although the authorization server names that address"
    )]
    Missing {
        /// Where.
        url: String,
        /// What came instead.
        status: u16,
    },
    /// Anything else.
    #[error("the token was not taken back")]
    Failed(#[from] TokenError),
}

impl TokenEndpoint<'_> {
    /// Gives a token back at the revocation endpoint of the same authorization server. A token that
    /// the server does not know is as good as taken back.
    pub async fn revoke(
        &self,
        revocation: &Url,
        token: &Secret,
        hint: TokenHint,
    ) -> Result<(), RevokeError> {
        let mut form = Form::empty();
        form.add_secret("token", token);
        form.add("token_type_hint", hint.as_str());
        // The proof of a key binds tokens, and none are given here.
        let unbound = Self {
            dpop: None,
            ..*self
        };
        let (response, sent) = unbound.send(revocation, &form).await?;
        let (url, status) = (shown(revocation), response.status());
        if status.is_success() {
            return Ok(());
        }
        if matches!(
            status,
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED
        ) {
            let status = status.as_u16();
            return Err(RevokeError::Missing { url, status });
        }
        Err(match self.asked(&url, &sent).read(&response) {
            Err(error) if is_unsupported(&error) => RevokeError::Unsupported { url, hint },
            Err(error) => error.into(),
            Ok(_fields) => RevokeError::Missing {
                url,
                status: status.as_u16(),
            },
        })
    }
}

impl TokenHint {
    fn as_str(self) -> &'static str {
        match self {
            Self::Access => "access_token",
            Self::Refresh => "refresh_token",
        }
    }

    fn described(self) -> &'static str {
        match self {
            Self::Access => "access tokens",
            Self::Refresh => "refresh tokens",
        }
    }
}

fn is_unsupported(error: &TokenError) -> bool {
    let refusal = error.refusal();
    refusal.is_some_and(|refusal| refusal.error == "unsupported_token_type")
}

#[cfg(test)]
#[path = "revoke_tests.rs"]
mod tests;
