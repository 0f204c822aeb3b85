//! Where things are: the workspace root and the places the automation writes to.

use std::path::{Path, PathBuf};

/// The root of the source tree that this binary was built from.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
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
