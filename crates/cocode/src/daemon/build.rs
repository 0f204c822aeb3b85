//! Which program this is: fronts and daemons of different builds do not work together.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The file that this process runs, even if another has taken its name meanwhile.
#[cfg(target_os = "linux")]
fn own_file() -> std::io::Result<std::fs::Metadata> {
    std::fs::metadata("/proc/self/exe")
}

#[cfg(not(target_os = "linux"))]
fn own_file() -> std::io::Result<std::fs::Metadata> {
    std::env::current_exe().and_then(std::fs::metadata)
}

/// What to start in order to run this program once more: the same file, even if another has taken
/// its name meanwhile.
#[cfg(target_os = "linux")]
pub(crate) fn program() -> std::io::Result<PathBuf> {
    let named = std::env::current_exe()?;
    let own = own_file()?;
    let is_same = std::fs::metadata(&named)
        .is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()));
    Ok(if is_same {
        named
    } else {
        PathBuf::from("/proc/self/exe")
    })
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
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
