//! The files of other agents against those agents themselves, installed by `cargo xtask peers`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start peers and find them through the environment"
)]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod agent;
mod claude_code_peer;
mod codex_peer;
mod opencode_peer;
