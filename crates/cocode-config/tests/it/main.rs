//! Configuration as files on a disk, through the public face of the crate.
#![expect(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests only, some of which start themselves as other processes"
)]

mod broken_files;
mod concurrent_edits;
mod edit_properties;
mod gateway_access;
mod governed;
mod live;
mod model;
mod room;
