//! Signing in at remote servers by OAuth 2.1, as the MCP specification uses it.
//!
//! From a refusal to a token: `challenge` reads what the server said, `discovery` finds its
//! authorization server, `registration` gets us a client there, `authorize` sends the user's browser
//! and checks what comes back, `token` gets tokens, `vault` keeps them for all processes. `login` and
//! `session` put these together.

mod client;
mod guard;
mod http;
mod metadata;
mod tokens;

pub use client::{Client, ClientAuthentication, ClientKind};
pub use guard::{Guard, GuardError};
pub use http::{Http, HttpError};
pub use metadata::{AuthorizationServer, ProtectedResource};
pub use tokens::{TokenKind, Tokens};
