//! Our session against servers that nobody here wrote, installed by `cargo xtask peers`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start peers and find them through the environment"
)]

mod install;
mod running;
mod session;
