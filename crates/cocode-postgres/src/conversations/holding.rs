//! How a conversation is taken: the lock first, then the row is told who has it.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use cocode_agent::keeping::{Hold as _, KNOWN_KINDS, unknown_kind, unstored};
use cocode_agent::{ConversationId, Lease, StoreError};
use tokio_postgres::types::ToSql;

use super::locks::{Held, Locks, Taken};
use super::trouble::{Trouble, again};
use crate::database::Database;

/// What is tried here, for messages.
const ACTION: &str = "take a conversation";

/// How often a lock is looked at before it is somebody else's, and the pauses in between, two seconds in
/// all: who lets go does so in the background, and whoever was told of the end of a turn may come here
/// before that.
const LOOKS: u32 = 41;
const PAUSE: Duration = Duration::from_millis(50);

/// Takes a conversation.
pub(super) async fn lease(
    database: &Database,
    locks: &Locks,
    id: &ConversationId,
) -> Result<Lease, Trouble> {
    again(|| is_there(database, id)).await?;
    let held = take(locks, id).await?;
    let number = again(|| enter(database, id, &held)).await?;
    held.know(Some(number));
    Ok(Lease::new(id.clone(), held))
}

/// What holds a lease of this kind of store.
pub(super) fn held(lease: &Lease) -> Result<&Held, StoreError> {
    let hold: &dyn Any = &**lease.hold();
    let held: Option<&Held> = hold.downcast_ref();
    held.filter(|held| !held.is_lost())
        .ok_or_else(|| StoreError::Lost(lease.id().clone()))
}

async fn take(locks: &Locks, id: &ConversationId) -> Result<Arc<Held>, Trouble> {
    for look in 0..LOOKS {
        if look > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        match again(|| locks.take(id)).await? {
            Taken::Now(held) => return Ok(held),
            Taken::IsHeldHere => break,
            Taken::IsHeldElsewhere => {}
        }
    }
    Err(StoreError::Held(id.clone()).into())
}

async fn is_there(database: &Database, id: &ConversationId) -> Result<(), Trouble> {
    let connection = database.connection().await?;
    let work = async {
        let query = "SELECT FROM cocode.conversations WHERE id = $1";
        let found = connection.query_opt(query, &[&id.as_str()]).await;
        connection.give_back();
        Ok(found.map_err(Trouble::doing(database, ACTION)))
    };
    let found = database.timely(ACTION, work).await??;
    found
        .map(|_row| ())
        .ok_or_else(|| StoreError::Unknown(id.clone()).into())
}

/// Writes down who holds it, and gives the number of its last record. Nobody goes on with a conversation
/// in which something happened that this version knows nothing of.
async fn enter(database: &Database, id: &ConversationId, held: &Held) -> Result<i64, Trouble> {
    let failed = Trouble::doing(database, ACTION);
    let connection = database.connection().await?;
    let work = async {
        let query = "
            SELECT number, kind FROM cocode.records
            WHERE conversation = (SELECT key FROM cocode.conversations WHERE id = $1)
              AND kind <> ALL ($2)
            ORDER BY number LIMIT 1";
        let values: [&(dyn ToSql + Sync); 2] = [&id.as_str(), &KNOWN_KINDS];
        let newer = connection.query_opt(query, &values).await;
        if let Some(row) = newer.map_err(&failed)? {
            connection.give_back();
            return Err(unknown_kind(id, unstored(row.get(0)), row.get(1)).into());
        }
        let query = "
            UPDATE cocode.conversations SET holder = $2 WHERE id = $1 RETURNING last_number";
        let values: [&(dyn ToSql + Sync); 2] = [&id.as_str(), &held.token()];
        let entered = connection.query_opt(query, &values).await;
        connection.give_back();
        let row = entered.map_err(&failed)?;
        let row = row.ok_or_else(|| StoreError::Unknown(id.clone()))?;
        Ok(row.get(0))
    };
    database.timely(ACTION, async { Ok(work.await) }).await?
}
