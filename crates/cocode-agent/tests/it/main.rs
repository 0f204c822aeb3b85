//! The agent as its users see it, on real files and real processes.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

mod puppet;
mod serve;
mod store;
mod turns;
