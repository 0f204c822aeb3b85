//! Stores in a database, against a real PostgreSQL server.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

mod audit;
mod audit_doubt;
mod conversations;
mod reaching;
mod sessions;
mod tokens;
mod wire;

#[path = "../../../cocode-access/tests/it/token_promises.rs"]
mod token_promises;

use cocode_postgres::Database;
use cocode_wire::HttpClient;

/// A database as another process would have it: with connections of its own.
fn database(address: &str) -> Database {
    Database::new(address, &HttpClient::default()).unwrap()
}
