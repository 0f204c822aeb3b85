//! What an authorization server gave us.

use http::HeaderValue;
use zeroize::Zeroizing;

use crate::secret::Secret;

/// The tokens of one grant.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// Lets us in at the server.
    pub access: Secret,
    /// How it is presented.
    pub kind: TokenKind,
    /// When it ends, in seconds since 1970; unknown, if nothing was said.
    pub expires_at: Option<u64>,
    /// When we got it, in seconds since 1970.
    pub issued_at: u64,
    /// Gets us the next ones.
    pub refresh: Option<Secret>,
    /// What it allows, if that was said.
    pub scopes: Option<Vec<String>>,
}

/// How an access token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// Whoever has it may use it.
    Bearer,
    /// With a proof of the key that it is bound to, RFC 9449.
    Dpop,
}

impl Tokens {
    /// The `Authorization` header that presents the access token. None, if the token has characters
    /// that fit into no header; those that came from [`super::TokenEndpoint`] have not.
    pub fn authorization(&self) -> Option<HeaderValue> {
        let value = Zeroizing::new(format!("{} {}", self.kind.scheme(), self.access.expose()));
        let mut value = HeaderValue::from_str(&value).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl TokenKind {
    /// The scheme of the `Authorization` header.
    pub fn scheme(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TokenKind, Tokens};
    use crate::secret::Secret;

    #[test]
    fn tokens_are_presented_by_their_kind_and_never_printed() {
        let mut tokens = Tokens {
            access: Secret::new("very-secret"),
            kind: TokenKind::Bearer,
            expires_at: None,
            issued_at: 0,
            refresh: Some(Secret::new("more-secret")),
            scopes: None,
        };
        let header = tokens.authorization().unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer very-secret");
        tokens.kind = TokenKind::Dpop;
        let bound = tokens.authorization().unwrap();
        assert_eq!(bound.to_str().unwrap(), "DPoP very-secret");
        assert!(!format!("{header:?} {bound:?} {tokens:?}").contains("secret"));
        tokens.access = Secret::new("line\nbreak");
        assert_eq!(tokens.authorization(), None);
    }
}
