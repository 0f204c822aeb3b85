//! Who comes to a gateway, what they may do, and what is written down of it.
//!
//! A [`Principal`] is whoever makes requests. This crate knows no HTTP server: it takes the headers of
//! a request and gives decisions.
#![deny(missing_docs)]

mod audit;
mod date;
mod digest;
mod doorkeeper;
mod oauth;
mod principal;
mod private;
mod refusal;
mod token;
mod token_keeper;
mod token_store;

use std::pin::Pin;

/// Something that goes on, and what comes of it. Dropping it ends it.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub use audit::{
    AuditEntry, AuditError, AuditEvent, AuditHash, AuditHead, AuditLedger, AuditLine, AuditOutcome,
    Finding, InvalidAuditHash, MAX_AUDIT_LINE_BYTES, Place, Verifier, VerifyReport,
};
pub use doorkeeper::{Checked, DoorOptions, Doorkeeper};
pub use oauth::{
    Algorithm, IssuerOptions, JwtChecked, JwtError, JwtRefusal, OAuthOptions, OAuthSetupError,
    ResourceServer, UnknownAlgorithm,
};
pub use principal::{InvalidName, MAX_NAME_BYTES, Principal, PrincipalKind, PrincipalName};
pub use refusal::Refusal;
pub use token::{NoRandomness, NotAToken, TOKEN_PREFIX, Token};
pub use token_keeper::{Revocations, Revoked, TokenKeeper};
pub use token_store::{
    FileTokenStore, InvalidTokenHash, MAX_TOKENS, MemoryTokenStore, TokenHash, TokenRecord,
    TokenStamp, TokenStore, TokenStoreError,
};
