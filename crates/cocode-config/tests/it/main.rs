//! Configuration as files on a disk, through the public face of the crate.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests only, some of which start themselves as other processes"
)]

mod concurrent_edits;
mod edit_properties;
