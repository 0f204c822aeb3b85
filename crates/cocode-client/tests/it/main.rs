//! Sessions against servers that behave, misbehave, vanish and refuse, over every transport.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "test helpers fail their test, and give servers the environment of the test"
)]

mod eras;
mod fidelity;
mod handler;
mod http_faults;
mod http_sessions;
mod lists;
mod manager;
mod managing;
#[cfg(target_os = "linux")]
mod orphans;
mod peer;
mod requests;
mod stdio_faults;
mod stdio_pressure;
mod strictness;
mod subscriptions;
mod support;
mod timing;
mod toolbox;
mod unix_socket;
mod websocket;
