//! The file of the store: made, opened and asked. What goes wrong with it is told here, with the file
//! and what to do.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

use super::hold::Locks;
use super::schema::{self, Unfit};
use super::sqlite_file::{self, FileTrouble, Unusable};
use super::{ConversationId, StoreError};

/// How long to wait for other processes that write: each takes milliseconds, or seconds on a disk that is busy.
const BUSY_LIMIT: Duration = Duration::from_secs(30);
/// An open store.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    /// Who holds what.
    pub(super) locks: Locks,
    /// What the connection is set to.
    safety: Safety,
}

/// What survives what.
///
/// A transaction is in the hands of the system when it is over, so the death of this process by any
/// means loses nothing of it in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Safety {
    /// It is on the disk, and survives a power cut as far as the disk tells the truth. Takes three times as
    /// long as the other on a fast disk (`examples/append_cost.rs`), which is nothing beside a reply.
    PowerCut,
    /// A power cut may take it, and all that followed without [`Safety::PowerCut`]. The file is whole
    /// nevertheless. For what is worth nothing once the process is gone that wrote it, for what the next
    /// record takes along, and for drafts.
    Crash,
}

/// What went wrong, before it is told with the name of the file.
#[derive(Debug)]
pub(super) enum Trouble {
    Sql(rusqlite::Error),
    File(FileTrouble),
    Unfit(Unfit),
    /// Nothing is wrong with the store.
    Told(StoreError),
}

impl Database {
    /// Opens the file, and makes it and its directory where they are missing.
    pub(super) fn open(path: &Path) -> Result<Self, Trouble> {
        let connection = sqlite_file::open(path, BUSY_LIMIT, prepare)?;
        let directory = path.parent().unwrap_or(Path::new("/"));
        let locks = Locks::in_directory(directory.join("locks"));
        Ok(Self::new(connection, locks))
    }

    /// One that is gone with this value.
    pub(super) fn in_memory() -> Result<Self, Trouble> {
        let mut connection = Connection::open_in_memory()?;
        prepare(&mut connection)?;
        Ok(Self::new(connection, Locks::in_memory()))
    }

    fn new(connection: Connection, locks: Locks) -> Self {
        Self {
            connection,
            locks,
            safety: Safety::PowerCut,
        }
    }

    /// Something that reads. It sees one state of the file.
    pub(super) fn read(&mut self) -> Result<Transaction<'_>, Trouble> {
        let behavior = TransactionBehavior::Deferred;
        Ok(self.connection.transaction_with_behavior(behavior)?)
    }

    /// Something that writes, alone among all processes. Whoever looks at locks does it inside, so that
    /// nobody takes a look for a holder.
    pub(super) fn write(&mut self, safety: Safety) -> Result<(Transaction<'_>, &Locks), Trouble> {
        if self.safety != safety {
            let level = match safety {
                Safety::PowerCut => "FULL",
                Safety::Crash => "NORMAL",
            };
            self.connection.pragma_update(None, "synchronous", level)?;
            self.safety = safety;
        }
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        Ok((transaction, &self.locks))
    }

    /// Outside of transactions.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
}

/// Sets up a connection, and the tables where they are missing.
fn prepare(connection: &mut Connection) -> Result<(), Trouble> {
    // Before anything is changed: the file may not be for us.
    if schema::format_of(connection, schema::STEPS)? == 0 {
        // What is removed can be given back to the disk piece by piece. Counts for files without tables,
        // and would be written into others every time.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // Readers and a writer do not wait for each other. An answer comes with it, which is not the same in memory.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_row| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // What is overwritten anyway does not keep the text of what was removed.
    connection.pragma_update_and_check(None, "secure_delete", "FAST", |_row| Ok(()))?;
    // A log that has grown large is cut when it begins anew.
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_LIMIT, |_row| Ok(()))?;
    schema::migrate(connection, schema::STEPS)
}

/// What is left of a log that has grown larger, in bytes.
const LOG_LIMIT: i64 = 8 * 1024 * 1024;

/// The key of a conversation in the tables.
pub(super) fn key_of(connection: &Connection, id: &ConversationId) -> Result<i64, Trouble> {
    let found = connection.query_row(
        "SELECT key FROM conversations WHERE id = ?1",
        [id.as_str()],
        |row| row.get(0),
    );
    match found {
        Err(rusqlite::Error::QueryReturnedNoRows) => Err(StoreError::Unknown(id.clone()).into()),
        other => Ok(other?),
    }
}

impl Trouble {
    /// For people.
    pub(super) fn told(self, place: &str) -> StoreError {
        let why = match self {
            Self::Told(error) => return error,
            Self::Unfit(Unfit::Newer { found, known }) => {
                let place = place.to_owned();
                return StoreError::Newer {
                    place,
                    found,
                    known,
                };
            }
            Self::Unfit(Unfit::Foreign) => {
                "it is a database of another program; give cocode another place".to_owned()
            }
            Self::File(trouble) => trouble.to_string(),
            Self::Sql(error) => why(&error, place),
        };
        let place = place.to_owned();
        StoreError::Broken { place, why }
    }
}

/// What an error of SQLite means, and what to do.
fn why(error: &rusqlite::Error, place: &str) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => format!(
            "the file is damaged ({error}); move it away together with {place}-wal and {place}-shm and a new one is made, `sqlite3 {place} .recover` may save what was in it"
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => format!(
            "other processes have kept it busy for {} s; try again",
            BUSY_LIMIT.as_secs()
        ),
        Some(ErrorCode::DiskFull) => "the disk is full; make room and try again".to_owned(),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            format!("{error}; see who may write the file and its directory")
        }
        _ => error.to_string(),
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<FileTrouble> for Trouble {
    fn from(trouble: FileTrouble) -> Self {
        Self::File(trouble)
    }
}

impl Unusable for Trouble {
    fn sqlite(&self) -> Option<&rusqlite::Error> {
        match self {
            Self::Sql(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Unfit> for Trouble {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
