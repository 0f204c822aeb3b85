//! Signing in at remote servers by OAuth 2.1, as the MCP specification uses it.
//!
//! From a refusal to a token: `challenge` reads what the server said, `discovery` finds its
//! authorization server, `registration` gets us a client there, `authorize` sends the user's browser
//! and checks what comes back, `token` gets tokens, `vault` keeps them for all processes. `login`,
//! `acquire` and `renew` put these together, and `credentials` serves links with them.

mod acquire;
mod authorize;
pub mod browser;
mod callback;
mod challenge;
mod client;
mod client_auth;
mod credentials;
mod current;
mod discovery;
mod dpop;
mod guard;
mod http;
mod jwt;
mod key;
mod lock;
mod login;
mod login_error;
mod logout;
mod metadata;
mod pasted;
mod pkce;
mod probe;
mod random;
mod record;
mod registration;
mod renew;
#[cfg(test)]
mod responder;
mod revoke;
pub mod scopes;
mod sign_in;
mod site;
mod token;
mod token_servers;
mod tokens;
mod user_agent;
mod vault;
mod wishes;

pub use authorize::{AuthorizationParameters, AuthorizationRequest, AuthorizeError, CallbackError};
pub use callback::{CALLBACK_PATH, CallbackOptions, ListenError, LoopbackCallback};
pub use challenge::{AuthChallenge, Scheme, best as best_challenge, gateway_token_hints};
pub use client::{Client, ClientAuthentication, ClientKind};
pub use client_auth::ClientAuthenticationError;
pub use credentials::OAuthCredentials;
pub use current::Unfit;
pub use discovery::{Discovered, Discovery, DiscoveryError, Purpose, authorization_server};
pub use dpop::{Dpop, DpopPeer};
pub use guard::{Guard, GuardError};
pub use http::{Http, HttpError};
pub use key::{KeyError, PublicJwk, SigningAlgorithm, SigningKey};
pub use lock::Stamp;
pub use login::{LoginOptions, SignedIn};
pub use login_error::LoginError;
pub use logout::SignedOut;
pub use metadata::{AuthorizationServer, ProtectedResource};
pub use pasted::{PasteError, pasted_answer, race_paste};
pub use pkce::Pkce;
pub use probe::{ProbeAnswer, ProbeError, probe};
pub use random::NoRandomness;
pub use record::{Grant, MAX_ISSUERS, Record, canonical_url};
pub use registration::{
    InvalidMetadataUrl, RegistrationError, RegistrationMode, RegistrationWish, check_metadata_url,
    client_metadata_document, register, unregister,
};
pub use revoke::{RevokeError, TokenHint};
pub use sign_in::{SignIn, SourceError, Sources, Variables};
pub use site::Site;
pub use token::{
    IdentityExchange, TemporaryTrouble, TokenEndpoint, TokenError, TokenRefusal, Unbound,
};
pub use token_servers::{Advice, advice};
pub use tokens::{TokenKind, Tokens};
pub use user_agent::{RedirectWish, UserAgent, UserAgentError, Visit, Work};
pub use vault::{Listed, Listing, Transaction, Unreadable, Vault, VaultError};
