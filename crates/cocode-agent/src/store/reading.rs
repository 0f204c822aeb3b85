//! What is read from the store: lists, and whole conversations.

use rusqlite::{Row, Transaction, params};

use super::database::{Database, Safety, Trouble, key_of};
use super::keeping::{
    MAX_LISTED, Records, draft_from, path_from, settings_from, time_of, unstored,
};
use super::{ConversationId, Stored, Summary, Wanted};
use crate::content::Block;
use crate::model::Usage;

/// The columns that [`summary_of`] reads, in their order.
const SUMMARY: &str = "id, owner, title, cwd, began, used, turns, tokens_input, tokens_output,
    tokens_cache_read, tokens_cache_write, cost, closed";

/// Conversations, the last used first.
pub(super) fn list(database: &mut Database, wanted: &Wanted) -> Result<Vec<Summary>, Trouble> {
    let Wanted {
        owner,
        limit,
        offset,
    } = wanted;
    let filter = if owner.is_some() {
        "owner = ?1"
    } else {
        "?1 IS NULL"
    };
    let limit = i64::try_from(*limit.min(&MAX_LISTED)).unwrap_or(i64::MAX);
    let offset = i64::try_from(*offset).unwrap_or(i64::MAX);
    let transaction = database.read()?;
    let mut statement = transaction.prepare(&format!(
        "SELECT {SUMMARY} FROM conversations WHERE {filter}
         ORDER BY used DESC, key DESC LIMIT ?2 OFFSET ?3"
    ))?;
    let rows = statement.query_map(params![owner, limit, offset], summary_of)?;
    let mut summaries = rows.collect::<Result<Vec<_>, _>>()?;
    drop(statement);
    transaction.commit()?;
    see_who_is_held(database, &mut summaries)?;
    Ok(summaries)
}

/// Whether there is a conversation of this owner.
pub(super) fn is_owned_by(
    database: &mut Database,
    id: &ConversationId,
    owner: &str,
) -> Result<bool, Trouble> {
    let transaction = database.read()?;
    let found = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM conversations WHERE id = ?1 AND owner = ?2)",
        params![id.as_str(), owner],
        |row| row.get(0),
    )?;
    transaction.commit()?;
    Ok(found)
}

/// A whole conversation.
pub(super) fn load(database: &mut Database, id: &ConversationId) -> Result<Stored, Trouble> {
    let transaction = database.read()?;
    let key = key_of(&transaction, id)?;
    let (summary, settings, last) = transaction.query_row(
        &format!("SELECT {SUMMARY}, settings, last_number FROM conversations WHERE key = ?1"),
        [key],
        |row| Ok((summary_of(row)?, row.get::<_, String>(13)?, row.get(14)?)),
    )?;
    let settings = settings_from(id, &settings)?;
    let Records { records, unread } = records_of(&transaction, key)?;
    let draft = draft_of(&transaction, key, last)?;
    transaction.commit()?;
    let mut summaries = [summary];
    see_who_is_held(database, &mut summaries)?;
    let [summary] = summaries;
    Ok(Stored {
        summary,
        settings,
        records,
        unread,
        draft,
    })
}

fn records_of(transaction: &Transaction<'_>, key: i64) -> Result<Records, Trouble> {
    let mut statement = transaction.prepare(
        "SELECT number, kind, record FROM records WHERE conversation = ?1 ORDER BY number",
    )?;
    let mut rows = statement.query([key])?;
    let mut records = Records::default();
    while let Some(row) = rows.next()? {
        let text = |column| row.get_ref(column)?.as_str().map_err(rusqlite::Error::from);
        records.add(unstored(row.get(0)?), text(1)?, text(2)?);
    }
    Ok(records)
}

/// What was said of a reply, if nothing happened since.
fn draft_of(
    transaction: &Transaction<'_>,
    key: i64,
    last: i64,
) -> Result<Option<Vec<Block>>, Trouble> {
    let found = transaction.query_row(
        "SELECT said FROM drafts WHERE conversation = ?1 AND after_number = ?2",
        [key, last],
        |row| row.get::<_, String>(0),
    );
    match found {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        found => Ok(draft_from(&found?)),
    }
}

/// Looks at locks only where there are any, because that needs the right to write.
fn see_who_is_held(database: &mut Database, summaries: &mut [Summary]) -> Result<(), Trouble> {
    let locks = &database.locks;
    if !summaries.iter().any(|one| locks.is_in_question(&one.id)) {
        return Ok(());
    }
    let (transaction, locks) = database.write(Safety::Crash)?;
    for summary in summaries {
        summary.is_held = locks.is_held(&summary.id)?;
    }
    transaction.commit()?;
    Ok(())
}

fn summary_of(row: &Row<'_>) -> rusqlite::Result<Summary> {
    let id: String = row.get(0)?;
    Ok(Summary {
        id: id.parse().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(
                0,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })?,
        owner: row.get(1)?,
        title: row.get(2)?,
        cwd: path_from(row.get(3)?),
        began: time_of(row.get(4)?),
        used: time_of(row.get(5)?),
        turns: unstored(row.get(6)?),
        usage: Usage {
            input: unstored(row.get(7)?),
            output: unstored(row.get(8)?),
            cache_read: unstored(row.get(9)?),
            cache_write: unstored(row.get(10)?),
        },
        cost: row.get(11)?,
        is_held: false,
        is_closed: row.get(12)?,
    })
}
