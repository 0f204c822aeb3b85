//! What is taken out. Who removes a conversation holds it for as long as that takes, by a lock that ends
//! with the transaction.

use cocode_agent::keeping::unstored;
use cocode_agent::{ConversationId, StoreError};

use super::locks::{FIRST_OF_ID, LockKey, SECOND_OF_ID};
use super::trouble::Trouble;
use super::{Database, NOW};

/// What is tried here, for messages.
const REMOVE: &str = "remove a conversation";
const PURGE: &str = "remove old conversations";

/// Conversations that are removed in one transaction.
const BATCH: i64 = 100;
/// A day in microseconds.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// Removes a conversation.
pub(super) async fn remove(database: &Database, id: &ConversationId) -> Result<(), Trouble> {
    let failed = Trouble::doing(database, REMOVE);
    let mut connection = database.connection().await?;
    let work = async {
        let transaction = connection.transaction().await.map_err(&failed)?;
        let query = "SELECT FROM cocode.conversations WHERE id = $1";
        let found = transaction.query_opt(query, &[&id.as_str()]).await;
        if found.map_err(&failed)?.is_none() {
            return Err(StoreError::Unknown(id.clone()).into());
        }
        let LockKey { first, second } = LockKey::of(id);
        let query = "SELECT pg_try_advisory_xact_lock($1, $2)";
        let row = transaction.query_one(query, &[&first, &second]).await;
        if !row.map_err(&failed)?.get::<_, bool>(0) {
            return Err(StoreError::Held(id.clone()).into());
        }
        let text = "DELETE FROM cocode.conversations WHERE id = $1";
        let removed = transaction.execute(text, &[&id.as_str()]).await;
        if removed.map_err(&failed)? == 0 {
            return Err(StoreError::Unknown(id.clone()).into());
        }
        transaction.commit().await.map_err(&failed)?;
        connection.give_back();
        Ok(())
    };
    database.timely(REMOVE, async { Ok(work.await) }).await?
}

/// How far a purge has come.
struct Purge {
    /// What was used last at this time or earlier is old.
    until: i64,
    /// Up to this key, all was looked at.
    after: i64,
    removed: u64,
    is_over: bool,
}

/// Removes what is old, some at a time so that nobody waits for long.
pub(super) async fn purge(database: &Database, days: u64) -> Result<u64, Trouble> {
    let age = i64::try_from(days).unwrap_or(i64::MAX).saturating_mul(DAY);
    let connection = database.connection().await?;
    let work = async {
        let row = connection.query_one(&format!("SELECT {NOW}"), &[]).await;
        connection.give_back();
        Ok(row.map_err(Trouble::doing(database, PURGE)))
    };
    let now: i64 = database.timely(PURGE, work).await??.get(0);
    let mut purge = Purge {
        until: now.saturating_sub(age),
        after: 0,
        removed: 0,
        is_over: false,
    };
    while !purge.is_over {
        purge = purge_some(database, purge).await?;
    }
    Ok(purge.removed)
}

async fn purge_some(database: &Database, purge: Purge) -> Result<Purge, Trouble> {
    let Purge {
        until,
        after,
        removed,
        is_over: _,
    } = purge;
    let failed = Trouble::doing(database, PURGE);
    let mut connection = database.connection().await?;
    let work = async {
        let transaction = connection.transaction().await.map_err(&failed)?;
        let query = format!(
            "SELECT key, pg_try_advisory_xact_lock({FIRST_OF_ID}, {SECOND_OF_ID}) FROM (
                SELECT key, id FROM cocode.conversations
                WHERE used <= $1 AND key > $2 ORDER BY key LIMIT $3
            ) AS old ORDER BY key"
        );
        let found = transaction.query(&query, &[&until, &after, &BATCH]).await;
        let found = found.map_err(&failed)?;
        let free = found.iter().filter(|row| row.get(1));
        let free: Vec<i64> = free.map(|row| row.get(0)).collect();
        // Somebody may have used one before it was locked.
        let text = "DELETE FROM cocode.conversations WHERE key = ANY ($1) AND used <= $2";
        let gone = transaction.execute(text, &[&free, &until]).await;
        let gone = gone.map_err(&failed)?;
        transaction.commit().await.map_err(&failed)?;
        connection.give_back();
        Ok(Purge {
            until,
            after: found.last().map_or(after, |row| row.get(0)),
            removed: removed + gone,
            is_over: u64::try_from(found.len()).unwrap_or(u64::MAX) < unstored(BATCH),
        })
    };
    database.timely(PURGE, async { Ok(work.await) }).await?
}
