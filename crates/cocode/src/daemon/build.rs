//! Which program this is: fronts and daemons of different builds do not work together.

use std::os::unix::fs::MetadataExt as _;

/// The file that this process runs, even if another has taken its name meanwhile.
#[cfg(target_os = "linux")]
fn own_file() -> std::io::Result<std::fs::Metadata> {
    std::fs::metadata("/proc/self/exe")
}

#[cfg(not(target_os = "linux"))]
fn own_file() -> std::io::Result<std::fs::Metadata> {
    std::env::current_exe().and_then(std::fs::metadata)
}

/// The version, and what tells two programs of one version apart.
pub(crate) fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    match own_file() {
        Ok(file) => format!(
            "{version}+{:x}.{:x}.{:x}",
            file.size(),
            file.mtime(),
            file.mtime_nsec()
        ),
        Err(error) => {
            tracing::debug!(%error, "this program cannot be told from others of its version");
            version.to_owned()
        }
    }
}
