//! What each server wrote and what became of it, in one rotated file for each.
//!
//! Lines come from callbacks that must not wait, so they are put in a bounded queue, and one thread
//! writes them for all servers. If it cannot keep up, or the disk is full, lines are dropped, and
//! the log says how many. The thread is started by the first line and ends, with everything
//! written, when the last handle is gone; a program that is about to exit calls
//! [`ServerLogs::flush`] before.
//!
//! A line of a log is a time in UTC, a source and a text, such as
//! `2026-11-16T03:04:05.123Z stderr listening`. Nothing in it can steer a terminal. What servers
//! wrote is kept as they wrote it, secrets included, which is why nobody but the owner can read
//! the files; lines of [`LogSource::State`] are ours, and never hold a secret.
//!
//! Any number of processes may write to one log. Each line is one write to the end of the file, and
//! only one process at a time rotates.

mod files;
mod hearing;
mod line;
mod queue;
mod read;
mod writer;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

pub use hearing::{LOG_LINES_KEPT, LoggedLine, LoggedLines};
pub use line::LogRecord;
pub use read::{FOLLOW_INTERVAL, LogFollower};

use crate::private_files::FileError;
use files::LogFiles;
use hearing::Hearing;
use queue::{Queue, Record};

/// The longest text of one record; what is longer is cut.
pub const MAX_LOG_RECORD_BYTES: usize = 16 * 1024;
/// Records that wait to be written.
pub const MAX_QUEUED_LOG_RECORDS: usize = 4096;
/// Bytes of all records that wait to be written.
pub const MAX_QUEUED_LOG_BYTES: usize = 4 * 1024 * 1024;

/// Where a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogSource<'a> {
    /// The server wrote it to stderr.
    Stderr,
    /// The server sent it as a log message, of the level that it says.
    Message(&'a str),
    /// We say what became of the server. Never holds a secret.
    State,
}

/// How much is kept of each server's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// A file that has so many bytes is put aside.
    pub max_bytes_per_file: u64,
    /// How many files, the current one included.
    pub files: u32,
    /// Files that were not written for so long are removed, and a file is put aside in time, so
    /// that lines do not stay much longer.
    pub max_age: Duration,
}

impl Default for LogLimits {
    fn default() -> Self {
        Self::of(10_000_000, Duration::from_hours(14 * 24))
    }
}

impl LogLimits {
    /// Three files that together have about so many bytes.
    pub fn of(max_bytes: u64, max_age: Duration) -> Self {
        Self {
            max_bytes_per_file: max_bytes.div_ceil(3),
            files: 3,
            max_age,
        }
    }

    fn keep_nothing(&self) -> bool {
        self.max_bytes_per_file == 0 || self.files == 0 || self.max_age.is_zero()
    }
}

/// The logs of all servers, in a directory. Cloning shares them.
#[derive(Clone, Debug)]
pub struct ServerLogs {
    shared: Option<Arc<Shared>>,
}

/// The log of one server. Cloning shares it.
#[derive(Clone)]
pub struct ServerLog {
    server: Arc<str>,
    shared: Option<Arc<Shared>>,
}

struct Shared {
    directory: PathBuf,
    limits: LogLimits,
    queue: Arc<Queue>,
    hearing: Hearing,
    /// Whether there is a thread that writes; not known before the first line.
    writes: OnceLock<bool>,
}

impl ServerLogs {
    /// Logs in this directory, which is made when there is something to write. Limits that keep
    /// nothing are the same as [`ServerLogs::off`].
    pub fn open(directory: impl Into<PathBuf>, limits: LogLimits) -> Self {
        if limits.keep_nothing() {
            return Self::off();
        }
        let shared = Shared {
            directory: directory.into(),
            limits,
            queue: Arc::new(Queue::default()),
            hearing: Hearing::default(),
            writes: OnceLock::new(),
        };
        Self {
            shared: Some(Arc::new(shared)),
        }
    }

    /// Logs that are not kept.
    pub fn off() -> Self {
        Self { shared: None }
    }

    /// The log of one server.
    pub fn server(&self, name: &str) -> ServerLog {
        ServerLog {
            server: name.into(),
            shared: self.shared.clone(),
        }
    }

    /// Every line that is logged from now on, by whatever server of this process. Logs that are not
    /// kept are not heard either.
    pub fn listen(&self) -> LoggedLines {
        let shared = self.shared.as_ref();
        shared.map_or_else(LoggedLines::none, |shared| shared.hearing.listen())
    }

    /// Waits until everything is written that was logged before, and says whether it was. Blocks,
    /// at most until the deadline.
    pub fn flush(&self, deadline: Instant) -> bool {
        let shared = self.shared.as_ref();
        shared.is_none_or(|shared| shared.queue.flush(deadline))
    }

    /// The current file of a server's log, whether it exists or not.
    pub fn path(&self, server: &str) -> Option<PathBuf> {
        self.files(server).map(|files| files.current())
    }

    /// The last lines of a server's log, oldest first; nothing if it has none. Blocks.
    pub fn tail(&self, server: &str, lines: usize) -> Result<Option<Vec<String>>, FileError> {
        match self.files(server) {
            Some(files) => read::tail(&files, lines),
            None => Ok(None),
        }
    }

    /// The last lines of a server's log, and then every line that is added. Blocks.
    pub fn follow(&self, server: &str, lines: usize) -> Result<LogFollower, FileError> {
        LogFollower::new(self.files(server), lines)
    }

    /// Removes a server's log, and says how many files it had. Blocks.
    pub fn clear(&self, server: &str) -> Result<usize, FileError> {
        self.files(server).map_or(Ok(0), |files| files.clear())
    }

    fn files(&self, server: &str) -> Option<LogFiles> {
        let shared = self.shared.as_ref()?;
        Some(LogFiles::new(&shared.directory, server))
    }
}

impl ServerLog {
    /// Adds a text. One of several lines makes as many lines. Never waits: what there is no room
    /// for is dropped and counted.
    pub fn line(&self, source: LogSource<'_>, text: &str) {
        let Some(shared) = &self.shared else { return };
        if !shared.is_written() {
            return;
        }
        let record = Record {
            server: Arc::clone(&self.server),
            at: SystemTime::now(),
            source: line::source(source),
            text: line::Text::cut(text),
        };
        shared.hearing.tell(&record);
        shared.queue.push(record);
    }
}

impl fmt::Debug for ServerLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_tuple("ServerLog");
        debug.field(&self.server).finish()
    }
}

impl Shared {
    /// Whether anybody writes what is put in the queue. Starts the thread that does.
    fn is_written(&self) -> bool {
        *self.writes.get_or_init(|| {
            let queue = Arc::clone(&self.queue);
            let (directory, limits) = (self.directory.clone(), self.limits);
            let started = thread::Builder::new()
                .name("server-logs".to_owned())
                .spawn(move || writer::run(&queue, directory, limits));
            if let Err(error) = &started {
                tracing::warn!(%error, "logs of servers cannot be written");
            }
            started.is_ok()
        })
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("ServerLogs");
        debug
            .field("directory", &self.directory)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.queue.close();
    }
}

#[cfg(test)]
#[path = "server_log_tests.rs"]
mod tests;
