//! The directory that results are kept in, one file each.
//!
//! A file is a line of JSON that says whose result it is, and then the result as it came. It is
//! written under a name that only one process can hold and then renamed, so that any number of
//! processes can use a directory at once, without a lock. Its modification time is when it was
//! kept. Files that are not ours are left alone, and ours that are broken are as if they were not
//! there, until they are old enough to go.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode_wire::RawJson;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::handle::{InvalidResultHandle, ResultHandle, beginning};
use super::view::StoredResult;
use crate::private_files::{self, FileError};

/// How much is kept where nobody says otherwise.
pub const DEFAULT_RESULTS_MAX_BYTES: u64 = 512_000_000;

/// How long results are kept where nobody says otherwise.
pub const DEFAULT_RESULTS_MAX_AGE: Duration = Duration::from_hours(7 * 24);

const SUFFIX: &str = ".result";
const UNFINISHED_SUFFIX: &str = ".unfinished";

/// The first line of a file is never longer: names are cut before.
const MAX_HEAD_BYTES: u64 = 8 * 1024;

/// What is kept of the name of a server or tool.
const MAX_NAME_CHARACTERS: usize = 200;

/// A file that was not finished after so long never will be.
const MAX_WRITING_TIME: Duration = Duration::from_hours(1);

/// Handles to try before giving up: each is free but for one chance in many millions.
const MAX_ATTEMPTS: usize = 8;

/// Where results are kept, and how many of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultStoreOptions {
    /// The directory. It is made when the first result is kept.
    pub directory: PathBuf,
    /// Beyond so many bytes the oldest results go.
    pub max_bytes: u64,
    /// Results that are older go.
    pub max_age: Duration,
}

impl ResultStoreOptions {
    /// The usual limits.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            max_bytes: DEFAULT_RESULTS_MAX_BYTES,
            max_age: DEFAULT_RESULTS_MAX_AGE,
        }
    }
}

/// Results in files that only their user can read. Clones share one directory, as do stores of other
/// processes. All functions block on the file system.
#[derive(Clone, Debug)]
pub struct ResultStore {
    options: Arc<ResultStoreOptions>,
}

/// A result that is kept, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptResult {
    /// Its name.
    pub handle: ResultHandle,
    /// The server it came from.
    pub server: String,
    /// The tool that gave it.
    pub tool: String,
    /// When it came.
    pub kept_at: SystemTime,
    /// What it takes up.
    pub bytes: u64,
}

/// What was removed for being old, or to make room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// How many results.
    pub results: usize,
    /// What they took up.
    pub bytes: u64,
}

/// Why a store cannot do what is asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ResultStoreError {
    /// The text names nothing.
    #[error("`{given}` is no handle of a result")]
    Invalid {
        /// What was given.
        given: String,
        /// What is wrong with it.
        #[source]
        source: InvalidResultHandle,
    },
    /// There is no such result, or no longer.
    #[error("no result is kept as `{given}`")]
    Unknown {
        /// What was given.
        given: String,
    },
    /// More is needed to tell which result is meant.
    #[error("several results begin with `{given}`")]
    Ambiguous {
        /// What was given.
        given: String,
        /// What it could mean.
        handles: Vec<ResultHandle>,
    },
    /// Its file is not as it was written.
    #[error("the result `{handle}` is damaged")]
    Damaged {
        /// Which.
        handle: ResultHandle,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// The result alone is more than may be kept.
    #[error("the result takes up {bytes} bytes, and no more than {max_bytes} may be kept")]
    TooLarge {
        /// What it takes up.
        bytes: u64,
        /// What there is room for.
        max_bytes: u64,
    },
    /// The system does not let it happen.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl ResultStoreError {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

impl From<FileError> for ResultStoreError {
    fn from(error: FileError) -> Self {
        let FileError {
            action,
            path,
            source,
        } = error;
        Self::Io {
            action,
            path,
            source,
        }
    }
}

/// The first line of a file.
#[derive(Serialize, Deserialize)]
struct Head {
    server: String,
    tool: String,
}

/// A file of ours as the directory shows it.
struct Entry {
    handle: ResultHandle,
    path: PathBuf,
    kept_at: SystemTime,
    bytes: u64,
}

impl ResultStore {
    /// A store in a directory, which need not exist yet.
    pub fn open(options: ResultStoreOptions) -> Self {
        Self {
            options: Arc::new(options),
        }
    }

    /// Keeps a result, and lets go of those that are too old or too many.
    pub fn keep(
        &self,
        server: &str,
        tool: &str,
        result: &RawJson,
    ) -> Result<ResultHandle, ResultStoreError> {
        let head = Head {
            server: server.chars().take(MAX_NAME_CHARACTERS).collect(),
            tool: tool.chars().take(MAX_NAME_CHARACTERS).collect(),
        };
        let directory = &self.options.directory;
        let head = serde_json::to_string(&head)
            .map_err(|error| ResultStoreError::io("write to", directory)(error.into()))?;
        let bytes = head.len() as u64 + 1 + result.as_bytes().len() as u64;
        let max_bytes = self.options.max_bytes;
        if bytes > max_bytes {
            return Err(ResultStoreError::TooLarge { bytes, max_bytes });
        }
        private_files::make_directory(directory)?;
        let handle = self.write(&[head.as_bytes(), b"\n", result.as_bytes()])?;
        // The result is kept whether or not others could be removed.
        if let Err(error) = self.purge_but(Some(&handle)) {
            tracing::warn!(%error, "cannot remove old results");
        }
        Ok(handle)
    }

    /// All results, the newest first. What cannot be read is left out.
    pub fn list(&self) -> Result<Vec<KeptResult>, ResultStoreError> {
        let mut kept: Vec<KeptResult> = self
            .entries()?
            .into_iter()
            .filter_map(|entry| {
                let Head { server, tool } = read_head(&entry.path)
                    .inspect_err(|error| {
                        tracing::debug!(handle = %entry.handle, %error, "a kept result is damaged");
                    })
                    .ok()?;
                Some(KeptResult {
                    handle: entry.handle,
                    server,
                    tool,
                    kept_at: entry.kept_at,
                    bytes: entry.bytes,
                })
            })
            .collect();
        kept.sort_by(|a, b| (b.kept_at, &b.handle).cmp(&(a.kept_at, &a.handle)));
        Ok(kept)
    }

    /// The one result whose handle begins so.
    pub fn resolve(&self, given: &str) -> Result<ResultHandle, ResultStoreError> {
        let wanted = beginning(given).map_err(|source| ResultStoreError::Invalid {
            given: given.to_owned(),
            source,
        })?;
        let given = given.to_owned();
        let mut handles: Vec<ResultHandle> = self
            .entries()?
            .into_iter()
            .map(|entry| entry.handle)
            .filter(|handle| handle.as_str().starts_with(&wanted))
            .collect();
        match (handles.pop(), handles.is_empty()) {
            (None, _) => Err(ResultStoreError::Unknown { given }),
            (Some(handle), true) => Ok(handle),
            (Some(handle), false) => {
                handles.push(handle);
                handles.sort();
                Err(ResultStoreError::Ambiguous { given, handles })
            }
        }
    }

    /// Reads a result back.
    pub fn read(&self, handle: &ResultHandle) -> Result<StoredResult, ResultStoreError> {
        let path = self.path_of(handle);
        let absent = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ResultStoreError::Unknown {
                given: handle.to_string(),
            },
            _ => ResultStoreError::io("read", &path)(error),
        };
        let damaged = |source| ResultStoreError::Damaged {
            handle: handle.clone(),
            source,
        };
        let metadata = fs::symlink_metadata(&path).map_err(absent)?;
        if !metadata.is_file() {
            return Err(absent(io::ErrorKind::NotFound.into()));
        }
        let kept_at = metadata.modified().map_err(absent)?;
        let mut head = fs::read(&path).map_err(absent)?;
        let end = head.iter().position(|byte| *byte == b'\n');
        let raw = head.split_off(end.map_or(head.len(), |end| end + 1));
        let Head { server, tool } = serde_json::from_slice(&head).map_err(damaged)?;
        Ok(StoredResult {
            handle: handle.clone(),
            server,
            tool,
            kept_at,
            raw: RawJson::parse(raw).map_err(damaged)?,
        })
    }

    /// Removes a result. Says whether there was one.
    pub fn remove(&self, handle: &ResultHandle) -> Result<bool, ResultStoreError> {
        Ok(private_files::remove(&self.path_of(handle))?)
    }

    /// Removes all results, the damaged ones as well, whatever their age.
    pub fn clear(&self) -> Result<Purged, ResultStoreError> {
        remove_all(self.entries()?)
    }

    /// Removes results that are too old, and then the oldest until the rest is within the quota.
    pub fn purge(&self) -> Result<Purged, ResultStoreError> {
        self.purge_but(None)
    }

    fn purge_but(&self, spared: Option<&ResultHandle>) -> Result<Purged, ResultStoreError> {
        let now = SystemTime::now();
        self.remove_unfinished(now)?;
        let mut entries = self.entries()?;
        entries.sort_by(|a, b| (a.kept_at, &a.handle).cmp(&(b.kept_at, &b.handle)));
        let mut total: u64 = entries.iter().map(|entry| entry.bytes).sum();
        entries.retain(|entry| {
            let is_old = is_older(entry.kept_at, now, self.options.max_age);
            let goes = (is_old || total > self.options.max_bytes) && spared != Some(&entry.handle);
            if goes {
                total = total.saturating_sub(entry.bytes);
            }
            goes
        });
        remove_all(entries)
    }

    /// Removes what processes left behind that ended while they wrote.
    fn remove_unfinished(&self, now: SystemTime) -> Result<(), ResultStoreError> {
        for file in self.files()? {
            let name = file.file_name();
            let is_ours = name
                .to_str()
                .and_then(|name| name.strip_suffix(UNFINISHED_SUFFIX))
                .is_some_and(|name| name.parse::<ResultHandle>().is_ok());
            let modified = || file.metadata().and_then(|metadata| metadata.modified());
            if is_ours && modified().is_ok_and(|time| is_older(time, now, MAX_WRITING_TIME)) {
                private_files::remove(&file.path())?;
            }
        }
        Ok(())
    }

    /// Writes a new file. A handle belongs to whoever created its unfinished file.
    fn write(&self, parts: &[&[u8]]) -> Result<ResultHandle, ResultStoreError> {
        let directory = &self.options.directory;
        for _ in 0..MAX_ATTEMPTS {
            let handle = ResultHandle::random();
            let unfinished = directory.join(format!("{handle}{UNFINISHED_SUFFIX}"));
            let mut file = match private_files::create_new(&unfinished) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(ResultStoreError::io("create", &unfinished)(error)),
            };
            let path = self.path_of(&handle);
            let written = match fs::exists(&path) {
                Ok(true) => Ok(false),
                Ok(false) => parts
                    .iter()
                    .try_for_each(|part| file.write_all(part))
                    .and_then(|()| fs::rename(&unfinished, &path))
                    .map(|()| true),
                Err(error) => Err(error),
            };
            if let Ok(true) = written {
                return Ok(handle);
            }
            private_files::remove(&unfinished)?;
            written.map_err(ResultStoreError::io("write", &path))?;
        }
        let source = io::Error::from(io::ErrorKind::AlreadyExists);
        Err(ResultStoreError::io("find a free name in", directory)(
            source,
        ))
    }

    fn path_of(&self, handle: &ResultHandle) -> PathBuf {
        self.options.directory.join(format!("{handle}{SUFFIX}"))
    }

    /// Our files, in no order. One that is removed meanwhile is not there.
    fn entries(&self) -> Result<Vec<Entry>, ResultStoreError> {
        let mut entries = Vec::new();
        for file in self.files()? {
            let name = file.file_name();
            let handle = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
            let Some(Ok(handle)) = handle.map(str::parse::<ResultHandle>) else {
                continue;
            };
            // Does not follow links.
            let Ok(metadata) = file.metadata() else {
                continue;
            };
            let Ok(kept_at) = metadata.modified() else {
                continue;
            };
            if metadata.is_file() && name == format!("{handle}{SUFFIX}").as_str() {
                entries.push(Entry {
                    handle,
                    path: file.path(),
                    kept_at,
                    bytes: metadata.len(),
                });
            }
        }
        Ok(entries)
    }

    fn files(&self) -> Result<Vec<fs::DirEntry>, ResultStoreError> {
        let directory = &self.options.directory;
        let cannot = |error| ResultStoreError::io("read", directory)(error);
        match fs::read_dir(directory) {
            Ok(files) => files.collect::<io::Result<_>>().map_err(cannot),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(cannot(error)),
        }
    }
}

fn is_older(time: SystemTime, now: SystemTime, age: Duration) -> bool {
    // What comes from the future, because a clock was wrong, is new.
    now.duration_since(time).is_ok_and(|elapsed| elapsed > age)
}

fn read_head(path: &Path) -> io::Result<Head> {
    let mut line = Vec::new();
    BufReader::new(File::open(path)?)
        .take(MAX_HEAD_BYTES)
        .read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

fn remove_all(entries: Vec<Entry>) -> Result<Purged, ResultStoreError> {
    let mut purged = Purged::default();
    for entry in entries {
        if private_files::remove(&entry.path)? {
            purged.results += 1;
            purged.bytes += entry.bytes;
        }
    }
    Ok(purged)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
