//! What adds to the store: conversations, leases, records, drafts.

use std::sync::{Arc, Weak};
use std::time::SystemTime;

use rusqlite::{Transaction, named_params, params};

use super::database::{Database, Safety, Trouble, key_of};
use super::keeping::{
    Beginning, Entry, KNOWN_KINDS, MAX_CONVERSATION_BYTES, micros, stored, too_long, unknown_kind,
    unstored,
};
use super::{ConversationId, Hold, Lease, StoreError};
use crate::model::Usage;

/// Something that is written through a lease. It is not written once the lease is gone, even if it was
/// asked for before.
#[derive(Debug)]
pub(super) struct Through {
    id: ConversationId,
    hold: Weak<dyn Hold>,
}

impl Through {
    pub(super) fn new(lease: &Lease) -> Self {
        Self {
            id: lease.id.clone(),
            hold: Arc::downgrade(&lease.hold),
        }
    }

    /// Does something while the lease is held for sure: this process cannot let go meanwhile, and the
    /// token says that nobody else has taken it.
    fn with<T>(
        self,
        transaction: &Transaction<'_>,
        work: impl FnOnce(i64) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let Self { id, hold } = self;
        let lost = || StoreError::Lost(id.clone());
        let hold = hold.upgrade().ok_or_else(lost)?;
        let key = key_of(transaction, &id)?;
        let is_ours: bool = transaction.query_row(
            "SELECT holder IS ?2 FROM conversations WHERE key = ?1",
            [key, hold.token()],
            |row| row.get(0),
        )?;
        if !is_ours {
            return Err(lost().into());
        }
        work(key)
    }
}

/// Begins a conversation. Without a record it is worth nothing, and the first record takes it along to the
/// disk: the model is asked so much sooner.
pub(super) fn begin(
    database: &mut Database,
    beginning: Beginning,
) -> Result<ConversationId, Trouble> {
    let Beginning {
        id,
        owner,
        title,
        cwd,
        settings,
    } = beginning;
    let now = micros(SystemTime::now());
    let (transaction, _locks) = database.write(Safety::Crash)?;
    transaction.execute(
        "INSERT INTO conversations (id, owner, title, cwd, settings, began, used)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
        params![id.as_str(), owner, title, cwd, settings, now],
    )?;
    transaction.commit()?;
    Ok(id)
}

/// Takes a conversation.
pub(super) fn lease(database: &mut Database, id: ConversationId) -> Result<Lease, Trouble> {
    let (transaction, locks) = database.write(Safety::Crash)?;
    let key = key_of(&transaction, &id)?;
    let hold = locks.take(&id)?;
    refuse_newer_records(&transaction, key, &id)?;
    transaction.execute(
        "UPDATE conversations SET holder = ?2 WHERE key = ?1",
        [key, hold.token()],
    )?;
    transaction.commit()?;
    Ok(Lease { id, hold })
}

/// Nobody goes on with a conversation in which something happened that this version knows nothing of.
fn refuse_newer_records(
    transaction: &Transaction<'_>,
    key: i64,
    id: &ConversationId,
) -> Result<(), Trouble> {
    let known: Vec<_> = KNOWN_KINDS.iter().map(|kind| format!("'{kind}'")).collect();
    let known = known.join(", ");
    let found = transaction.query_row(
        &format!(
            "SELECT number, kind FROM records
             WHERE conversation = ?1 AND kind NOT IN ({known}) ORDER BY number LIMIT 1"
        ),
        [key],
        |row| Ok((row.get(0)?, row.get(1)?)),
    );
    match found {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(()),
        Err(error) => Err(error.into()),
        Ok((number, kind)) => Err(unknown_kind(id, unstored(number), kind).into()),
    }
}

/// Adds a record.
pub(super) fn append(
    database: &mut Database,
    through: Through,
    entry: Entry,
) -> Result<u64, Trouble> {
    let (transaction, _locks) = database.write(Safety::PowerCut)?;
    let number = through.with(&transaction, |key| write_entry(&transaction, key, entry))?;
    transaction.commit()?;
    Ok(number)
}

fn write_entry(transaction: &Transaction<'_>, key: i64, entry: Entry) -> Result<u64, Trouble> {
    let Entry { kind, json, sums } = entry;
    let now = micros(SystemTime::now());
    let before = transaction.query_row(
        "SELECT last_number, bytes, tokens_input, tokens_output, tokens_cache_read, tokens_cache_write
         FROM conversations WHERE key = ?1",
        [key],
        |row| {
            let usage = Usage {
                input: unstored(row.get(2)?),
                output: unstored(row.get(3)?),
                cache_read: unstored(row.get(4)?),
                cache_write: unstored(row.get(5)?),
            };
            Ok((unstored(row.get(0)?), unstored(row.get(1)?), usage))
        },
    );
    let (last, bytes, mut usage) = before?;
    usage += sums.usage;
    let number = last.saturating_add(1);
    let bytes = bytes.saturating_add(u64::try_from(json.len()).unwrap_or(u64::MAX));
    if bytes > MAX_CONVERSATION_BYTES {
        return Err(too_long().into());
    }
    transaction.execute(
        "INSERT INTO records (conversation, number, kind, written, record)
         VALUES (?1, ?2, ?3, ?4, ?5)",
        params![key, stored(number), kind, now, json],
    )?;
    transaction.execute(
        "UPDATE conversations SET
            last_number = :number, bytes = :bytes, used = :now,
            turns = turns + :turns, cost = cost + :cost, closed = closed OR :closed,
            tokens_input = :input, tokens_output = :output,
            tokens_cache_read = :cache_read, tokens_cache_write = :cache_write,
            cwd = coalesce(:cwd, cwd)
         WHERE key = :key",
        named_params! {
            ":key": key,
            ":number": stored(number),
            ":bytes": stored(bytes),
            ":now": now,
            ":turns": stored(sums.turns),
            ":cost": sums.cost,
            ":closed": sums.is_closed,
            ":input": stored(usage.input),
            ":output": stored(usage.output),
            ":cache_read": stored(usage.cache_read),
            ":cache_write": stored(usage.cache_write),
            ":cwd": sums.cwd,
        },
    )?;
    transaction.execute("DELETE FROM drafts WHERE conversation = ?1", [key])?;
    Ok(number)
}

/// Keeps a draft. It is worth less than a record, and comes often: a power cut may take the last ones.
pub(super) fn draft(database: &mut Database, through: Through, said: &str) -> Result<(), Trouble> {
    let (transaction, _locks) = database.write(Safety::Crash)?;
    through.with(&transaction, |key| {
        transaction.execute(
            "INSERT OR REPLACE INTO drafts (conversation, after_number, said)
             SELECT key, last_number, ?2 FROM conversations WHERE key = ?1",
            params![key, said],
        )?;
        Ok(())
    })?;
    transaction.commit()?;
    Ok(())
}

#[cfg(test)]
#[path = "writing_tests.rs"]
mod tests;
