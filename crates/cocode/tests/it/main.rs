//! The whole program, run against scripted servers.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests only, which start the program as a user would"
)]

mod calling;
mod doctor;
mod elicitation;
mod exit_codes;
mod fidelity;
mod harness;
mod home;
mod interrupting;
mod keeping;
mod output;
mod status;
mod terminal;
mod transports;
mod trusting;
mod verbs;
