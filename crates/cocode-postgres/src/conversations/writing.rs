//! What adds to conversations: their beginnings, records, drafts. Everything is one statement, so that
//! it is done or not, and everything but a beginning counts only for who holds the conversation.

use cocode_agent::keeping::{
    Beginning, Entry, Hold as _, MAX_CONVERSATION_BYTES, Sums, random_bytes, stored, too_long,
    unstored,
};
use cocode_agent::{ConversationId, Lease, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::holding::held;
use super::locks::Held;
use super::trouble::{Trouble, again};
use super::{Database, NOW};

/// What is tried here, for messages.
const BEGIN: &str = "begin a conversation";
const ADD: &str = "add a record";
const KEEP: &str = "keep a draft";

/// How often something is written that comes after another record than was thought. Only what the same
/// holder did not wait for can come in between, and each time that is one less.
const ATTEMPTS: usize = 8;

/// Begins a conversation. Done twice it is the same.
pub(super) async fn begin(database: &Database, beginning: &Beginning) -> Result<(), Trouble> {
    let Beginning {
        id,
        owner,
        title,
        cwd,
        settings,
    } = beginning;
    let text = format!(
        "INSERT INTO cocode.conversations (id, owner, title, cwd, settings, began, used)
         SELECT $1, $2, $3, $4, $5, now, now FROM (SELECT {NOW} AS now) AS clock
         ON CONFLICT (id) DO NOTHING"
    );
    let values: [&(dyn ToSql + Sync); 5] = [&id.as_str(), owner, title, cwd, settings];
    one(database, BEGIN, &text, &values).await?;
    Ok(())
}

/// Adds a record: once, even if the connection breaks on the way.
pub(super) async fn append(
    database: &Database,
    lease: &Lease,
    entry: &Entry,
) -> Result<u64, Trouble> {
    let held = held(lease)?;
    let write = i64::from_ne_bytes(random_bytes()?);
    let _turn = held.turn(ADD).await?;
    for _attempt in 0..ATTEMPTS {
        let last = match held.last_number() {
            Some(last) => last,
            None => look(database, ADD, lease, held).await?.last_number,
        };
        // Whoever stops waiting leaves it open where the record has got to.
        held.know(None);
        let added = again(|| add(database, lease, held, (last, write), entry)).await?;
        if let Some(number) = added {
            held.know(Some(number));
            return Ok(unstored(number));
        }
        let found = look(database, ADD, lease, held).await?;
        if found.last_write == Some(write) {
            // The answer to an earlier attempt was lost.
            held.know(Some(found.last_number));
            return Ok(unstored(found.last_number));
        }
        if found.last_number == last {
            held.know(Some(last));
            return Err(too_long().into());
        }
    }
    Err(StoreError::Lost(lease.id().clone()).into())
}

/// Keeps a draft.
pub(super) async fn draft(database: &Database, lease: &Lease, said: &str) -> Result<(), Trouble> {
    let held = held(lease)?;
    let _turn = held.turn(KEEP).await?;
    for _attempt in 0..ATTEMPTS {
        let last = match held.last_number() {
            Some(last) => last,
            None => look(database, KEEP, lease, held).await?.last_number,
        };
        if again(|| keep(database, lease, held, last, said)).await? {
            held.know(Some(last));
            return Ok(());
        }
        held.know(None);
    }
    Err(StoreError::Lost(lease.id().clone()).into())
}

/// What is known of a conversation that is held.
struct Found {
    last_number: i64,
    last_write: Option<i64>,
}

/// Looks where a conversation has got to, if it is still held.
async fn look(
    database: &Database,
    action: &'static str,
    lease: &Lease,
    held: &Held,
) -> Result<Found, Trouble> {
    let query = "SELECT holder, last_number, last_write FROM cocode.conversations WHERE id = $1";
    let values: [&(dyn ToSql + Sync); 1] = [&lease.id().as_str()];
    let row = again(|| one(database, action, query, &values)).await?;
    let row = row.ok_or_else(|| StoreError::Unknown(lease.id().clone()))?;
    if row.get::<_, Option<i64>>(0) != Some(held.token()) {
        return Err(StoreError::Lost(lease.id().clone()).into());
    }
    Ok(Found {
        last_number: row.get(1),
        last_write: row.get(2),
    })
}

/// Adds a record after another, if that is the last and there is room; gives its number.
async fn add(
    database: &Database,
    lease: &Lease,
    held: &Held,
    (last, write): (i64, i64),
    entry: &Entry,
) -> Result<Option<i64>, Trouble> {
    let Entry { kind, json, sums } = entry;
    let Sums {
        turns,
        usage,
        cost,
        is_closed,
        cwd,
    } = sums;
    let length = i64::try_from(json.len()).unwrap_or(i64::MAX);
    let text = format!(
        "WITH ours AS (
            UPDATE cocode.conversations SET
                last_number = last_number + 1, last_write = $4, bytes = bytes + $5, used = {NOW},
                turns = turns + $7, cost = cost + $8, closed = closed OR $9,
                tokens_input = tokens_input + least($10, {most} - tokens_input),
                tokens_output = tokens_output + least($11, {most} - tokens_output),
                tokens_cache_read = tokens_cache_read + least($12, {most} - tokens_cache_read),
                tokens_cache_write = tokens_cache_write + least($13, {most} - tokens_cache_write),
                cwd = coalesce($14, cwd)
            WHERE id = $1 AND holder = $2 AND last_number = $3 AND bytes <= $6::bigint - $5::bigint
            RETURNING key, last_number, used
        ), added AS (
            INSERT INTO cocode.records (conversation, number, kind, written, record)
            SELECT key, last_number, $15, used, $16 FROM ours
        ), gone AS (
            DELETE FROM cocode.drafts USING ours WHERE conversation = key
        )
        SELECT last_number FROM ours",
        most = i64::MAX,
    );
    let values: [&(dyn ToSql + Sync); 16] = [
        &lease.id().as_str(),
        &held.token(),
        &last,
        &write,
        &length,
        &stored(MAX_CONVERSATION_BYTES),
        &stored(*turns),
        cost,
        is_closed,
        &stored(usage.input),
        &stored(usage.output),
        &stored(usage.cache_read),
        &stored(usage.cache_write),
        cwd,
        kind,
        json,
    ];
    still_held(lease.id(), held)?;
    let row = one(database, ADD, &text, &values).await?;
    Ok(row.map(|row| row.get(0)))
}

/// Keeps a draft of what follows a record, if that is the last; says whether it was.
async fn keep(
    database: &Database,
    lease: &Lease,
    held: &Held,
    last: i64,
    said: &str,
) -> Result<bool, Trouble> {
    let text = "
        INSERT INTO cocode.drafts (conversation, after_number, said)
        SELECT key, last_number, $4 FROM (
            SELECT key, last_number FROM cocode.conversations
            WHERE id = $1 AND holder = $2 AND last_number = $3
            FOR NO KEY UPDATE
        ) AS ours
        ON CONFLICT (conversation)
        DO UPDATE SET after_number = excluded.after_number, said = excluded.said
        RETURNING conversation";
    let values: [&(dyn ToSql + Sync); 4] = [&lease.id().as_str(), &held.token(), &last, &said];
    still_held(lease.id(), held)?;
    Ok(one(database, KEEP, text, &values).await?.is_some())
}

/// Between two attempts, too.
fn still_held(id: &ConversationId, held: &Held) -> Result<(), StoreError> {
    if held.is_lost() {
        return Err(StoreError::Lost(id.clone()));
    }
    Ok(())
}

/// Does one statement, which gives one row at most.
async fn one(
    database: &Database,
    action: &'static str,
    text: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Option<Row>, Trouble> {
    let connection = database.connection().await?;
    let work = async {
        let row = connection.query_opt(text, values).await;
        // An error of the server leaves the connection as it was, and one that is closed is sorted out.
        connection.give_back();
        Ok(row.map_err(Trouble::doing(database, action)))
    };
    database.timely(action, work).await?
}
