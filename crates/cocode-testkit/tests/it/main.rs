//! The scripted servers, used the way the tests of other crates use them.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "test helpers fail their test, and the process crate is tested with this one"
)]

mod faults;
mod http;
mod http_client;
mod models;
mod oauth_peer;
mod sockets;
mod stdio;
