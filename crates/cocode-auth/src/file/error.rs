//! Why the file of secrets cannot be used. Nothing here quotes what the file holds.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why the file of secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Others may read or write it.
    #[error(
        "others may use the file of secrets `{path}` (mode {mode:04o}): replace the secrets that \
         they may have seen, and run `chmod 600 {path}`",
        path = path.display()
    )]
    OpenFile {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Others may exchange the files in it.
    #[error(
        "others may write to `{path}` (mode {mode:04o}), where secrets are kept: run \
         `chmod 700 {path}`",
        path = path.display()
    )]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Somebody else could change its permissions at any time.
    #[error(
        "`{}` belongs to user {owner} and not to the one who runs this: run it as that user, or \
         use another directory", path.display()
    )]
    ForeignOwner {
        /// The file or directory.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// It could lead anywhere.
    #[error("`{}` is a symbolic link, and secrets are not kept behind one: move the file itself there", path.display())]
    Symlink {
        /// The link.
        path: PathBuf,
    },
    /// A directory, pipe or device has its name.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// What was found.
        path: PathBuf,
    },
    /// It is no JSON, or not the JSON that is written there. What the parser says is left out,
    /// because it quotes values.
    #[error(
        "the file of secrets `{}` is damaged at line {line}, column {column}: repair it, or \
         remove it and {remedy}", path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where reading stopped.
        line: usize,
        /// Where in the line.
        column: usize,
        /// How one comes by its content again.
        remedy: &'static str,
    },
    /// A later version of the program wrote it.
    #[error("the file of secrets `{}` has version {version}, written by a newer cocode", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// The version it has.
        version: u64,
    },
    /// It cannot be what is written there.
    #[error("the file of secrets `{}` is too large", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Another process does not let go of the lock.
    #[error("another process has held `{}` for {} seconds: end it", path.display(), after.as_secs())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        after: Duration,
    },
    /// The system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl FileError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// An open that follows no links failed.
    pub(crate) fn opening(path: &Path, source: io::Error) -> Self {
        if path.is_symlink() {
            Self::Symlink {
                path: path.to_owned(),
            }
        } else {
            Self::io("open", path)(source)
        }
    }
}
