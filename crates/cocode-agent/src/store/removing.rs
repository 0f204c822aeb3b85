//! What is taken out of the store, and the room that it gives back.

use std::time::{Duration, SystemTime};

use super::database::{Database, Safety, Trouble, key_of};
use super::keeping::{micros, unstored};
use super::{ConversationId, StoreError};

/// Conversations that are removed in one transaction: others may write in between.
const BATCH: i64 = 100;
/// Pages that are given back in one transaction.
const PAGES: i64 = 2000;

/// How far a purge has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purge {
    /// What was used last at this time or earlier is old.
    until: i64,
    /// Up to this key, all was looked at.
    after: i64,
    /// So many were removed.
    pub(super) removed: u64,
    /// Whether there is nothing left to look at.
    pub(super) is_over: bool,
}

impl Purge {
    pub(super) fn of_older_than(days: u64) -> Self {
        let age = Duration::from_secs(days.saturating_mul(24 * 60 * 60));
        // There is nothing older than the time that cannot be reckoned.
        let until = SystemTime::now().checked_sub(age).map_or(-1, micros);
        Self {
            until,
            after: 0,
            removed: 0,
            is_over: false,
        }
    }
}

/// Removes a conversation.
pub(super) fn remove(database: &mut Database, id: &ConversationId) -> Result<(), Trouble> {
    let (transaction, locks) = database.write(Safety::PowerCut)?;
    let key = key_of(&transaction, id)?;
    let hold = locks.take(id)?;
    transaction.execute("DELETE FROM conversations WHERE key = ?1", [key])?;
    transaction.commit()?;
    drop(hold);
    Ok(())
}

/// Goes on with a purge, as far as one transaction goes.
pub(super) fn purge(database: &mut Database, purge: Purge) -> Result<Purge, Trouble> {
    let Purge {
        until,
        mut after,
        mut removed,
        is_over: _,
    } = purge;
    let (transaction, locks) = database.write(Safety::PowerCut)?;
    let mut statement = transaction.prepare(
        "SELECT key, id FROM conversations WHERE used <= ?1 AND key > ?2 ORDER BY key LIMIT ?3",
    )?;
    let rows = statement.query_map([until, after, BATCH], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let found = rows.collect::<Result<Vec<_>, _>>()?;
    drop(statement);
    let mut holds = Vec::new();
    for (key, id) in &found {
        after = *key;
        // What is no id cannot be held.
        if let Ok(id) = id.parse() {
            match locks.take(&id) {
                Ok(hold) => holds.push(hold),
                Err(Trouble::Told(StoreError::Held(_))) => continue,
                Err(trouble) => return Err(trouble),
            }
        }
        transaction.execute("DELETE FROM conversations WHERE key = ?1", [key])?;
        removed += 1;
    }
    transaction.commit()?;
    drop(holds);
    let is_over = unstored(BATCH) > u64::try_from(found.len()).unwrap_or(u64::MAX);
    Ok(Purge {
        until,
        after,
        removed,
        is_over,
    })
}

/// Gives some of the room that is free back to the disk, and says whether that was all.
pub(super) fn give_back(database: &mut Database) -> Result<bool, Trouble> {
    let connection = database.connection();
    let free = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let before = free("freelist_count")?;
    if before > 0 {
        connection.execute_batch(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
        let left = free("freelist_count")?;
        // The room cannot be had in a file that was made otherwise, by hand.
        if left > 0 && left < before {
            return Ok(false);
        }
    }
    // The file shrinks when the log is copied into it. Somebody who reads may be in the way of that, and
    // then it happens later.
    let is_busy: bool =
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(0))?;
    tracing::debug!(is_busy, "the store has given room back");
    Ok(true)
}
