//! Confinement of a program: which files it may read and write, whether it has the network, and whether this system
//! can enforce that.
//!
//! A confined program starts confined or does not start; it never runs with less than was asked for, but for what
//! [`Support::gaps`] names. `docs/sandbox.md` is the reference.

mod handle;
#[cfg(target_os = "linux")]
mod mounts;
mod temporary;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod landlock;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;

#[cfg(not(any(
    target_os = "macos",
    all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )
)))]
#[path = "confinement/elsewhere.rs"]
mod landlock;
#[cfg(target_os = "macos")]
use seatbelt as landlock;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

pub use handle::PathHandle;
pub(crate) use landlock::{Ruleset, prepare, probe};
pub use temporary::{TemporaryDirectory, remove_tree};

/// Links that are followed one after the other, as the kernel does.
const MAX_LINKS: usize = 40;
/// Entries of a reserved directory that are looked at for links.
const MAX_LINKED_ENTRIES: usize = 1_000;
/// The first version whose rules cover truncation. Without that, a program that may not write a file could empty it.
const LEAST_ABI: u32 = 3;
/// The first version with rules for TCP.
#[cfg(target_os = "linux")]
const NETWORK_ABI: u32 = 4;
/// The first version with rules for ioctls of devices.
const DEVICE_CONTROL_ABI: u32 = 5;
/// The first version that keeps signals and abstract sockets inside.
const SCOPES_ABI: u32 = 6;

/// What a program, and everything that it starts, may do.
///
/// It may read and execute whatever the user may, but for the hidden directories and for devices. Its files are
/// descriptors from the beginning: what their paths lead to later does not count.
#[derive(Clone, Debug, Default)]
pub struct Confinement(Box<ConfinementRules>);

/// On the heap, because specifications of programs are in many futures.
#[derive(Clone, Debug, Default)]
struct ConfinementRules {
    writable: Vec<PathHandle>,
    temporary: Option<Arc<TemporaryDirectory>>,
    protected: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    network: bool,
}

impl Confinement {
    /// Nothing may be written, and there is no network.
    pub fn read_only() -> Self {
        Self::default()
    }

    /// A workspace may be written. There is no network.
    pub fn workspace_write(workspace: PathHandle) -> Self {
        let mut confinement = Self::default();
        confinement.0.writable.push(workspace);
        confinement
    }

    /// The same, with the network.
    #[must_use]
    pub fn with_network(mut self) -> Self {
        self.0.network = true;
        self
    }

    /// The same, with more directories (and single files) that may be written. A path that does not exist is left
    /// out: nothing can be written there, and to create it is to write beside it.
    pub fn with_writable<P: AsRef<Path>>(
        mut self,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self, ConfineError> {
        for path in paths {
            match PathHandle::open(path.as_ref()) {
                Ok(root) => self.0.writable.push(root),
                Err(error) if error.is_missing() => {
                    tracing::debug!(%error, "a writable root does not exist");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(self)
    }

    /// The same, with a directory for temporary files, which may be inside of a hidden one. A
    /// [`GuardedChild`](crate::GuardedChild) keeps it as long as its program runs.
    #[must_use]
    pub fn with_temporary(mut self, directory: Arc<TemporaryDirectory>) -> Self {
        self.0.temporary = Some(directory);
        self
    }

    /// The same, with a directory that is never written, also inside of a writable one. It need not exist yet.
    #[must_use]
    pub fn with_protected(mut self, directory: &Path) -> Self {
        self.0.protected.extend(reserved_paths(directory));
        self
    }

    /// The same, with a directory whose files are neither read nor written, also inside of a writable one. It need
    /// not exist yet.
    #[must_use]
    pub fn with_hidden(mut self, directory: &Path) -> Self {
        self.0.hidden.extend(reserved_paths(directory));
        self
    }

    /// Whether the program may use the network.
    pub fn has_network(&self) -> bool {
        self.0.network
    }

    /// The directories whose files are neither read nor written.
    pub fn hidden(&self) -> &[PathBuf] {
        &self.0.hidden
    }

    /// The directories that are not written.
    pub fn protected(&self) -> &[PathBuf] {
        &self.0.protected
    }

    /// The directories and files that may be written, besides that for temporary files.
    pub fn writable(&self) -> &[PathHandle] {
        &self.0.writable
    }

    /// The writable roots with their present paths. None of them is in a hidden or protected directory.
    fn roots(&self) -> Result<Vec<(&PathHandle, PathBuf)>, ConfineError> {
        let roots = self.0.writable.iter().map(|root| {
            let path = root.current_path()?;
            let mut reserved = self.0.protected.iter().chain(&self.0.hidden);
            if reserved.any(|reserved| path.starts_with(reserved)) {
                return Err(ConfineError::Reserved { path });
            }
            Ok((root, path))
        });
        roots.collect()
    }
}

/// Every link on the way to a path, and the path without links: to replace one of them is to replace what it leads to.
/// For a directory also those of the links in it, as people have them who keep their configuration elsewhere. Mounts that
/// show one of them once more count as well.
pub fn reserved_paths(path: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    reserve(path, MAX_LINKS, &mut paths);
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    for entry in entries.take(MAX_LINKED_ENTRIES) {
        if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            reserve(&entry.path(), MAX_LINKS, &mut paths);
        }
    }
    #[cfg(target_os = "linux")]
    mounts::add_aliases(&mut paths);
    paths.sort();
    paths.dedup();
    paths
}

/// Adds the links on the way to a path, and what it leads to.
fn reserve(path: &Path, links: usize, paths: &mut Vec<PathBuf>) {
    let mut place = PathBuf::new();
    let mut components = path.components();
    while let Some(component) = components.next() {
        match component {
            // What is before it is free of links.
            Component::ParentDir => {
                place.pop();
            }
            other => place.push(other),
        }
        if let (Ok(target), Some(links)) = (std::fs::read_link(&place), links.checked_sub(1)) {
            paths.push(place.clone());
            place.pop();
            return reserve(&place.join(target).join(components), links, paths);
        }
    }
    paths.push(place);
}

/// The path without links, as far as it exists. A link that leads to nothing yet is followed, too.
pub fn resolve(path: &Path) -> PathBuf {
    fn follow(path: &Path, links: usize) -> PathBuf {
        match (std::fs::canonicalize(path), path.parent(), path.file_name()) {
            (Ok(resolved), ..) => resolved,
            (Err(_), Some(parent), Some(name)) => {
                let parent = follow(parent, links);
                let place = parent.join(name);
                match (std::fs::read_link(&place), links.checked_sub(1)) {
                    (Ok(target), Some(links)) => follow(&parent.join(target), links),
                    _ => place,
                }
            }
            (Err(_), ..) => path.to_owned(),
        }
    }
    follow(path, MAX_LINKS)
}

/// What this system can do to confine a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// The kernel has Landlock.
    Landlock {
        /// The version of its interface.
        abi: u32,
    },
    /// The kernel has Landlock, but it was not switched on when the system started.
    SwitchedOff,
    /// The kernel was made without Landlock, or is older than it.
    Missing,
    /// Something around this process, such as a container, does not let it ask.
    Forbidden,
    /// The system is macOS, which has Seatbelt.
    Seatbelt,
    /// Neither Linux on x86-64 or ARM64, nor macOS.
    OtherSystem,
}

/// Asks the system what it can do. Takes a few microseconds and changes nothing.
pub fn confinement_support() -> Support {
    probe()
}

impl Support {
    /// Whether confined programs can be started.
    pub fn is_sufficient(self) -> bool {
        match self {
            Self::Landlock { abi } => abi >= LEAST_ABI,
            Self::Seatbelt => true,
            Self::SwitchedOff | Self::Missing | Self::Forbidden | Self::OtherSystem => false,
        }
    }

    /// What confined programs can do here that they could not do under a newer kernel. Each is a whole phrase.
    pub fn gaps(self) -> Vec<&'static str> {
        let Self::Landlock { abi } = self else {
            return Vec::new();
        };
        let all = [
            (
                DEVICE_CONTROL_ABI,
                "control device files outside of /dev that they may only read (Linux 6.10 prevents it)",
            ),
            (
                SCOPES_ABI,
                "send signals to programs outside and, with network, connect to their abstract unix sockets \
                 (Linux 6.12 prevents it)",
            ),
        ];
        let by_version = all.into_iter().filter(|(since, _)| abi < *since);
        by_version.map(|(_, gap)| gap).collect()
    }

    /// An error where confined programs cannot be started.
    pub fn check(self) -> Result<(), ConfineError> {
        if self.is_sufficient() {
            Ok(())
        } else {
            Err(ConfineError::Unsupported { support: self })
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Landlock { abi } if *abi < LEAST_ABI => write!(
                formatter,
                "Landlock of this kernel has version {abi}, and version {LEAST_ABI} (Linux 6.2) is the first \
                 that keeps files from being emptied"
            ),
            Self::Landlock { abi } => write!(formatter, "Landlock, version {abi}"),
            Self::SwitchedOff => formatter.write_str(
                "Landlock is not switched on: add `landlock` to the list `lsm=` of the kernel's command line",
            ),
            Self::Missing => formatter.write_str("this kernel has no Landlock"),
            Self::Forbidden => {
                formatter.write_str("the container, or what else is around, forbids Landlock")
            }
            Self::Seatbelt => formatter.write_str("Seatbelt"),
            Self::OtherSystem => formatter.write_str(
                "programs can be confined on Linux on x86-64 and ARM64, and on macOS only",
            ),
        }
    }
}

/// Why a program cannot be confined. It was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfineError {
    /// The system cannot do it.
    #[error(
        "{support}. Nothing was started; use Linux 6.2 or newer with Landlock, or go without the sandbox \
         (`sandbox = \"danger-full-access\"` for an agent, `sandbox = \"off\"` for a server)"
    )]
    Unsupported {
        /// What it can do.
        support: Support,
    },
    /// A file or directory of the sandbox cannot be opened.
    #[error("cannot open `{}` for the sandbox", path.display())]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A component of a path is a link, which a program in a sandbox could have made.
    #[error(
        "`{}` cannot be given to a sandbox: `{}` in it is a symbolic link; use the path that it leads to",
        path.display(), name.display()
    )]
    Link {
        /// The path.
        path: PathBuf,
        /// The component.
        name: OsString,
    },
    /// A path that is to be writable is in a protected or hidden directory.
    #[error("`{}` cannot be made writable: it is in a directory of cocode itself", path.display())]
    Reserved {
        /// The path.
        path: PathBuf,
    },
    /// The kernel rejected the rules.
    #[error("the kernel rejected the rules of the sandbox")]
    Rules(#[source] io::Error),
}

impl ConfineError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Open { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
    }
}

#[cfg(test)]
#[path = "confinement/support_tests.rs"]
mod tests;
