//! What is read of conversations: lists, and whole ones.

use cocode_agent::keeping::{
    MAX_LISTED, Records, draft_from, path_from, settings_from, time_of, unstored,
};
use cocode_agent::{ConversationId, StoreError, Stored, Summary, Usage, Wanted};
use futures_util::TryStreamExt as _;
use tokio_postgres::{IsolationLevel, Row, Transaction};

use super::locks::{FIRST_OF_ID, SECOND_OF_ID};
use super::trouble::Trouble;
use crate::database::Database;

/// What is tried here, for messages.
const LIST: &str = "list conversations";
const LOAD: &str = "read a conversation";

/// The columns that [`summary_of`] reads, in their order. The last looks whether somebody has the lock.
const SUMMARY: &str = "id, owner, title, cwd, began, used, turns, tokens_input, tokens_output,
    tokens_cache_read, tokens_cache_write, cost, closed, (first, second) IN (SELECT classid, objid FROM held)";

/// All locks in the space of two numbers, and conversations with their own.
fn from() -> String {
    format!(
        "WITH held AS MATERIALIZED (
            SELECT classid, objid FROM pg_catalog.pg_locks
            WHERE locktype = 'advisory' AND objsubid = 2 AND granted
              AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())
        ), conversations AS (
            SELECT *, {FIRST_OF_ID}::oid AS first, {SECOND_OF_ID}::oid AS second
            FROM cocode.conversations
        )"
    )
}

/// Conversations, the last used first.
pub(super) async fn list(database: &Database, wanted: &Wanted) -> Result<Vec<Summary>, Trouble> {
    let Wanted {
        owner,
        limit,
        offset,
    } = wanted;
    let filter = if owner.is_some() {
        "owner = $1"
    } else {
        "$1::text IS NULL"
    };
    let limit = i64::try_from(*limit.min(&MAX_LISTED)).unwrap_or(i64::MAX);
    let offset = i64::try_from(*offset).unwrap_or(i64::MAX);
    let query = format!(
        "{} SELECT {SUMMARY} FROM conversations WHERE {filter}
         ORDER BY used DESC, key DESC LIMIT $2 OFFSET $3",
        from()
    );
    let connection = database.connection().await?;
    let work = async {
        let rows = connection.query(&query, &[owner, &limit, &offset]).await;
        connection.give_back();
        Ok(rows.map_err(Trouble::doing(database, LIST)))
    };
    let rows = database.timely(LIST, work).await??;
    rows.iter().map(summary_of).collect()
}

/// Whether there is a conversation of this owner.
pub(super) async fn is_owned_by(
    database: &Database,
    id: &ConversationId,
    owner: &str,
) -> Result<bool, Trouble> {
    let query = "SELECT EXISTS (SELECT 1 FROM cocode.conversations WHERE id = $1 AND owner = $2)";
    let connection = database.connection().await?;
    let work = async {
        let row = connection.query_one(query, &[&id.as_str(), &owner]).await;
        connection.give_back();
        Ok(row.map_err(Trouble::doing(database, LOAD)))
    };
    Ok(database.timely(LOAD, work).await??.get(0))
}

/// A whole conversation, as it was at one moment.
pub(super) async fn load(database: &Database, id: &ConversationId) -> Result<Stored, Trouble> {
    let failed = Trouble::doing(database, LOAD);
    let mut connection = database.connection().await?;
    let work = async {
        let transaction = connection
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()
            .await
            .map_err(&failed)?;
        let stored = load_within(database, &transaction, id).await;
        transaction.commit().await.map_err(&failed)?;
        connection.give_back();
        stored
    };
    database.timely(LOAD, async { Ok(work.await) }).await?
}

async fn load_within(
    database: &Database,
    transaction: &Transaction<'_>,
    id: &ConversationId,
) -> Result<Stored, Trouble> {
    let failed = Trouble::doing(database, LOAD);
    let query = format!(
        "{} SELECT {SUMMARY}, settings, last_number, key FROM conversations WHERE id = $1",
        from()
    );
    let found = transaction.query_opt(&query, &[&id.as_str()]).await;
    let row = found.map_err(&failed)?;
    let row = row.ok_or_else(|| StoreError::Unknown(id.clone()))?;
    let summary = summary_of(&row)?;
    let settings = settings_from(id, row.get(14))?;
    let (last, key): (i64, i64) = (row.get(15), row.get(16));
    let query =
        "SELECT number, kind, record FROM cocode.records WHERE conversation = $1 ORDER BY number";
    // One by one: all of them may be half a gigabyte.
    let rows = transaction.query_raw(query, [key]).await.map_err(&failed)?;
    let mut rows = std::pin::pin!(rows);
    let mut records = Records::default();
    while let Some(row) = rows.try_next().await.map_err(&failed)? {
        records.add(unstored(row.get(0)), row.get(1), row.get(2));
    }
    // What was said of a reply, if nothing happened since.
    let query = "SELECT said FROM cocode.drafts WHERE conversation = $1 AND after_number = $2";
    let draft = transaction.query_opt(query, &[&key, &last]).await;
    let draft = draft.map_err(&failed)?;
    let Records { records, unread } = records;
    Ok(Stored {
        summary,
        settings,
        records,
        unread,
        draft: draft.and_then(|row| draft_from(row.get(0))),
    })
}

fn summary_of(row: &Row) -> Result<Summary, Trouble> {
    let id: String = row.get(0);
    Ok(Summary {
        id: id.parse().map_err(|error| StoreError::Broken {
            place: "in PostgreSQL".to_owned(),
            why: format!("the name of a conversation is damaged: {error}"),
        })?,
        owner: row.get(1),
        title: row.get(2),
        cwd: path_from(row.get(3)),
        began: time_of(row.get(4)),
        used: time_of(row.get(5)),
        turns: unstored(row.get(6)),
        usage: Usage {
            input: unstored(row.get(7)),
            output: unstored(row.get(8)),
            cache_read: unstored(row.get(9)),
            cache_write: unstored(row.get(10)),
        },
        cost: row.get(11),
        is_closed: row.get(12),
        is_held: row.get(13),
    })
}
