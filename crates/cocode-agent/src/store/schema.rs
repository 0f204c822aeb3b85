//! The tables of the store, and how older formats become the present one.
//!
//! A step is never changed once it was released: a new format is another step. Everything that a
//! record says is in its JSON; the columns beside it are there to find and to add up.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::database::Trouble;

/// Tells our files from those of other programs: `coco`, in SQLite's `application_id`.
pub(super) const APPLICATION: i64 = 0x636F_636F;

/// One step for each format: the first makes format 1 of an empty file.
pub(super) const STEPS: &[&str] = &[FORMAT_1];

/// Times are microseconds since 1970. `holder` is the token of the last lease: who writes with another
/// one does not hold the conversation any more.
const FORMAT_1: &str = "
CREATE TABLE conversations (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    title TEXT NOT NULL,
    cwd BLOB NOT NULL,
    settings TEXT NOT NULL,
    began INTEGER NOT NULL,
    used INTEGER NOT NULL,
    last_number INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    tokens_input INTEGER NOT NULL DEFAULT 0,
    tokens_output INTEGER NOT NULL DEFAULT 0,
    tokens_cache_read INTEGER NOT NULL DEFAULT 0,
    tokens_cache_write INTEGER NOT NULL DEFAULT 0,
    cost REAL NOT NULL DEFAULT 0,
    closed INTEGER NOT NULL DEFAULT 0,
    holder INTEGER
) STRICT;
CREATE INDEX conversations_by_use ON conversations (used);
CREATE INDEX conversations_by_owner ON conversations (owner, used);
CREATE TABLE records (
    conversation INTEGER NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    written INTEGER NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
) STRICT;
CREATE TABLE drafts (
    conversation INTEGER PRIMARY KEY REFERENCES conversations (key) ON DELETE CASCADE,
    after_number INTEGER NOT NULL,
    said TEXT NOT NULL
) STRICT;
";

/// Why a file is not in the present format, and cannot be brought there.
#[derive(Debug)]
pub(super) enum Unfit {
    /// A newer version wrote it.
    Newer { found: i64, known: i64 },
    /// Another program wrote it.
    Foreign,
}

/// Brings a file to the format that the last of `steps` makes, at once or not at all. Processes that
/// do this at the same time wait for each other.
pub(super) fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), Trouble> {
    let known = known(steps);
    if format_of(connection, steps)? == known {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Somebody else may have done it in between.
    let found = format_within(&transaction, steps)?;
    let done = usize::try_from(found).unwrap_or(0);
    for step in steps.iter().skip(done) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", known)?;
    transaction.commit()?;
    Ok(())
}

/// The format that the last of `steps` makes.
fn known(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

/// The format of a file, unless it is not for us; 0 if nothing is in it.
///
/// It is read in one transaction: a file that another process makes in the meantime would look like
/// one of another program, with tables but not yet with our name.
pub(super) fn format_of(connection: &mut Connection, steps: &[&str]) -> Result<i64, Trouble> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
    format_within(&transaction, steps)
}

fn format_within(transaction: &Transaction<'_>, steps: &[&str]) -> Result<i64, Trouble> {
    let known = known(steps);
    let application: i64 =
        transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let found: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if application == 0 {
        let is_empty: bool = transaction.query_row(
            "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)",
            [],
            |row| row.get(0),
        )?;
        return if is_empty && found == 0 {
            Ok(0)
        } else {
            Err(Unfit::Foreign.into())
        };
    }
    if application != APPLICATION || found < 0 {
        return Err(Unfit::Foreign.into());
    }
    if found > known {
        return Err(Unfit::Newer { found, known }.into());
    }
    Ok(found)
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
