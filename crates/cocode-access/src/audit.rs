//! What is written down of calls: entries, the chain of hashes that they become, and what a ledger
//! promises.

mod entry;
mod files;
mod folds;
mod hash;
mod ledger;
mod line;
mod log;
mod report;
mod tail;
mod verifier;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::Work;

pub use entry::{AuditEntry, AuditEvent, AuditOutcome};
pub use hash::{AuditHash, AuditHead, InvalidAuditHash};
pub use ledger::{FileLedger, FileLedgerOptions, verify_directory};
pub use line::{AuditLine, MAX_AUDIT_LINE_BYTES};
pub use log::{
    AuditHealth, AuditLog, AuditSlot, AuditUnavailable, NotBegun, NotWritten, WhenFailing, Writing,
};
pub use report::{Finding, Place, VerifyReport};
pub use verifier::Verifier;

/// Keeps what was written down: lines that follow each other, of all processes and machines that use
/// the ledger. Each line holds the hash of the one before.
pub trait AuditLedger: Send + Sync + fmt::Debug {
    /// Writes entries down in this order, all or none: each as [`AuditLine::after`] makes a line of it,
    /// after the last one of whoever wrote last. What this has returned from is there after a crash of
    /// this process. It has an end by itself; after an error it is tried again with the same entries.
    fn append<'a>(&'a self, entries: &'a [AuditEntry]) -> Work<'a, Result<(), AuditError>>;

    /// Brings what is written to where it survives a loss of power, as far as that is wanted. It has an end
    /// by itself.
    fn sync(&self) -> Work<'_, Result<(), AuditError>> {
        Box::pin(async { Ok(()) })
    }

    /// The last lines, the newest first, and not more than so many.
    fn recent(&self, limit: usize) -> Work<'_, Result<Vec<AuditLine>, AuditError>>;

    /// Looks at all lines, and at whether `expected` is one of them, and says what is wrong.
    fn verify(&self, expected: Option<AuditHead>) -> Work<'_, Result<VerifyReport, AuditError>>;
}

/// Why something was not written down or could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Others could read or exchange the files.
    #[error("{why}")]
    NotPrivate {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Another process does not let go.
    #[error("another process has held `{}` for {} seconds: end it", path.display(), after.as_secs())]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long was waited.
        after: Duration,
    },
    /// Nothing in the newest file can be gone on from.
    #[error(
        "`{}` holds no line that others could follow: look at it with `cocode audit verify`, and move \
         it away to begin a new one", path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// The ledger cannot be used now.
    #[error("the audit log in {place} cannot be {action}: {why}")]
    Unusable {
        /// The directory or database.
        place: String,
        /// What was tried: `read`, `written`.
        action: &'static str,
        /// What the system said.
        why: String,
    },
}
