//! The file with the calls of all processes: read by whoever wants to know, and changed by one
//! process at a time.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::counter::{Count, Counts};
use super::{MAX_COUNTED_TOOLS, MAX_USAGE_BYTES};
use crate::private_files::{self, FILE_MODE, FileError};

/// The file.
const NAME: &str = "calls.json";
/// Where a file is put that cannot be understood.
const DAMAGED: &str = "calls.json.damaged";
/// Held by whoever changes the file. Never removed: two processes could else hold two of them.
const LOCK: &str = ".lock";
/// The form of the file.
const VERSION: u32 = 1;

/// How often which tool was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Since when calls are counted; nothing if none was yet.
    pub since: Option<SystemTime>,
    /// Calls by server and tool.
    pub servers: BTreeMap<String, BTreeMap<String, ToolUsage>>,
}

/// How often one tool was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolUsage {
    /// How often.
    pub calls: u64,
    /// When it was last, to the second.
    pub last: SystemTime,
}

/// Why nobody knows how often tools were called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// The file is not what it should be.
    #[error("{} is damaged", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, if it could be read.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// Another version of the program wrote it, which is newer.
    #[error("{} is of a newer version of cocode", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
    },
    /// The calls have no form on disk.
    #[error("the calls cannot be written down")]
    Unwritable(#[source] serde_json::Error),
    /// The system refuses.
    #[error(transparent)]
    File(#[from] FileError),
}

#[derive(Deserialize)]
struct Version {
    version: u32,
}

#[derive(Deserialize, Serialize)]
struct Wire {
    version: u32,
    /// Seconds since 1970, here and below.
    since: u64,
    servers: BTreeMap<String, BTreeMap<String, ToolWire>>,
}

#[derive(Deserialize, Serialize)]
struct ToolWire {
    calls: u64,
    last: u64,
}

impl Usage {
    /// What was counted in this directory by now. Blocks.
    pub fn read(directory: &Path) -> Result<Self, UsageError> {
        let path = directory.join(NAME);
        let damaged = |source| UsageError::Damaged {
            path: path.clone(),
            source,
        };
        match path.symlink_metadata() {
            // None of ours.
            Ok(found) if !found.is_file() || found.len() > MAX_USAGE_BYTES => {
                return Err(damaged(None));
            }
            Ok(_) | Err(_) => {}
        }
        let Some(bytes) = private_files::read(&path, MAX_USAGE_BYTES)? else {
            return Ok(Self::default());
        };
        let is_damaged = |error| damaged(Some(error));
        let Version { version } = serde_json::from_slice(&bytes).map_err(is_damaged)?;
        if version > VERSION {
            return Err(UsageError::Newer { path });
        }
        let wire: Wire = serde_json::from_slice(&bytes).map_err(is_damaged)?;
        Ok(Self::from_wire(wire))
    }

    /// How often a tool was called, if it was.
    pub fn tool(&self, server: &str, tool: &str) -> Option<ToolUsage> {
        self.servers.get(server)?.get(tool).copied()
    }

    /// All calls of a server's tools.
    pub fn calls_of(&self, server: &str) -> u64 {
        let tools = self.servers.get(server).into_iter().flatten();
        tools.map(|(_, usage)| usage.calls).sum()
    }

    fn add(&mut self, counts: &Counts) {
        for (server, tools) in counts {
            let known = self.servers.entry(server.as_str().to_owned()).or_default();
            for (tool, Count { calls, last }) in tools {
                let usage = known.entry(tool.as_str().to_owned());
                let usage = usage.or_insert(ToolUsage {
                    calls: 0,
                    last: *last,
                });
                usage.calls = usage.calls.saturating_add(*calls);
                usage.last = usage.last.max(*last);
                self.since = Some(self.since.map_or(*last, |since| since.min(*last)));
            }
        }
    }

    /// Forgets all but so many tools: those that were called last stay.
    fn keep(&mut self, most: usize) {
        let all = self.servers.iter().flat_map(|(server, tools)| {
            let tools = tools.iter();
            tools.map(move |(tool, usage)| (usage.last, server.clone(), tool.clone()))
        });
        let mut all: Vec<(SystemTime, String, String)> = all.collect();
        let excess = all.len().saturating_sub(most);
        if excess == 0 {
            return;
        }
        all.sort_unstable();
        for (_, server, tool) in all.drain(..excess) {
            if let Some(tools) = self.servers.get_mut(&server) {
                tools.remove(&tool);
            }
        }
        self.servers.retain(|_, tools| !tools.is_empty());
    }

    fn from_wire(wire: Wire) -> Self {
        let Wire {
            version: _,
            since,
            servers,
        } = wire;
        let usage = |(tool, ToolWire { calls, last })| {
            let last = time(last);
            (tool, ToolUsage { calls, last })
        };
        let servers = servers.into_iter();
        let servers =
            servers.map(|(server, tools)| (server, tools.into_iter().map(usage).collect()));
        Self {
            since: Some(time(since)),
            servers: servers.collect(),
        }
    }

    fn to_bytes(&self) -> Result<Vec<u8>, UsageError> {
        let wire = |(tool, usage): (&String, &ToolUsage)| {
            let (calls, last) = (usage.calls, seconds(usage.last));
            (tool.clone(), ToolWire { calls, last })
        };
        let servers = self.servers.iter();
        let servers =
            servers.map(|(server, tools)| (server.clone(), tools.iter().map(wire).collect()));
        let wire = Wire {
            version: VERSION,
            since: seconds(self.since.unwrap_or(SystemTime::UNIX_EPOCH)),
            servers: servers.collect(),
        };
        let mut bytes = serde_json::to_vec(&wire).map_err(UsageError::Unwritable)?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Adds calls to the file. Waits for other processes that do so. A file that is damaged is put
/// aside, and one of a newer version is left alone.
pub(super) fn add(directory: &Path, counts: &Counts) -> Result<(), UsageError> {
    private_files::make_directory(directory)?;
    let path = directory.join(LOCK);
    let _lock = lock(&path).map_err(FileError::of("lock", &path))?;
    let mut usage = match Usage::read(directory) {
        Ok(usage) => usage,
        Err(UsageError::Damaged { path, source }) => {
            tracing::warn!(
                path = %path.display(),
                reason = ?source.map(|error| error.to_string()),
                "the calls of tools that were counted cannot be read: they are put aside"
            );
            let aside = directory.join(DAMAGED);
            fs::rename(&path, &aside).map_err(FileError::of("put aside", &path))?;
            Usage::default()
        }
        Err(UsageError::Newer { path }) => {
            tracing::debug!(path = %path.display(), "a newer version counts calls here");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    usage.add(counts);
    let mut most = MAX_COUNTED_TOOLS;
    let bytes = loop {
        usage.keep(most);
        let bytes = usage.to_bytes()?;
        if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_USAGE_BYTES) || most == 0 {
            break bytes;
        }
        most /= 2;
    };
    private_files::replace(directory, NAME, &bytes)?;
    Ok(())
}

fn lock(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)?;
    file.lock()?;
    Ok(file)
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

fn time(seconds: u64) -> SystemTime {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    time.unwrap_or(SystemTime::UNIX_EPOCH)
}
