//! The gateway between real sessions of clients and scripted servers.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "helpers of tests fail their test, and give servers the environment of the test"
)]

mod bridge;
mod consent;
mod counted;
mod eras;
mod first_list;
mod forbidden;
mod hearsay;
mod hidden;
mod inbox;
mod inner;
mod levels;
mod lookalikes;
mod memory;
mod merged;
mod moving;
mod parking;
mod passing;
mod principals;
mod private;
mod reload;
mod sharing;
mod support;
mod waiting;
mod watched;
mod watched_tasks;
