//! The agent from outside: its providers of models against scripted ones.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their test")]

mod providers;
