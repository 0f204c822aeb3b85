//! Who holds which conversation.
//!
//! A held conversation is a locked file, named after it. The lock is one of the system's, which frees
//! it when its holder dies in whatever way, and which also keeps two holders in one process apart. The
//! file is removed by who lets go, so that the directory holds no more files than conversations that
//! are in use; those of holders that died are removed by whoever looks next.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::database::Trouble;
use super::sqlite_file::{FILE_MODE, FileTrouble, make_directory};
use super::{ConversationId, Hold, StoreError, random_bytes};

/// How often a lock is taken again whose file was removed in between by who let go. Nobody but holders
/// removes files then, so each time somebody else held it for a moment.
const ATTEMPTS: usize = 100;

/// All that are held, in all processes.
#[derive(Debug)]
pub(super) enum Locks {
    /// By locked files in this directory.
    Files(PathBuf),
    /// In one process, by one store.
    Memory(Arc<Mutex<BTreeSet<ConversationId>>>),
}

/// A locked file.
#[derive(Debug)]
struct HeldFile {
    file: File,
    path: PathBuf,
    token: i64,
}

/// An entry among those that are held.
#[derive(Debug)]
struct HeldEntry {
    held: Arc<Mutex<BTreeSet<ConversationId>>>,
    id: ConversationId,
    token: i64,
}

impl Locks {
    pub(super) fn in_directory(directory: PathBuf) -> Self {
        Self::Files(directory)
    }

    pub(super) fn in_memory() -> Self {
        Self::Memory(Arc::default())
    }

    /// Takes a conversation, unless somebody holds it. Only inside of a transaction that writes.
    pub(super) fn take(&self, id: &ConversationId) -> Result<Arc<dyn Hold>, Trouble> {
        let token = i64::from_ne_bytes(random_bytes()?);
        match self {
            Self::Files(directory) => {
                make_directory(directory)?;
                let path = file_of(directory, id);
                let file = lock(&path, Missing::Make)?;
                let file = file.ok_or_else(|| StoreError::Held(id.clone()))?;
                Ok(Arc::new(HeldFile { file, path, token }))
            }
            Self::Memory(held) => {
                let mut entries = held.lock().unwrap_or_else(PoisonError::into_inner);
                if !entries.insert(id.clone()) {
                    return Err(StoreError::Held(id.clone()).into());
                }
                let (held, id) = (Arc::clone(held), id.clone());
                Ok(Arc::new(HeldEntry { held, id, token }))
            }
        }
    }

    /// Whether a conversation may be held: what is not in question is free.
    pub(super) fn is_in_question(&self, id: &ConversationId) -> bool {
        match self {
            Self::Files(directory) => file_of(directory, id).exists(),
            Self::Memory(held) => {
                let held = held.lock().unwrap_or_else(PoisonError::into_inner);
                held.contains(id)
            }
        }
    }

    /// Whether a conversation is held. Only inside of a transaction that writes: the look takes the lock
    /// for a moment. What a dead holder left behind is removed.
    pub(super) fn is_held(&self, id: &ConversationId) -> Result<bool, Trouble> {
        match self {
            Self::Files(directory) => {
                let path = file_of(directory, id);
                match lock(&path, Missing::Leave) {
                    Ok(Some(file)) => {
                        let token = 0;
                        drop(HeldFile { file, path, token });
                        Ok(false)
                    }
                    Ok(None) => Ok(true),
                    Err(Trouble::File(trouble)) if trouble.source.kind() == ErrorKind::NotFound => {
                        Ok(false)
                    }
                    Err(trouble) => Err(trouble),
                }
            }
            Self::Memory(_) => Ok(self.is_in_question(id)),
        }
    }
}

impl Hold for HeldFile {
    fn token(&self) -> i64 {
        self.token
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        // First the name and then the lock: whoever opened the file in between notices that the lock
        // that they got has no name any more.
        if is_at(&self.file, &self.path)
            && let Err(error) = fs::remove_file(&self.path)
        {
            let path = self.path.display();
            tracing::debug!(%path, %error, "the file of a lock stays");
        }
        // Closing the file would do, unless a process that is just being started has it as well.
        if let Err(error) = self.file.unlock() {
            let path = self.path.display();
            tracing::warn!(%path, %error, "a lock is freed only with its process");
        }
    }
}

impl Hold for HeldEntry {
    fn token(&self) -> i64 {
        self.token
    }
}

impl Drop for HeldEntry {
    fn drop(&mut self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(&self.id);
    }
}

/// What to do where no file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Make,
    Leave,
}

/// Opens and locks a file, unless somebody has it.
fn lock(path: &Path, missing: Missing) -> Result<Option<File>, Trouble> {
    for _attempt in 0..ATTEMPTS {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(missing == Missing::Make)
            .truncate(false)
            .mode(FILE_MODE)
            .open(path)
            .map_err(FileTrouble::with("open the lock", path))?;
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(Some(file)),
            // Who held it has removed it in the meantime.
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => {
                return Err(FileTrouble::with("take the lock", path)(error).into());
            }
        }
    }
    Ok(None)
}

/// Whether this is the file that has this name.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else {
        return false;
    };
    ours.ino() == there.ino() && ours.dev() == there.dev()
}

fn file_of(directory: &Path, id: &ConversationId) -> PathBuf {
    directory.join(format!("{id}.lock"))
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
