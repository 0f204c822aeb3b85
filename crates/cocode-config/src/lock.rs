//! One writer at a time for a file that people and programs edit, and writes that are never seen
//! half done.
//!
//! Locks are files of their own, in a directory of ours: beside the file they would end up in
//! somebody's repository. They are never removed, because two processes could else hold locks on
//! two files of one name.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// How long to wait for other processes that edit the same file. Each takes milliseconds, but there
/// may be hundreds of them, on a busy disk.
pub const LOCK_WAIT: Duration = Duration::from_mins(1);
/// Directories that we make are for their owner only.
const DIRECTORY_MODE: u32 = 0o700;
/// The mode of a file that may hold secrets.
pub const PRIVATE_MODE: u32 = 0o600;

/// What every edit needs to know.
#[derive(Clone, Debug)]
pub struct EditContext {
    /// Where lock files are, the same for all processes of a user. Made when it is missing.
    pub lock_dir: PathBuf,
    /// How long to wait for another process.
    pub lock_wait: Duration,
    /// The mode of files that are made; what the process makes by default, if none.
    pub new_file_mode: Option<u32>,
    /// The directory that files must really be in, whatever links lead to them.
    pub within: Option<PathBuf>,
}

impl EditContext {
    /// For files that others may read.
    pub fn new(lock_dir: impl Into<PathBuf>) -> Self {
        Self {
            lock_dir: lock_dir.into(),
            lock_wait: LOCK_WAIT,
            new_file_mode: None,
            within: None,
        }
    }

    /// For files that came with a work tree. Whoever made the tree also made its links, which must
    /// not lead the edit to a file of the user's.
    #[must_use]
    pub fn within(mut self, tree: impl Into<PathBuf>) -> Self {
        self.within = Some(tree.into());
        self
    }

    /// For files that only their owner may read, when they are made.
    #[must_use]
    pub fn private(mut self) -> Self {
        self.new_file_mode = Some(PRIVATE_MODE);
        self
    }
}

/// Why a file cannot be had alone.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process keeps it.
    #[error(
        "another process has been editing {} for {} s; try again when it has ended",
        file.display(),
        after.as_secs()
    )]
    Busy {
        /// The file that was to be edited.
        file: PathBuf,
        /// How long it was waited for.
        after: Duration,
    },
    /// The lock itself cannot be made or taken.
    #[error("cannot take the lock {} of {}", lock.display(), file.display())]
    Lock {
        /// The file that was to be edited.
        file: PathBuf,
        /// The lock.
        lock: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The place of the file cannot be told.
    #[error(transparent)]
    Place(#[from] WriteError),
}

/// Why a file cannot be written. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A link to nowhere, or in a circle.
    #[error(
        "{} is a link that leads to no file; mend the link or remove it",
        path.display()
    )]
    BrokenLink {
        /// The link.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A link from a work tree to somewhere else.
    #[error(
        "{} leads out of the work tree {}, to {}; nothing was changed",
        path.display(),
        tree.display(),
        real.display()
    )]
    LeadsOut {
        /// The file as it is named.
        path: PathBuf,
        /// The work tree, without links.
        tree: PathBuf,
        /// What would have been written to, or the nearest directory above it that exists.
        real: PathBuf,
    },
    /// Not something that can be replaced.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// What it is.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was to be done.
        action: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl WriteError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Does something while no other process does such a thing to the same file. The directory of
/// the file is made if it is missing.
///
/// Not reentrant: inside, the same file cannot be locked again.
pub fn with_lock<T, E: From<LockError>>(
    context: &EditContext,
    file: &Path,
    work: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    let lock = lock(context, file)?;
    let result = work();
    drop(lock);
    result
}

/// Puts bytes in the place of a file: whoever reads it finds the old ones or the new ones. A link
/// stays, and the file it leads to is replaced. An existing file keeps its mode and, where the
/// system allows it, its owner; a new one gets the given mode.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: Option<u32>) -> Result<(), WriteError> {
    let path = &target(path)?;
    let existing = match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Some(metadata),
        Ok(_) => return Err(WriteError::NotAFile { path: path.clone() }),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(WriteError::io("inspect", path)(error)),
    };
    let directory = directory_of(path);
    let new_path = directory.join(temporary_name(path));
    // Nobody may read more than before, not even for a moment.
    let first_mode = match (&existing, mode) {
        (None, None) => 0o666,
        (None, Some(mode)) => mode,
        (Some(_), _) => PRIVATE_MODE,
    };
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(first_mode)
        .open(&new_path)
        .map_err(WriteError::io("create", &new_path))?;
    let unfinished = Unfinished(Some(&new_path));
    fill(&file, bytes, existing.as_ref(), mode).map_err(WriteError::io("write", &new_path))?;
    fs::rename(&new_path, path).map_err(WriteError::io("replace", path))?;
    unfinished.finish();
    // The rename itself must survive a loss of power, too.
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(WriteError::io("write", directory))
}

/// Makes a directory that is for its owner only, and those above it, where they are missing.
pub(crate) fn make_directory(path: &Path) -> Result<(), WriteError> {
    DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)
        .map_err(WriteError::io("make the directory", path))
}

/// The directory a file is in.
pub(crate) fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The one path of a file, through all links, whether the file exists or not.
pub(crate) fn target(path: &Path) -> Result<PathBuf, WriteError> {
    match fs::canonicalize(path) {
        Ok(path) => return Ok(path),
        Err(source) if path.is_symlink() => {
            let path = path.to_owned();
            return Err(WriteError::BrokenLink { path, source });
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(WriteError::io("find", path)(error)),
    }
    let Some(name) = path.file_name() else {
        let path = path.to_owned();
        return Err(WriteError::NotAFile { path });
    };
    let directory = directory_of(path);
    let directory = fs::canonicalize(directory).map_err(WriteError::io("find", directory))?;
    Ok(directory.join(name))
}

/// Lower-case hexadecimal digits of the SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
        text
    })
}

/// Refuses a file that a link leads out of its tree to, before anything is made there.
fn stay_within(tree: &Path, file: &Path) -> Result<(), WriteError> {
    let tree = fs::canonicalize(tree).map_err(WriteError::io("find", tree))?;
    for path in file.ancestors() {
        let real = match fs::canonicalize(path) {
            Ok(real) => real,
            Err(source) if path.is_symlink() => {
                let path = path.to_owned();
                return Err(WriteError::BrokenLink { path, source });
            }
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(WriteError::io("find", path)(error)),
        };
        if real.starts_with(&tree) {
            return Ok(());
        }
        let path = file.to_owned();
        return Err(WriteError::LeadsOut { path, tree, real });
    }
    Ok(())
}

fn lock(context: &EditContext, file: &Path) -> Result<File, LockError> {
    if let Some(tree) = &context.within {
        stay_within(tree, file)?;
    }
    make_directory(directory_of(file))?;
    make_directory(&context.lock_dir)?;
    let path = lock_path(context, file)?;
    let failure = |source| LockError::Lock {
        file: file.to_owned(),
        lock: path.clone(),
        source,
    };
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE_MODE)
        .open(&path)
        .map_err(failure)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::Error(source)) => Err(failure(source)),
        Err(TryLockError::WouldBlock) => match wait_for(lock, context.lock_wait) {
            Some(locked) => locked.map_err(failure),
            None => Err(LockError::Busy {
                file: file.to_owned(),
                after: context.lock_wait,
            }),
        },
    }
}

/// Waits for a lock, but not longer than this. The system wakes those who wait one by one, so that
/// hundreds of them cost nothing; a thread waits, because the system knows no deadline. If the lock
/// comes too late, nobody takes it from the thread, and it is free again.
fn wait_for(lock: File, limit: Duration) -> Option<io::Result<File>> {
    let (sender, receiver) = mpsc::sync_channel(0);
    let waiting = move || {
        let locked = lock.lock().map(|()| lock);
        // An error means that nobody waits any more.
        let _too_late = sender.send(locked);
    };
    let spawned = thread::Builder::new()
        .name("lock".to_owned())
        .spawn(waiting);
    match spawned {
        Ok(_unjoined) => receiver.recv_timeout(limit).ok(),
        Err(error) => Some(Err(error)),
    }
}

/// The lock of a file: of the file itself, by whatever path it is named.
fn lock_path(context: &EditContext, file: &Path) -> Result<PathBuf, WriteError> {
    let target = target(file)?;
    let mut name = sha256(target.as_os_str().as_bytes());
    name.truncate(32);
    name.push_str(".lock");
    Ok(context.lock_dir.join(name))
}

/// A name that nobody can foresee, so that nobody can put a file in its place.
fn temporary_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The keys of the standard library's hasher are random.
    let random = RandomState::new().build_hasher().finish();
    let mut name: String = name.chars().take(40).collect();
    if !name.starts_with('.') {
        name.insert(0, '.');
    }
    format!("{name}.{random:016x}.new")
}

fn fill(
    mut file: &File,
    bytes: &[u8],
    existing: Option<&fs::Metadata>,
    mode: Option<u32>,
) -> io::Result<()> {
    file.write_all(bytes)?;
    let mode = match existing {
        Some(existing) => {
            let mut mode = existing.mode() & 0o7777;
            let ours = file.metadata()?;
            let is_owned_alike = (ours.uid(), ours.gid()) == (existing.uid(), existing.gid());
            if !is_owned_alike
                && std::os::unix::fs::fchown(file, Some(existing.uid()), Some(existing.gid()))
                    .is_err()
            {
                // Only the superuser may give files away. What the old group might do is not for
                // the new one.
                mode &= !0o070;
            }
            Some(mode)
        }
        None => mode,
    };
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.sync_all()
}

/// Removes a file that did not get to its place.
struct Unfinished<'a>(Option<&'a Path>);

impl Unfinished<'_> {
    fn finish(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(path) = self.0 {
            // There is an error on its way already, and nothing more can be done about this one.
            drop(fs::remove_file(path));
        }
    }
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
