//! Where the peers are installed, and how to run them.

use std::ffi::OsString;
use std::path::PathBuf;

use cocode_client::baseline_environment;

/// `target/peers`, or wherever `COCODE_PEERS` says.
fn root() -> PathBuf {
    let root = std::env::var_os("COCODE_PEERS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers"),
        PathBuf::from,
    );
    assert!(
        root.is_dir(),
        "{} is missing: run `cargo xtask peers`",
        root.display()
    );
    root
}

/// A file of the installation.
pub(crate) fn installed(path: &str) -> PathBuf {
    let file = root().join(path);
    assert!(
        file.exists(),
        "{} is missing: run `cargo xtask peers`",
        file.display()
    );
    file
}

/// A program of an npm package.
pub(crate) fn npm(name: &str) -> PathBuf {
    installed(&format!("npm/node_modules/.bin/{name}"))
}

/// A script of ours that runs a server of a public SDK.
pub(crate) fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../peers/python")
        .join(name)
}

/// What every child gets, with our Node first in the path.
pub(crate) fn environment() -> Vec<(OsString, OsString)> {
    let mut environment = baseline_environment(std::env::vars_os());
    let node = installed("npm/node_modules/.bin");
    for (name, value) in &mut environment {
        if name == "PATH" {
            let rest = std::env::split_paths(&*value).collect::<Vec<_>>();
            let paths = std::iter::once(node.clone()).chain(rest);
            *value = std::env::join_paths(paths).expect("no colon in the paths");
        }
    }
    environment
}
