//! The one thread that writes what waits, for all servers.
//!
//! Files are open only while something is written to them, so that a log that another process
//! rotated or removed is noticed at the next line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use super::LogLimits;
use super::files::{self, Identity, LogFiles, Rotation};
use super::line;
use super::queue::{Batch, Queue};
use crate::private_files::FileError;

/// How often is looked for logs that are too old.
const PURGE_INTERVAL: Duration = Duration::from_hours(1);

/// Writes until nobody logs any more.
pub(super) fn run(queue: &Queue, directory: PathBuf, limits: LogLimits) {
    let mut writer = Writer {
        directory,
        limits,
        failed: BTreeMap::new(),
        purged: None,
    };
    while let Some(batch) = queue.next() {
        writer.write(&batch);
        queue.done(&batch);
        writer.purge();
    }
}

struct Writer {
    directory: PathBuf,
    limits: LogLimits,
    /// Records that could not be written, by server.
    failed: BTreeMap<Arc<str>, u64>,
    purged: Option<Instant>,
}

impl Writer {
    fn write(&mut self, batch: &Batch) {
        let mut lines: BTreeMap<&Arc<str>, Vec<String>> = BTreeMap::new();
        for record in &batch.records {
            let of_server = lines.entry(&record.server).or_default();
            of_server.extend(line::lines(record.at, &record.source, &record.text));
        }
        for (server, count) in &batch.lost {
            let of_server = lines.entry(server).or_default();
            of_server.push(line::lost(SystemTime::now(), *count));
        }
        for (server, lines) in lines {
            self.write_to(server, &lines);
        }
    }

    fn write_to(&mut self, server: &Arc<str>, lines: &[String]) {
        let missing = self.failed.get(server).copied().unwrap_or_default();
        let notice = (missing > 0).then(|| line::lost(SystemTime::now(), missing));
        let files = LogFiles::new(&self.directory, server);
        let mut n_written = 0;
        let outcome = append(
            &files,
            &self.limits,
            notice.iter().chain(lines),
            &mut n_written,
        );
        let Err(error) = outcome else {
            self.failed.remove(server);
            return;
        };
        if missing == 0 {
            tracing::warn!(%server, %error, cause = %error.source, "a log cannot be written");
        }
        // The notice is written first: if it got through, what it told of is told.
        let (told, n_written) = match notice {
            Some(_) => (n_written > 0, n_written.saturating_sub(1)),
            None => (true, n_written),
        };
        let unwritten = lines.len().saturating_sub(n_written);
        let before = if told { 0 } else { missing };
        let count = u64::try_from(unwritten).unwrap_or(u64::MAX);
        self.failed
            .insert(Arc::clone(server), before.saturating_add(count));
    }

    fn purge(&mut self) {
        if self
            .purged
            .is_some_and(|purged| purged.elapsed() < PURGE_INTERVAL)
        {
            return;
        }
        self.purged = Some(Instant::now());
        let purged = files::purge(&self.directory, self.limits.max_age, SystemTime::now());
        if let Err(error) = purged {
            tracing::warn!(%error, cause = %error.source, "old logs cannot be removed");
        }
    }
}

/// Adds lines to the log of one server, and counts them.
fn append<'a>(
    files: &LogFiles,
    limits: &LogLimits,
    lines: impl Iterator<Item = &'a String>,
    n_written: &mut usize,
) -> Result<(), FileError> {
    let path = files.current();
    let mut log = OpenLog::open(files)?;
    let now = SystemTime::now();
    let max_span = limits.max_age / limits.files.max(1);
    let age = files::begun(&log.file).map(|begun| now.duration_since(begun).unwrap_or_default());
    if age.is_some_and(|age| age > max_span) {
        log = log.rotated(files, limits)?;
    }
    for line in lines {
        let length = log
            .file
            .metadata()
            .map_err(FileError::of("inspect", &path))?
            .len();
        let added = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if length > 0 && length.saturating_add(added) > limits.max_bytes_per_file {
            log = log.rotated(files, limits)?;
        }
        let line = if std::mem::take(&mut log.is_broken) {
            &format!("\n{line}")
        } else {
            line
        };
        // One write, so that lines of several processes do not mix.
        log.file
            .write_all(line.as_bytes())
            .map_err(FileError::of("write", &path))?;
        *n_written += 1;
    }
    Ok(())
}

struct OpenLog {
    file: File,
    identity: Identity,
    /// The last line in it has no end.
    is_broken: bool,
}

impl OpenLog {
    fn open(files: &LogFiles) -> Result<Self, FileError> {
        let file = files.open_to_add()?;
        let path = files.current();
        let metadata = file.metadata().map_err(FileError::of("inspect", &path))?;
        let is_broken = files::ends_within_line(&file, metadata.len());
        Ok(Self {
            identity: Identity::of(&metadata),
            is_broken: is_broken.map_err(FileError::of("read", &path))?,
            file,
        })
    }

    /// The next file, or the same one if another process is about to rotate.
    fn rotated(self, files: &LogFiles, limits: &LogLimits) -> Result<Self, FileError> {
        match files.rotate(self.identity, limits.files)? {
            Rotation::Done => Self::open(files),
            Rotation::Busy => Ok(self),
        }
    }
}
