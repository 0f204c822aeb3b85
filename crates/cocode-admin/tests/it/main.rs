//! The management API as a whole, over a house that does what a test says.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests fail their test, and start programs that check what was said"
)]

mod access;
mod calls;
mod client;
mod document;
mod events;
mod examples;
mod files;
mod house;
mod judges_peer;
mod refusals;
mod served;
mod sign_in;
