//! The audit log in files: lines of JSON that are only ever appended to, files that are put aside when
//! they are full, and the oldest of them removed when there are too many.
//!
//! Several processes may write: whoever appends holds a lock, and reads where the others have come to if
//! the file is not as it left it. The lock is taken for all entries that wait at that time, so its cost is
//! shared by them.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use super::entry::{AuditEntry, AuditEvent};
use super::files::{Directory, Full, Noted, each_line, first_line, io_error, note_head};
use super::hash::AuditHead;
use super::line::AuditLine;
use super::report::{Finding, Place, VerifyReport};
use super::tail::{Tail, last_lines};
use super::verifier::Verifier;
use super::{AuditError, AuditLedger};
use crate::Work;
use crate::private::{self, Lock, Opening};

/// Full files that can be kept.
const MAX_FULL_FILES: usize = 512;
/// A file goes on for this part of the age that entries may have.
const PART_OF_AGE: u32 = 16;
/// Lines that can be asked for at once.
const MAX_RECENT: usize = 1_000;

/// How a log is kept in files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLedgerOptions {
    /// Where; the directory is its owner's alone.
    pub directory: PathBuf,
    /// A file that would be larger is put aside, and a new one begun.
    pub max_file_bytes: u64,
    /// Full files that are kept; with more, the oldest are removed.
    pub max_full_files: usize,
    /// Files whose entries are all older are removed when the next one is begun, at the latest when a
    /// sixteenth of this time has passed.
    pub max_age: Option<Duration>,
    /// Whether what is written is brought to the disk as soon as possible, so that it is there after a
    /// loss of power, too, but for the last moment.
    pub is_durable: bool,
}

/// Verifies the log in a directory, also a copy that belongs to somebody else, and whether `expected` is
/// one of its lines.
pub async fn verify_directory(
    directory: impl Into<PathBuf>,
    expected: Option<AuditHead>,
) -> Result<VerifyReport, AuditError> {
    let ledger = FileLedger::new(FileLedgerOptions::new(directory));
    ledger.verify(expected).await
}

/// Keeps a log in files. Clones are the same one.
#[derive(Clone, Debug)]
pub struct FileLedger {
    options: Arc<FileLedgerOptions>,
    directory: Directory,
    /// The file as this process left it.
    known: Arc<Mutex<Option<Known>>>,
}

/// The file that is written to, and where the chain has come to.
#[derive(Debug)]
struct Known {
    file: File,
    head_file: File,
    inode: (u64, u64),
    length: u64,
    /// Whether the end of a line is missing at its end.
    is_unfinished: bool,
    head: AuditHead,
    /// Its first line, once that was read.
    first: Option<AuditLine>,
}

/// What is to be written.
struct Batch {
    text: String,
    head: AuditHead,
}

impl FileLedgerOptions {
    /// As it is usual: 64 MiB in a file, 16 full files, and durable.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            max_file_bytes: 64 * 1024 * 1024,
            max_full_files: 16,
            max_age: None,
            is_durable: true,
        }
    }
}

impl FileLedger {
    /// Keeps a log as the options say. Nothing is made before the first entry.
    pub fn new(options: FileLedgerOptions) -> Self {
        Self {
            directory: Directory::new(options.directory.clone()),
            options: Arc::new(options),
            known: Arc::default(),
        }
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    fn append_now(&self, entries: &[AuditEntry]) -> Result<(), AuditError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        private::prepare_directory(self.directory.path())?;
        // Let go of when it is dropped.
        let _lock = Lock::take(&self.directory.lock())?;
        // Whatever fails on the way, the next one looks at the files first.
        let left = known.take();
        let (mut current, events) = self.current(left)?;
        let is_whole = events.is_empty() && !current.is_unfinished;
        let healing = events.into_iter().map(AuditEntry::of_log);
        let mut all: Vec<AuditEntry> = healing.collect();
        all.extend_from_slice(entries);
        let mut batch = Batch::after(current.head, &all);
        let mut removed = Vec::new();
        let length = current.length + batch.text.len() as u64;
        let is_full = length > self.options.max_file_bytes || self.has_aged(&mut current)?;
        // What is said about a file stands in it.
        if is_whole && current.length > 0 && is_full {
            (current, removed) = self.rotate(current)?;
            if let Some(retention) = self.retention(&removed)? {
                all.insert(0, AuditEntry::of_log(retention));
                batch = Batch::after(current.head, &all);
            }
        }
        self.write(&mut current, &batch)?;
        *known = Some(current);
        for path in removed {
            // It is tried again with the next file that is full.
            if let Err(error) = fs::remove_file(&path) {
                let path = path.display();
                tracing::warn!(%path, %error, "cannot remove an old file of the audit log");
            }
        }
        Ok(())
    }

    /// The file to write to and where the chain has come to, and what has to be said before anything
    /// else is written.
    fn current(&self, left: Option<Known>) -> Result<(Known, Vec<AuditEvent>), AuditError> {
        let path = self.directory.current();
        if let Some(left) = left
            && let Ok(metadata) = fs::symlink_metadata(&path)
            && left.inode == (metadata.dev(), metadata.ino())
            && left.length == metadata.len()
        {
            return Ok((left, Vec::new()));
        }
        let file = private::open(&path, Opening::Write)?;
        let metadata = file.metadata().map_err(io_error("inspect", &path))?;
        let length = metadata.len();
        if length == 0 && self.options.is_durable {
            private::sync_directory(self.directory.path())?;
        }
        let tail = Tail::read(&file, length).map_err(io_error("read", &path))?;
        let (head, rest, is_unfinished) = match tail {
            Tail::Empty => (self.head_of_full()?, None, false),
            Tail::Line {
                head,
                rest,
                is_unfinished,
            } => (head, rest, is_unfinished),
            Tail::Odd {
                rest,
                is_unfinished,
            } => (self.head_of_full()?, Some(rest), is_unfinished),
            Tail::Unreadable => return Err(AuditError::Unreadable { path }),
        };
        let lost = match self.directory.noted()? {
            Noted::Head(noted) if !has(head, noted) => {
                Some(AuditEvent::TailLost { expected: noted })
            }
            Noted::Head(_) | Noted::Nothing | Noted::Unreadable => None,
        };
        let known = Known {
            head_file: private::open(&self.directory.head(), Opening::Write)?,
            inode: (metadata.dev(), metadata.ino()),
            file,
            length,
            is_unfinished,
            head,
            first: None,
        };
        // What explains odd bytes has to follow them.
        Ok((known, rest.into_iter().chain(lost).collect()))
    }

    /// Where the chain had come to when the newest full file was put aside.
    fn head_of_full(&self) -> Result<AuditHead, AuditError> {
        let Some(newest) = self.directory.full()?.pop() else {
            return Ok(AuditHead::START);
        };
        let path = self.directory.at(&newest);
        let file = private::open(&path, Opening::Read)?;
        let length = file.metadata().map_err(io_error("inspect", &path))?.len();
        match Tail::read(&file, length).map_err(io_error("read", &path))? {
            Tail::Line { head, .. } => Ok(head),
            Tail::Empty | Tail::Odd { .. } | Tail::Unreadable => {
                Err(AuditError::Unreadable { path })
            }
        }
    }

    /// Whether the first line of a file is so old that another file is to be begun.
    fn has_aged(&self, current: &mut Known) -> Result<bool, AuditError> {
        let Some(max_age) = self.options.max_age else {
            return Ok(false);
        };
        if current.first.is_none() && current.length > 0 {
            let first = first_line(&current.file);
            current.first = first.map_err(io_error("read", &self.directory.current()))?;
        }
        let before = SystemTime::now().checked_sub(max_age / PART_OF_AGE);
        let first = current.first.as_ref().zip(before);
        Ok(first.is_some_and(|(first, before)| first.is_before(before)))
    }

    /// Number of full files with only expired entries. The newest file always stays.
    fn n_expired(&self, files: &[Full]) -> Result<usize, AuditError> {
        let max_age = self.options.max_age;
        let Some(before) = max_age.and_then(|age| SystemTime::now().checked_sub(age)) else {
            return Ok(0);
        };
        let mut n_expired = 0;
        for file in files.iter().take(files.len().saturating_sub(1)) {
            let path = self.directory.at(file);
            let opened = private::open(&path, Opening::Read)?;
            let length = opened.metadata().map(|metadata| metadata.len());
            let last = length.and_then(|length| last_lines(&opened, length, 1));
            let last = last.map_err(io_error("read", &path))?;
            if !last.first().is_some_and(|line| line.is_before(before)) {
                break;
            }
            n_expired += 1;
        }
        Ok(n_expired)
    }

    /// Puts the file aside and begins another. Says which files are too many.
    fn rotate(&self, full: Known) -> Result<(Known, Vec<PathBuf>), AuditError> {
        let path = self.directory.current();
        let first = first_line(&full.file).map_err(io_error("read", &path))?;
        // Should the first line not be what it was, the last one gives the file its place as well.
        let first = first.map_or(full.head.seq, |line| line.head().seq);
        let aside = self.directory.at(&self.directory.free_name(first));
        if self.options.is_durable {
            full.file.sync_data().map_err(io_error("write", &path))?;
        }
        fs::rename(&path, &aside).map_err(io_error("rename", &path))?;
        let file = private::open(&path, Opening::Write)?;
        private::sync_directory(self.directory.path())?;
        let metadata = file.metadata().map_err(io_error("inspect", &path))?;
        let known = Known {
            file,
            inode: (metadata.dev(), metadata.ino()),
            length: 0,
            first: None,
            ..full
        };
        let files = self.directory.full()?;
        let kept = self.options.max_full_files.clamp(1, MAX_FULL_FILES);
        let n_removed = files.len().saturating_sub(kept);
        let n_removed = n_removed.max(self.n_expired(&files)?);
        let removed = files.iter().take(n_removed);
        let removed = removed.map(|file| self.directory.at(file)).collect();
        Ok((known, removed))
    }

    /// What is to be said about files that are removed: which line is the last of them, by the words of
    /// the first one that stays.
    fn retention(&self, removed: &[PathBuf]) -> Result<Option<AuditEvent>, AuditError> {
        let Some(last) = removed.last() else {
            return Ok(None);
        };
        let files = self.directory.full()?;
        let oldest = files.get(removed.len());
        let oldest =
            oldest.map_or_else(|| self.directory.current(), |full| self.directory.at(full));
        let file = private::open(&oldest, Opening::Read)?;
        let line = first_line(&file).map_err(io_error("read", &oldest))?;
        let through = line.map_or(AuditHead::START, |line| AuditHead {
            seq: line.head().seq.saturating_sub(1),
            hash: line.previous(),
        });
        let file = last.file_name().unwrap_or_default();
        let file = file.to_string_lossy().into_owned();
        Ok(Some(AuditEvent::Retention { file, through }))
    }

    /// Writes all of it or nothing.
    fn write(&self, current: &mut Known, batch: &Batch) -> Result<(), AuditError> {
        let path = self.directory.current();
        let length = current.length;
        let line_end = if current.is_unfinished { "\n" } else { "" };
        let text = format!("{line_end}{}", batch.text);
        let file = &mut current.file;
        let written = file
            .seek(SeekFrom::Start(length))
            .and_then(|_place| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            // Nobody else has written meanwhile, so this takes back nothing but what was just tried.
            if let Err(error) = file.set_len(length) {
                tracing::warn!(%error, "a part of an entry stays in the audit log and will be explained");
            }
            return Err(io_error("write", &path)(error));
        }
        current.length += text.len() as u64;
        current.is_unfinished = false;
        current.head = batch.head;
        // The lines are written; what is noted beside them may be behind.
        if let Err(error) = note_head(&current.head_file, current.head) {
            tracing::warn!(%error, "cannot note the last entry of the audit log");
        }
        Ok(())
    }

    /// Gets what is written to the disk, without holding up who writes more.
    fn sync_now(&self) -> Result<(), AuditError> {
        if !self.options.is_durable {
            return Ok(());
        }
        let path = self.directory.current();
        let file = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let file = known.as_ref().map(|known| known.file.try_clone());
            file.transpose().map_err(io_error("open", &path))?
        };
        match file {
            Some(file) => file.sync_data().map_err(io_error("write", &path)),
            None => Ok(()),
        }
    }

    fn recent_now(&self, limit: usize) -> Result<Vec<AuditLine>, AuditError> {
        let limit = limit.min(MAX_RECENT);
        let mut files: Vec<PathBuf> = self
            .directory
            .full()?
            .iter()
            .map(|full| self.directory.at(full))
            .collect();
        files.push(self.directory.current());
        let mut lines = Vec::new();
        for path in files.iter().rev() {
            if lines.len() >= limit {
                break;
            }
            let Some(file) = private::open_if_there(path, Opening::Inspect)? else {
                continue;
            };
            let failed = io_error("read", path);
            let read = file
                .metadata()
                .and_then(|metadata| last_lines(&file, metadata.len(), limit - lines.len()));
            lines.extend(read.map_err(failed)?);
        }
        Ok(lines)
    }

    fn verify_now(&self, expected: Option<AuditHead>) -> Result<VerifyReport, AuditError> {
        if !self.directory.path().exists() {
            return Ok(Verifier::new(expected).finish());
        }
        let (files, noted) = self.snapshot()?;
        let noted_head = match noted {
            Noted::Head(head) => Some(head),
            Noted::Nothing | Noted::Unreadable => None,
        };
        let mut verifier = Verifier::new(expected.into_iter().chain(noted_head));
        for (path, file, length) in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            verifier.file(name);
            let take = |line: &[u8], has_end| {
                if has_end {
                    verifier.line(line);
                } else {
                    verifier.unfinished_line(line);
                }
            };
            each_line(&file, length, take).map_err(io_error("read", &path))?;
        }
        if noted == Noted::Unreadable {
            let file = self.directory.head();
            let file = file.file_name().unwrap_or_default().to_string_lossy();
            let place = Place {
                file: file.into_owned(),
                line: 1,
            };
            verifier.add_problem(Finding::BadHead { place });
        }
        Ok(verifier.finish())
    }

    /// All files as they are at one moment, opened, so that they can be read while others go on writing.
    #[expect(clippy::type_complexity, reason = "it is taken apart where it is made")]
    fn snapshot(&self) -> Result<(Vec<(PathBuf, File, u64)>, Noted), AuditError> {
        // Let go of when it is dropped. A copy that nobody writes to has none.
        let _lock = Lock::take_if_there(&self.directory.lock())?;
        let mut files = Vec::new();
        let full = self.directory.full()?;
        let paths = full.iter().map(|full| self.directory.at(full));
        for path in paths.chain([self.directory.current()]) {
            let Some(file) = private::open_if_there(&path, Opening::Inspect)? else {
                continue;
            };
            let length = file.metadata().map_err(io_error("inspect", &path))?.len();
            files.push((path, file, length));
        }
        Ok((files, self.directory.noted()?))
    }

    /// Does on a thread of its own what waits for the disk or for another process. Dropping the future
    /// leaves it to finish by itself.
    async fn blocking<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Self) -> Result<T, AuditError> + Send + 'static,
    ) -> Result<T, AuditError> {
        let ledger = self.clone();
        tokio::task::spawn_blocking(move || work(&ledger))
            .await
            .unwrap_or_else(|error| {
                Err(io_error(action, self.directory.path())(io::Error::other(
                    error,
                )))
            })
    }
}

/// Whether a chain that has come to `head` can have the line that was noted. A crash may leave a note
/// behind the chain, but not before it.
fn has(head: AuditHead, noted: AuditHead) -> bool {
    match noted.seq.cmp(&head.seq) {
        Ordering::Less => true,
        Ordering::Equal => noted.hash == head.hash,
        Ordering::Greater => false,
    }
}

impl Batch {
    fn after(mut head: AuditHead, entries: &[AuditEntry]) -> Self {
        let mut text = String::new();
        for entry in entries {
            let line = AuditLine::after(head, entry);
            text.extend([line.text(), "\n"]);
            head = line.head();
        }
        Self { text, head }
    }
}

impl AuditLedger for FileLedger {
    fn append<'a>(&'a self, entries: &'a [AuditEntry]) -> Work<'a, Result<(), AuditError>> {
        let entries = entries.to_vec();
        Box::pin(self.blocking("write", move |ledger| ledger.append_now(&entries)))
    }

    fn sync(&self) -> Work<'_, Result<(), AuditError>> {
        Box::pin(self.blocking("write", Self::sync_now))
    }

    fn recent(&self, limit: usize) -> Work<'_, Result<Vec<AuditLine>, AuditError>> {
        Box::pin(self.blocking("read", move |ledger| ledger.recent_now(limit)))
    }

    fn verify(&self, expected: Option<AuditHead>) -> Work<'_, Result<VerifyReport, AuditError>> {
        Box::pin(self.blocking("read", move |ledger| ledger.verify_now(expected)))
    }
}
