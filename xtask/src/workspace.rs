//! Where things are: the workspace root and the places the automation writes to.

use std::path::{Path, PathBuf};

/// The root of the source tree. Asked of `cargo run` first: checkouts that share a target
/// directory may share this binary, too.
pub(crate) fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), Path::to_path_buf)
}

/// Lock files and scripts of the peers, as committed.
pub(crate) fn peers_source() -> PathBuf {
    root().join("peers")
}

/// Installed peers. Always here, whatever `CARGO_TARGET_DIR` says: tests look here by default.
pub(crate) fn peers() -> PathBuf {
    root().join("target/peers")
}

/// Cargo tools that the automation installs for itself.
pub(crate) fn tools() -> PathBuf {
    root().join("target/tools")
}

/// Results of the conformance suites, one directory per scenario.
pub(crate) fn conformance_results() -> PathBuf {
    root().join("target/conformance")
}
