//! Files and directories that belong to one user alone, locks that keep other processes out, and files
//! that are replaced as a whole.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// How long another process may hold a lock. Each holds it for milliseconds.
const LOCK_LIMIT: Duration = Duration::from_secs(30);
const LOCK_POLL: Duration = Duration::from_millis(1);

/// Why a private file cannot be used.
#[derive(Debug)]
pub(crate) enum PrivateError {
    /// Others could read or exchange it.
    NotPrivate { path: PathBuf, why: String },
    /// Another process holds the lock.
    Busy { path: PathBuf, after: Duration },
    /// The system refused.
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl PrivateError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    fn not_private(path: &Path, why: String) -> Self {
        let path = path.to_owned();
        Self::NotPrivate { path, why }
    }

    /// An open that follows no links failed.
    fn opening(path: &Path, source: io::Error) -> Self {
        if path.is_symlink() {
            let why = format!(
                "`{}` is a symbolic link, and nothing private is kept behind one: move the file itself there",
                path.display()
            );
            return Self::not_private(path, why);
        }
        Self::io("open", path)(source)
    }
}

/// What is done with a file that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It is read.
    Read,
    /// It is read, whoever else may do that: it is about whether it was changed, and not about secrets.
    Inspect,
    /// It is read and written, and made if it is missing.
    Write,
}

/// Makes the directory if it is missing, and refuses one in which others could exchange files.
pub(crate) fn prepare_directory(directory: &Path) -> Result<(), PrivateError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(PrivateError::io("create", directory))?;
    let metadata = fs::metadata(directory).map_err(PrivateError::io("inspect", directory))?;
    check_owner(directory, &metadata)?;
    let mode = metadata.mode() & 0o7777;
    let for_others = mode & 0o022;
    if for_others == 0 {
        return Ok(());
    }
    let shown = directory.display();
    let why = format!("others may write to `{shown}` (mode {mode:04o}): run `chmod 700 {shown}`");
    Err(PrivateError::not_private(directory, why))
}

/// Opens a file that only its owner may use. Judged by the open file, which nobody can exchange any
/// more.
pub(crate) fn open(path: &Path, opening: Opening) -> Result<File, PrivateError> {
    let file = open_if_there(path, opening)?;
    file.ok_or_else(|| PrivateError::io("open", path)(io::ErrorKind::NotFound.into()))
}

/// As [`open`]; there may be no such file.
pub(crate) fn open_if_there(path: &Path, opening: Opening) -> Result<Option<File>, PrivateError> {
    // Without NONBLOCK, opening a named pipe would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let writes = opening == Opening::Write;
    let opened = OpenOptions::new()
        .read(true)
        .write(writes)
        .create(writes)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !writes => return Ok(None),
        Err(error) => return Err(PrivateError::opening(path, error)),
    };
    let metadata = file.metadata().map_err(PrivateError::io("inspect", path))?;
    let shown = path.display();
    if !metadata.is_file() {
        let why = format!("`{shown}` is not a regular file");
        return Err(PrivateError::not_private(path, why));
    }
    if opening == Opening::Inspect {
        return Ok(Some(file));
    }
    check_owner(path, &metadata)?;
    let mode = metadata.mode() & 0o7777;
    let for_others = mode & 0o077;
    if for_others == 0 {
        return Ok(Some(file));
    }
    let why = format!("others may use `{shown}` (mode {mode:04o}): run `chmod 600 {shown}`");
    Err(PrivateError::not_private(path, why))
}

fn check_owner(path: &Path, metadata: &Metadata) -> Result<(), PrivateError> {
    if metadata.uid() == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let why = format!(
        "`{}` belongs to user {} and not to the one who runs this: run it as that user, or use \
         another directory",
        path.display(),
        metadata.uid()
    );
    Err(PrivateError::not_private(path, why))
}

/// A lock that keeps other processes out until it is dropped. The system frees it when its holder dies
/// in whatever way.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    /// Waits for the lock of this file, which is made if it is missing and never removed: two processes
    /// could else hold locks on two files of that name. Blocks the thread.
    pub(crate) fn take(path: &Path) -> Result<Self, PrivateError> {
        Self::wait_for(open(path, Opening::Write)?, path)
    }

    /// As [`Self::take`], if there is such a file.
    pub(crate) fn take_if_there(path: &Path) -> Result<Option<Self>, PrivateError> {
        let file = open_if_there(path, Opening::Inspect)?;
        file.map(|file| Self::wait_for(file, path)).transpose()
    }

    fn wait_for(file: File, path: &Path) -> Result<Self, PrivateError> {
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if started.elapsed() < LOCK_LIMIT => {
                    thread::sleep(LOCK_POLL);
                }
                Err(TryLockError::WouldBlock) => {
                    let (path, after) = (path.to_owned(), LOCK_LIMIT);
                    return Err(PrivateError::Busy { path, after });
                }
                Err(TryLockError::Error(error)) => {
                    return Err(PrivateError::io("lock", path)(error));
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough while a child that is being started has the file, too.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "cannot unlock a lock file");
        }
    }
}

/// Puts new content in the place of the old one. A crash at any point leaves one of the two. Only the
/// holder of a lock may do this: `new_path` is written first and then renamed.
pub(crate) fn replace(path: &Path, new_path: &Path, bytes: &[u8]) -> Result<(), PrivateError> {
    match fs::remove_file(new_path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(PrivateError::io("clear", new_path)(error)),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(new_path)
        .map_err(PrivateError::io("create", new_path))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(PrivateError::io("write", new_path))?;
    fs::rename(new_path, path).map_err(PrivateError::io("replace", path))?;
    match path.parent() {
        Some(directory) => sync_directory(directory),
        None => Ok(()),
    }
}

/// Makes renames and removals in a directory survive a loss of power.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), PrivateError> {
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(PrivateError::io("write", directory))
}
