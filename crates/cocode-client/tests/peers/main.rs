//! Our session against servers that nobody here wrote, installed by `cargo xtask peers`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start peers and find them through the environment"
)]
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod install;
mod running;
mod session;
