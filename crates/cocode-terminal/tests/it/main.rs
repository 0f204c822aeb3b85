//! Sessions in a real terminal, which tmux is.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "tests only, which start tmux and fail by panics"
)]

mod endings;
mod session;
mod tmux;
