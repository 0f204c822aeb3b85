//! The rules of the source tree that a machine can check. Every test lists all offenders at once.
//!
//! Not here yet: each error code with its page in `docs/errors`, which waits for the codes.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "tests only, which ask git for the files and cargo for the crates"
)]

mod crates;
mod documents;
mod source;
mod tree;

/// Fails with all offenders, one per line.
#[track_caller]
fn none(rule: &str, offenders: &[String]) {
    assert!(
        offenders.is_empty(),
        "{rule}:\n  {}",
        offenders.join("\n  ")
    );
}
