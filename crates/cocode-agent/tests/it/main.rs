//! The agent as its users see it: on real files, with real processes, and with models that follow a
//! script.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of tests fail by panicking"
)]

mod providers;
mod puppet;
mod serve;
mod store;
mod turns;
