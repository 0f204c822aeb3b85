//! Counts how often each tool was called and when it was last, for all processes of a user.
//!
//! A call costs a moment under a lock that is held by nobody for long. What was counted waits in
//! memory, bounded, until one thread adds it to the file of all processes: some seconds after the
//! first call, when somebody calls [`UsageLog::flush`], and when the last handle is gone. A file that
//! cannot be written harms no call, and what waits is tried again.
//!
//! Names of servers and tools, numbers and times are all that is kept. Arguments, results and who
//! called are not, the file is for its owner only, and nothing here sends it anywhere.
//!
//! Servers are known by the names that they are configured under: whoever changes a server still
//! uses its tools, and two servers of one name in two directories count as one.

mod counter;
mod file;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use cocode_core::{ServerName, ToolName};

pub use file::{ToolUsage, Usage, UsageError};

use counter::Counter;

/// Tools that are remembered; of more, those that were called last.
pub const MAX_COUNTED_TOOLS: usize = 5_000;
/// Bytes of the file.
pub const MAX_USAGE_BYTES: u64 = 4 * 1024 * 1024;
/// Tools whose calls wait to be written; those of more are not counted.
const MAX_WAITING_TOOLS: usize = 4_096;
/// Tools with longer names are not counted.
const MAX_TOOL_NAME_BYTES: usize = 256;
/// How long calls wait for others, to be written with them.
const WRITTEN_AFTER: Duration = Duration::from_secs(5);
/// The thread reads and writes a small file.
const STACK_BYTES: usize = 256 * 1024;

/// Where calls are counted. Cloning shares it.
#[derive(Clone, Debug)]
pub struct UsageLog {
    shared: Option<Arc<Shared>>,
}

struct Shared {
    directory: PathBuf,
    counter: Arc<Counter>,
    /// Whether there is a thread that writes; not known before the first call.
    writes: OnceLock<bool>,
}

impl UsageLog {
    /// Counts in this directory, which is made when there is something to write.
    pub fn open(directory: impl Into<PathBuf>) -> Self {
        let shared = Shared {
            directory: directory.into(),
            counter: Arc::default(),
            writes: OnceLock::new(),
        };
        Self {
            shared: Some(Arc::new(shared)),
        }
    }

    /// Counts nothing.
    pub fn off() -> Self {
        Self { shared: None }
    }

    /// Whether nothing is counted.
    pub fn is_off(&self) -> bool {
        self.shared.is_none()
    }

    /// Counts a call. Waits for nobody.
    pub fn count(&self, server: &ServerName, tool: &ToolName) {
        let Some(shared) = &self.shared else { return };
        let name = tool.as_str();
        let is_odd = name.len() > MAX_TOOL_NAME_BYTES || name.chars().any(char::is_control);
        if !is_odd && shared.is_written() {
            shared.counter.count(server, tool, SystemTime::now());
        }
    }

    /// Waits until everything is written that was counted before, and says whether it was. Blocks,
    /// at most until the deadline.
    pub fn flush(&self, deadline: Instant) -> bool {
        let shared = self.shared.as_ref();
        shared.is_none_or(|shared| shared.counter.flush(deadline))
    }
}

impl Shared {
    /// Whether anybody writes what is counted. Starts the thread that does.
    fn is_written(&self) -> bool {
        *self.writes.get_or_init(|| {
            let (counter, directory) = (Arc::clone(&self.counter), self.directory.clone());
            let started = thread::Builder::new()
                .name("usage".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || write(&counter, &directory));
            if let Err(error) = &started {
                tracing::warn!(%error, "calls of tools cannot be counted");
            }
            started.is_ok()
        })
    }
}

/// Writes what is counted, until nothing more comes.
fn write(counter: &Counter, directory: &Path) {
    let mut has_warned = false;
    while let Some(batch) = counter.next(WRITTEN_AFTER) {
        let added = file::add(directory, &batch.counts);
        if let Err(error) = &added
            && !std::mem::replace(&mut has_warned, true)
        {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(%error, ?cause, "calls of tools could not be counted");
        }
        counter.done(&batch, added.is_ok());
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("UsageLog");
        debug
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.counter.close();
    }
}

#[cfg(test)]
#[path = "usage_tests.rs"]
mod tests;
