//! What is written down of a call, before it has a place in the chain.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::hash::{AuditHash, AuditHead};

/// What was done, by whom, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// When it ended.
    pub at: SystemTime,
    /// Who did it.
    pub principal: Option<String>,
    /// The program that they used, by its own words.
    pub client: Option<String>,
    /// What was asked for: `tools/call`, `resources/read` and so on.
    pub method: String,
    /// Of which server.
    pub server: Option<String>,
    /// The tool, resource or prompt.
    pub name: Option<String>,
    /// What came of it.
    pub outcome: AuditOutcome,
    /// The code of the error, where there was one.
    pub code: Option<i64>,
    /// How long it took.
    pub took: Duration,
    /// The size of what came back.
    pub bytes: u64,
    /// What it was done with, as JSON; only where that is asked for.
    pub arguments: Option<String>,
    /// What happened to the log itself. Verifying believes this and nothing else of an entry, so it
    /// never comes from a client.
    pub event: Option<AuditEvent>,
    /// How many this stands for, where it is one line for several; see [`AuditLog::write_limited`].
    ///
    /// [`AuditLog::write_limited`]: super::AuditLog::write_limited
    pub times: Option<u64>,
}

/// What happens to a log itself, and would otherwise look like somebody's deed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AuditEvent {
    /// A program begins to write.
    Started {
        /// Its version.
        version: String,
    },
    /// The oldest lines are removed, because more is not to be kept.
    Retention {
        /// The file that is removed, or the table that it is removed from.
        file: String,
        /// The last line that is removed.
        through: AuditHead,
    },
    /// What stands at the end was no line, and is gone on after.
    Healed {
        /// How long that is.
        bytes: u64,
        /// Its hash.
        sha256: AuditHash,
        /// Whether it was a line that was not written to its end, as a crash leaves it.
        torn: bool,
    },
    /// The log ended before the line that was known to be its last.
    TailLost {
        /// The line that was known.
        expected: AuditHead,
    },
    /// So many entries could not be written, and calls were made nevertheless.
    Lost {
        /// How many.
        entries: u64,
    },
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AuditOutcome {
    /// It was done.
    Ok,
    /// The tool said that it failed.
    ToolError,
    /// The server or the way to it failed.
    Error,
    /// A rule forbade it; nothing was done.
    Denied,
    /// A limit was reached; nothing was done.
    Limited,
    /// The client gave it up.
    Cancelled,
    /// The server wants to know something first, and the call will come again.
    AsksForInput,
}

impl AuditEntry {
    /// Something that has just been done.
    pub fn now(method: impl Into<String>, outcome: AuditOutcome) -> Self {
        Self {
            at: SystemTime::now(),
            principal: None,
            client: None,
            method: method.into(),
            server: None,
            name: None,
            outcome,
            code: None,
            took: Duration::ZERO,
            bytes: 0,
            arguments: None,
            event: None,
            times: None,
        }
    }

    /// Something that has just happened to the log itself.
    pub fn of_log(event: AuditEvent) -> Self {
        Self {
            event: Some(event),
            ..Self::now("audit", AuditOutcome::Ok)
        }
    }
}

impl AuditOutcome {
    /// The word that is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool-error",
            Self::Error => "error",
            Self::Denied => "denied",
            Self::Limited => "limited",
            Self::Cancelled => "cancelled",
            Self::AsksForInput => "asks-for-input",
        }
    }
}
