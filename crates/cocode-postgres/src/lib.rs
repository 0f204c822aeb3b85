//! What several gateways share through one PostgreSQL database.
//!
//! A [`Database`] is an address and a few connections to it, made when they are needed. Its tables
//! are in the schema `cocode`, which the first connection makes or brings to the present format.
#![deny(missing_docs)]

mod address;
mod connection;
mod conversations;
mod database;
mod error;
mod ledger;
mod limits;
mod schema;
mod sessions;
mod times;
mod tls;
mod tokens;

pub use connection::{Connection, Lone};
pub use conversations::PostgresConversations;
pub use database::Database;
pub use error::DatabaseError;
pub use ledger::{LedgerOptions, PostgresLedger};
pub use sessions::PostgresSessionStore;
pub use tokens::PostgresTokenStore;
