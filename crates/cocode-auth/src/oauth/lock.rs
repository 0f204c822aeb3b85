//! One lock per MCP server, for all tasks and all processes.
//!
//! Tasks of one process queue for a semaphore, in order. The first of them stands for its process:
//! it takes the file of the queue (`.next`) and, holding that, the lock itself (`.lock`). So a process
//! that lets go and comes back at once waits like everybody else. Both are advisory locks of the
//! system, which frees them when their holder dies in whatever way. Waiting is trying again after a
//! while, so no thread is blocked.
//!
//! The lock file also tells two things to those who do not hold it: a stamp, which the holder changes
//! with the record, and the process that holds it. It is never removed.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::fs::OFlags;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout_at};

use crate::file::{FileError, open_lock, prepare_directory};

/// How long to wait for a holder: a token request may take a minute, and a person may take another
/// to unlock the keyring.
pub(super) const WAIT_LIMIT: Duration = Duration::from_mins(2);

/// The longest pause between two attempts of the many in the queue, in milliseconds: at first, and
/// when the holder seems to wait for somebody. In between it is a tenth of the time that was waited.
const SHORTEST_QUEUE_PAUSE: u64 = 25;
const LONGEST_QUEUE_PAUSE: u64 = 250;
/// How often the first in the queue tries, in milliseconds: soon, as long as the holder may only be
/// storing something, and later not more often than the others.
const FIRST_PAUSES: Range<u64> = 1..3;
const FIRST_PAUSES_LIMIT: Duration = Duration::from_millis(250);

/// Where things are in a lock file: the stamp, a line end, the holder, a line end.
const STAMP_LENGTH: usize = 32;
const HOLDER_OFFSET: u64 = 33;
const HOLDER_LENGTH: usize = 10;

/// The locks in one directory.
#[derive(Debug)]
pub(super) struct Locks {
    directory: PathBuf,
    limit: Duration,
    /// The queues of the tasks of this process that are in use.
    queues: Mutex<BTreeMap<String, Weak<Semaphore>>>,
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    // Dropped before the next task of this process may try.
    lock: LockFile,
    _turn: OwnedSemaphorePermit,
}

/// Tells whether what was kept about a server has changed since.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Stamp(Vec<u8>);

/// Why a lock is not held.
#[derive(Debug)]
pub(super) enum LockError {
    File(FileError),
    Busy { path: PathBuf, holder: Option<u32> },
}

impl Locks {
    pub(super) fn new(directory: PathBuf, limit: Duration) -> Self {
        Self {
            directory,
            limit,
            queues: Mutex::default(),
        }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Waits for the lock of this name. Dropping the future leaves the queue.
    pub(super) async fn acquire(&self, name: &str) -> Result<Held, LockError> {
        let deadline = Instant::now() + self.limit;
        let path = self.directory.join(format!("{name}.lock"));
        let busy = || LockError::Busy {
            holder: read_holder(&path),
            path: path.clone(),
        };
        let queue = self.queue(name);
        let turn = match timeout_at(deadline, queue.acquire_owned()).await {
            Ok(Ok(turn)) => turn,
            // Nobody closes these.
            Ok(Err(closed)) => {
                let source = io::Error::other(closed);
                return Err(LockError::File(FileError::io("queue for", &path)(source)));
            }
            Err(_elapsed) => return Err(busy()),
        };
        let directory = self.directory.clone();
        blocking(&path, move || prepare_directory(&directory)).await??;
        let next = self.directory.join(format!("{name}.next"));
        let first = LockFile::take(&next, deadline, queue_pauses).await?;
        let first = first.ok_or_else(busy)?;
        let lock = LockFile::take(&path, deadline, first_pauses).await?;
        let lock = lock.ok_or_else(busy)?;
        drop(first);
        let lock = blocking(&path, move || lock.introduced()).await?;
        Ok(Held { lock, _turn: turn })
    }

    /// The stamp of the lock of this name. Takes no lock.
    pub(super) async fn stamp(&self, name: &str) -> Result<Stamp, FileError> {
        let path = self.directory.join(format!("{name}.lock"));
        let read = path.clone();
        blocking(&path, move || match read_at(&read, 0, STAMP_LENGTH) {
            // Before the first stamp, the file is empty there.
            Ok(bytes) if bytes.iter().all(|byte| *byte == 0) => Ok(Stamp::default()),
            Ok(bytes) => Ok(Stamp(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Stamp::default()),
            Err(error) => Err(FileError::opening(&read, error)),
        })
        .await?
    }

    fn queue(&self, name: &str) -> Arc<Semaphore> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(name).and_then(Weak::upgrade) {
            return queue;
        }
        queues.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(Semaphore::new(1));
        queues.insert(name.to_owned(), Arc::downgrade(&queue));
        queue
    }
}

impl Held {
    /// Tells the others that what this lock guards has changed, or may have.
    pub(super) fn change_stamp(&self) -> io::Result<()> {
        self.lock.change_stamp()
    }
}

/// A file that is locked until this is dropped.
#[derive(Debug)]
struct LockFile {
    file: File,
    /// Whether our name is in it.
    introduced: bool,
}

impl LockFile {
    /// Tries to lock a file until the deadline; `pauses` says how long to wait after how long.
    async fn take(
        path: &Path,
        deadline: Instant,
        pauses: impl Fn(Duration) -> Range<u64>,
    ) -> Result<Option<Self>, FileError> {
        let started = Instant::now();
        let mut opened = None;
        loop {
            let (file, path) = (opened.take(), path.to_owned());
            match blocking(&path.clone(), move || attempt(file, &path)).await?? {
                Attempt::Locked(lock) => return Ok(Some(lock)),
                Attempt::Replaced => continue,
                Attempt::Taken(file) => opened = Some(file),
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            let pause = Duration::from_millis(fastrand::u64(pauses(now - started)));
            sleep(pause.min(deadline - now)).await;
        }
    }

    /// Writes who holds the lock, for those who give up waiting. A holder that is still there died;
    /// it may have stored something and not have lived to say so.
    fn introduced(mut self) -> Self {
        let mut holder = [0; HOLDER_LENGTH];
        let known = self.file.read_exact_at(&mut holder, HOLDER_OFFSET);
        let healed = if known.is_ok() && parse_holder(&holder).is_some() {
            self.change_stamp()
        } else {
            Ok(())
        };
        match healed.and_then(|()| self.write_holder(&process::id().to_string())) {
            Ok(()) => self.introduced = true,
            Err(error) => tracing::debug!(%error, "cannot write to a lock file"),
        }
        self
    }

    fn write_holder(&self, holder: &str) -> io::Result<()> {
        let line = format!("{holder:HOLDER_LENGTH$}\n");
        self.file.write_all_at(line.as_bytes(), HOLDER_OFFSET)
    }

    fn change_stamp(&self) -> io::Result<()> {
        // Always of the same length and in one write. Should a reader see parts of two stamps, that
        // is one more difference.
        let line = format!("{:0STAMP_LENGTH$x}\n", fastrand::u128(..));
        self.file.write_all_at(line.as_bytes(), 0)
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if self.introduced
            && let Err(error) = self.write_holder("")
        {
            tracing::debug!(%error, "cannot write to a lock file");
        }
        // Closing is not enough while a child that is being started has the file, too.
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "cannot unlock a lock file");
        }
    }
}

/// How long the many in the queue pause, in milliseconds. At random, so that each has its chance.
fn queue_pauses(waited: Duration) -> Range<u64> {
    let tenth = u64::try_from(waited.as_millis() / 10).unwrap_or(u64::MAX);
    let longest = tenth.clamp(SHORTEST_QUEUE_PAUSE, LONGEST_QUEUE_PAUSE);
    longest / 5..longest
}

fn first_pauses(waited: Duration) -> Range<u64> {
    if waited < FIRST_PAUSES_LIMIT {
        FIRST_PAUSES
    } else {
        queue_pauses(waited)
    }
}

enum Attempt {
    Locked(LockFile),
    Taken(File),
    /// Somebody removed the file, and another one may have its name.
    Replaced,
}

fn attempt(file: Option<File>, path: &Path) -> Result<Attempt, FileError> {
    let file = match file {
        Some(file) => file,
        None => open_lock(path)?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) if is_at(&file, path)? => return Ok(Attempt::Taken(file)),
        Err(TryLockError::WouldBlock) => return Ok(Attempt::Replaced),
        Err(TryLockError::Error(error)) => return Err(FileError::io("lock", path)(error)),
    }
    let lock = LockFile {
        file,
        introduced: false,
    };
    if is_at(&lock.file, path)? {
        Ok(Attempt::Locked(lock))
    } else {
        Ok(Attempt::Replaced)
    }
}

/// Whether a file is still the one of that name: a lock on another one keeps nobody out.
fn is_at(file: &File, path: &Path) -> Result<bool, FileError> {
    let ours = file.metadata().map_err(FileError::io("inspect", path))?;
    match fs::symlink_metadata(path) {
        Ok(theirs) => Ok((ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::io("inspect", path)(error)),
    }
}

fn read_holder(path: &Path) -> Option<u32> {
    parse_holder(&read_at(path, HOLDER_OFFSET, HOLDER_LENGTH).ok()?)
}

fn parse_holder(bytes: &[u8]) -> Option<u32> {
    std::str::from_utf8(bytes).ok()?.trim_end().parse().ok()
}

/// Reads so many bytes of a file; fewer, if it ends before.
fn read_at(path: &Path, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let mut bytes = vec![0; length];
    let n_bytes = file.read_at(&mut bytes, offset)?;
    bytes.truncate(n_bytes);
    Ok(bytes)
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, FileError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| FileError::io("use", path)(error.into()))
}

impl From<FileError> for LockError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Stamp({})", String::from_utf8_lossy(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{first_pauses, queue_pauses};

    #[test]
    fn who_waits_longer_tries_less_often() {
        for (waited, first, queue) in [
            (0, 1..3, 5..25),
            (249, 1..3, 5..25),
            (250, 5..25, 5..25),
            (1_000, 20..100, 20..100),
            (2_500, 50..250, 50..250),
            (120_000, 50..250, 50..250),
        ] {
            let waited = Duration::from_millis(waited);
            assert_eq!(first_pauses(waited), first, "{waited:?}");
            assert_eq!(queue_pauses(waited), queue, "{waited:?}");
        }
    }
}
