//! Private directories for temporary files, and their removal.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::{ConfineError, PathHandle};

/// Entries that are looked at for directories that an earlier process has left.
const MAX_SWEPT: usize = 256;
/// Extension of the lock file beside a directory. Programs in the sandbox cannot open it.
const LOCK_EXTENSION: &str = "lock";
/// File in the parent directory that is locked while lock files are created and looked for.
const MUTEX: &str = "mutex";

/// A directory for the temporary files of one program or conversation.
#[derive(Debug)]
pub struct TemporaryDirectory {
    handle: PathHandle,
    /// Locked as long as this process uses the directory; without one, its files stay.
    lock: Option<(PathBuf, File)>,
}

impl TemporaryDirectory {
    /// Creates a directory below `parent`, which is removed when this value is dropped, or by the next call after a
    /// crash.
    pub fn create_in(parent: &Path) -> Result<Self, ConfineError> {
        let failed = |source| ConfineError::Open {
            path: parent.to_owned(),
            source,
        };
        create_private(parent).map_err(failed)?;
        let parent = super::resolve(parent);
        // Between creating a lock file and locking it, no other process may take it for abandoned.
        let mutex = File::create(parent.join(MUTEX)).map_err(failed)?;
        mutex.lock().map_err(failed)?;
        let abandoned = abandoned(&parent).map_err(failed)?;
        let path = parent.join(format!("{:016x}", fastrand::u64(..)));
        let lock_path = path.with_extension(LOCK_EXTENSION);
        let lock = File::create_new(&lock_path).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(error.into()))?;
        drop(mutex);
        (DirBuilder::new().mode(0o700).create(&path)).map_err(failed)?;
        for (lock_path, lock) in abandoned {
            remove_in_background(lock_path, lock);
        }
        Ok(Self {
            handle: PathHandle::open(&path)?,
            lock: Some((lock_path, lock)),
        })
    }

    /// Opens the directory at `path`, and creates it where there is none. Its files stay until they are removed by
    /// path.
    pub fn open(path: &Path) -> Result<Self, ConfineError> {
        let failed = |source| ConfineError::Open {
            path: path.to_owned(),
            source,
        };
        create_private(path).map_err(failed)?;
        // Its program may have changed the mode, but not replaced it.
        rustix::fs::chmod(path, Mode::RWXU).map_err(|errno| failed(errno.into()))?;
        // Its time says when it was used last.
        let used = File::open(path).and_then(|opened| opened.set_modified(SystemTime::now()));
        used.map_err(failed)?;
        let handle = PathHandle::open(&super::resolve(path))?;
        Ok(Self { handle, lock: None })
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        self.handle.path()
    }

    pub(super) fn handle(&self) -> &PathHandle {
        &self.handle
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Some((lock_path, lock)) = self.lock.take() {
            remove_in_background(lock_path, lock);
        // Only if it is empty.
        } else if let Err(error) = std::fs::remove_dir(self.path()) {
            tracing::trace!(%error, "temporary directory is kept");
        }
    }
}

/// Removes the directory of a lock file. There may be many files.
fn remove_in_background(lock_path: PathBuf, lock: File) {
    crate::spawn_cleanup(move || {
        let path = lock_path.with_extension("");
        if let Err(error) = remove_tree(&path).and_then(|()| std::fs::remove_file(&lock_path)) {
            // A program that ends just now may still write; the next process removes the rest.
            tracing::debug!(%error, path = %path.display(), "cannot remove temporary directory");
        }
        drop(lock);
    });
}

fn create_private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Lock files whose process has ended, locked.
fn abandoned(parent: &Path) -> io::Result<Vec<(PathBuf, File)>> {
    let mut abandoned = Vec::new();
    for entry in std::fs::read_dir(parent)?.take(MAX_SWEPT) {
        let lock_path = entry?.path();
        let extension = lock_path.extension();
        if extension.is_none_or(|extension| extension != LOCK_EXTENSION) {
            continue;
        }
        let lock = match File::open(&lock_path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        match lock.try_lock() {
            Ok(()) => abandoned.push((lock_path, lock)),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(abandoned)
}

/// Removes a directory and everything in it, if it is there. However deep it is and whatever modes it has, one level
/// is open at a time: directories are moved up before they are removed.
pub fn remove_tree(top: &Path) -> io::Result<()> {
    const DIRECTORY: OFlags = OFlags::RDONLY
        .union(OFlags::DIRECTORY)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);
    let unlock = |parent: &std::os::fd::OwnedFd, name: &std::ffi::CStr| {
        rustix::fs::chmodat(parent, name, Mode::RWXU, AtFlags::empty())
    };
    // Programs may have changed its mode; they cannot replace it, because they cannot write its parent.
    match rustix::fs::chmod(top, Mode::RWXU) {
        Err(Errno::NOENT) => return Ok(()),
        changed => changed?,
    }
    let top_directory = rustix::fs::open(top, DIRECTORY, Mode::empty())?;
    let mut number = 0_u64;
    // The program that filled the directory must not be able to use such a name already.
    let prefix = format!(".removed-{:016x}-", fastrand::u64(..));
    let mut waiting = vec![std::ffi::CString::from(c".")];
    while let Some(name) = waiting.pop() {
        let directory = rustix::fs::openat(&top_directory, &name, DIRECTORY, Mode::empty())?;
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let entry = entry?;
            let child = entry.file_name();
            let bytes = child.to_bytes();
            if matches!(bytes, b"." | b"..") || bytes.starts_with(prefix.as_bytes()) {
                continue;
            }
            match rustix::fs::unlinkat(&directory, child, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    // It is the user's, but may have been closed to them.
                    unlock(&directory, child)?;
                    number = number.saturating_add(1);
                    let aside = std::ffi::CString::new(format!("{prefix}{number}"))?;
                    rustix::fs::renameat(&directory, child, &top_directory, &aside)?;
                    waiting.push(aside);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if name.as_bytes() != b"." {
            rustix::fs::unlinkat(&top_directory, &name, AtFlags::REMOVEDIR)?;
        }
    }
    std::fs::remove_dir(top)
}
