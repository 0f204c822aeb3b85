//! What an authorization server gave us.

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
