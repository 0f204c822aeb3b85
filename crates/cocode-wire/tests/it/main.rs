//! Links over real sockets: certificates, proxies, and what leaves the machine.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod collector;
mod credentials;
mod http_server;
#[cfg(target_os = "linux")]
mod keep_alive;
mod proxy;
mod secrets;
mod serve;
mod session_stores;
mod tls;
