//! Who comes to a gateway, what they may do, and what is written down of it.
//!
//! A [`Principal`] is whoever makes requests. The [`Doorkeeper`] makes one of the headers of a request:
//! by a [`Token`] of the gateway, which a [`TokenStore`] keeps and a [`TokenKeeper`] knows, or by an access
//! token of an authorization server, which a [`ResourceServer`] verifies. [`Policies`] say what
//! principals may do and [`Limits`] how much of it. An [`AuditLog`] writes down what was done, into an
//! [`AuditLedger`].
//!
//! This crate knows no HTTP server: it takes header values and gives decisions.
#![deny(missing_docs)]

mod audit;
mod date;
mod digest;
mod doorkeeper;
mod limits;
mod oauth;
mod policy;
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
    AuditEntry, AuditError, AuditEvent, AuditHash, AuditHead, AuditHealth, AuditLedger, AuditLine,
    AuditLog, AuditOutcome, AuditSlot, AuditUnavailable, FileLedger, FileLedgerOptions, Finding,
    InvalidAuditHash, MAX_AUDIT_LINE_BYTES, NotBegun, NotWritten, Place, Verifier, VerifyReport,
    WhenFailing, Writing, verify_directory,
};
pub use doorkeeper::{Checked, DoorMode, DoorOptions, Doorkeeper};
pub use limits::{CallGuard, Limit, LimitPlan, LimitReached, Limits, ServerLimit, Whose};
pub use oauth::{
    Algorithm, IssuerOptions, JwtChecked, JwtError, JwtRefusal, OAuthOptions, OAuthSetupError,
    ResourceServer, UnknownAlgorithm,
};
pub use policy::{Policies, PrincipalPolicy};
pub use principal::{
    InvalidId, InvalidName, MAX_NAME_BYTES, Principal, PrincipalId, PrincipalKind, PrincipalName,
};
pub use refusal::Refusal;
pub use token::{NoRandomness, NotAToken, TOKEN_PREFIX, Token};
pub use token_keeper::{Revocations, Revoked, RevokedToken, TokenKeeper};
pub use token_store::{
    FileTokenStore, InvalidTokenHash, MAX_TOKENS, MemoryTokenStore, TokenHash, TokenRecord,
    TokenStamp, TokenStore, TokenStoreError,
};
