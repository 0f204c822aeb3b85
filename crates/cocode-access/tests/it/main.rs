//! Who may use a gateway and what is written down, against real files, sockets, processes and a real
//! authorization server.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

mod issuer;
mod jwt_attacks;
mod jwt_keys;
mod peer_oauth;
mod signing;
