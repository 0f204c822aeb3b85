//! Remembers on disk what servers listed, so that it is known before they have started and with
//! all of them stopped.
//!
//! An entry is found by a key: the fingerprint of everything that decides what the server is. A
//! server that was changed in any way has another key, and never shows what it listed before.
//!
//! # How long a list counts
//!
//! The rules are those of revision 2026-07-28. A list is fresh for as long as its server says with
//! `ttlMs`, from the moment it was asked for; of several pages, the shortest time counts. Zero, and
//! anything below, means never fresh. A server that does not say gets [`DEFAULT_LIST_TTL`], and
//! none gets more than [`MAX_LIST_TTL`]. `list_changed` makes a list stale at once: whoever hears
//! it asks again and stores the answer. Stale lists are kept and may be shown, until the server
//! can be asked.
//!
//! # What `private` means here
//!
//! A list that is `private` may be used again only for whom it was made. The files belong to one
//! user of the machine and nobody else can read them, so lists of both scopes are kept. But one user
//! may have several accounts at a server, and the configuration names credentials without holding
//! them. Where accounts can change under one configuration, the key must tell them apart: see
//! [`ListCache::key_for`]. Whoever serves several people, as a gateway does, must do so for every
//! `private` list.
//!
//! All functions do their work at once and wait for the disk: from asynchronous code, call them on
//! a thread that may block. Any number of processes may use one directory.

mod format;
mod kind;
mod remembered;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use kind::ListKind;
pub use remembered::{DEFAULT_LIST_TTL, Freshness, MAX_LIST_TTL, Remembered, RememberedList};

use crate::private_files::{self, FileError, UNFINISHED};
use format::Unwritable;

/// Bytes of one server's lists together; those of a server that has more are not remembered.
pub const MAX_ENTRY_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of all entries together.
pub const MAX_CACHE_BYTES: u64 = 64 * 1024 * 1024;
/// How long an entry is kept that nobody wrote again.
pub const MAX_ENTRY_AGE: Duration = Duration::from_hours(30 * 24);
/// Writing takes a moment. What is unfinished after this time was given up.
const MAX_WRITING_TIME: Duration = Duration::from_hours(1);
/// A fingerprint has no more digits.
const MAX_KEY_DIGITS: usize = 128;
/// What the names of entries end with.
const EXTENSION: &str = ".lists";

/// What servers listed, in a directory. Cloning shares it.
#[derive(Clone, Debug)]
pub struct ListCache {
    directory: Option<Arc<Path>>,
}

/// Why lists are not remembered. Whatever was remembered of the server before is gone, or as it
/// was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListCacheError {
    /// Not the hexadecimal digits of a fingerprint.
    #[error("`{key}` is not a fingerprint of a server")]
    InvalidKey {
        /// The refused key.
        key: String,
    },
    /// More than [`MAX_ENTRY_BYTES`].
    #[error("its lists have {bytes} bytes, and at most {MAX_ENTRY_BYTES} are remembered")]
    TooLarge {
        /// How many there are.
        bytes: usize,
    },
    /// They have no form on disk.
    #[error("its lists cannot be written down")]
    Unwritable(#[source] serde_json::Error),
    /// The system refuses.
    #[error(transparent)]
    File(#[from] FileError),
}

/// What was removed to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgedLists {
    /// How many files.
    pub files: usize,
    /// How many bytes they had.
    pub bytes: u64,
}

impl ListCache {
    /// The cache in this directory, which is made when something is stored.
    pub fn open(directory: impl Into<PathBuf>) -> Self {
        let directory: PathBuf = directory.into();
        Self {
            directory: Some(directory.into()),
        }
    }

    /// A cache that remembers nothing.
    pub fn off() -> Self {
        Self { directory: None }
    }

    /// Whether nothing is ever remembered.
    pub(crate) fn is_off(&self) -> bool {
        self.directory.is_none()
    }

    /// The key of a server that is used with these credentials. None of them can be told from it.
    pub fn key_for(fingerprint: &str, credentials: &[&str]) -> String {
        let mut text = fingerprint.as_bytes().to_vec();
        for credential in credentials {
            // With its length, so that no two lists of credentials read the same.
            text.extend_from_slice(format!("\n{}:", credential.len()).as_bytes());
            text.extend_from_slice(credential.as_bytes());
        }
        private_files::sha256(&text)
    }

    /// What is remembered of a server. An entry that is damaged, or of another program or version,
    /// is as good as none.
    pub fn load(&self, key: &str) -> Option<Remembered> {
        let path = self.path(key).ok()??;
        let limit = u64::try_from(MAX_ENTRY_BYTES).unwrap_or(u64::MAX);
        let read = private_files::read(&path, limit);
        let bytes = read.inspect_err(|error| {
            tracing::warn!(%error, cause = %error.source, "lists cannot be recalled");
        });
        let decoded = format::decode(key, &bytes.ok()??);
        decoded
            .inspect_err(
                |reason| tracing::debug!(path = %path.display(), reason, "lists are not recalled"),
            )
            .ok()
    }

    /// Remembers this of a server, in place of what was remembered before, and makes room for it.
    ///
    /// Lists that are too large leave no entry at all: the one before would be wrong.
    pub fn store(&self, key: &str, remembered: &Remembered) -> Result<(), ListCacheError> {
        let (Some(directory), Some(path)) = (&self.directory, self.path(key)?) else {
            return Ok(());
        };
        match format::encode(key, remembered) {
            Ok(bytes) => private_files::replace(directory, &name(key), &bytes)?,
            Err(Unwritable::TooLarge(bytes)) => {
                private_files::remove(&path)?;
                return Err(ListCacheError::TooLarge { bytes });
            }
            Err(Unwritable::Header(error)) => return Err(ListCacheError::Unwritable(error)),
        }
        self.purge(SystemTime::now())?;
        Ok(())
    }

    /// Forgets a server, and says whether anything was known of it.
    pub fn forget(&self, key: &str) -> Result<bool, ListCacheError> {
        match self.path(key)? {
            Some(path) => Ok(private_files::remove(&path)?),
            None => Ok(false),
        }
    }

    /// Removes entries that nobody wrote for [`MAX_ENTRY_AGE`], and of the others the oldest until
    /// they have no more than [`MAX_CACHE_BYTES`]. [`ListCache::store`] does so each time.
    pub fn purge(&self, now: SystemTime) -> Result<PurgedLists, ListCacheError> {
        let Some(directory) = &self.directory else {
            return Ok(PurgedLists::default());
        };
        let mut entries = entries(directory)?;
        // The newest first, and by name where the clock cannot tell.
        entries.sort_by(|one, other| (other.written, &other.path).cmp(&(one.written, &one.path)));
        let mut purged = PurgedLists::default();
        let mut kept = 0;
        for entry in entries {
            let age = now.duration_since(entry.written).unwrap_or_default();
            let goes = if entry.is_finished {
                age > MAX_ENTRY_AGE || kept + entry.bytes > MAX_CACHE_BYTES
            } else {
                age > MAX_WRITING_TIME
            };
            if !goes {
                kept += entry.bytes;
            } else if private_files::remove(&entry.path)? {
                purged.files += 1;
                purged.bytes += entry.bytes;
            }
        }
        Ok(purged)
    }

    fn path(&self, key: &str) -> Result<Option<PathBuf>, ListCacheError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if key.is_empty() || key.len() > MAX_KEY_DIGITS || !key.bytes().all(is_digit) {
            let key = key.chars().take(MAX_KEY_DIGITS).collect();
            return Err(ListCacheError::InvalidKey { key });
        }
        let directory = self.directory.as_deref();
        Ok(directory.map(|directory| directory.join(name(key))))
    }
}

fn name(key: &str) -> String {
    format!("{key}{EXTENSION}")
}

struct Entry {
    path: PathBuf,
    written: SystemTime,
    bytes: u64,
    is_finished: bool,
}

/// All files of ours. One that goes away meanwhile was removed by another process.
fn entries(directory: &Path) -> Result<Vec<Entry>, FileError> {
    let failed = || FileError::of("read the directory", directory);
    let files = match fs::read_dir(directory) {
        Ok(files) => files,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed()(error)),
    };
    let mut entries = Vec::new();
    for file in files {
        let file = file.map_err(failed())?;
        let name = file.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_finished = name.ends_with(EXTENSION);
        let is_unfinished = name.ends_with(UNFINISHED) && name.contains(EXTENSION);
        let Ok(metadata) = file.metadata() else {
            continue;
        };
        if !metadata.is_file() || !(is_finished || is_unfinished) {
            continue;
        }
        entries.push(Entry {
            path: file.path(),
            written: metadata.modified().map_err(failed())?,
            bytes: metadata.len(),
            is_finished,
        });
    }
    Ok(entries)
}

#[cfg(test)]
#[path = "list_cache_tests.rs"]
mod tests;
