//! Conversations of agents, for all gateways that share a database.
//!
//! A lease is a lock of a session of PostgreSQL, on a connection that the store has for this alone: it is
//! free as soon as the process is gone that held it, in whatever way. Beside it the row of the
//! conversation has the token of its last holder, and nothing is written with another one. So there is
//! one writer even if somebody has lost the lock and does not know it yet.
//!
//! Whether something was written is unknown when a connection breaks before the answer is there. Each
//! record says which number it follows and has a token of its own, so that the same can be asked for
//! again on another connection: it is there once, wherever the first attempt has got to.

mod holding;
mod locks;
mod reading;
mod removing;
mod trouble;
mod writing;

use cocode_agent::keeping::{Beginning, Entry, draft_json};
use cocode_agent::{
    Block, ConversationId, Lease, NewConversation, Record, Store, StoreError, Stored, Summary,
    Wanted, Work,
};

use crate::database::Database;
use locks::Locks;
use trouble::again;

/// The time in microseconds since 1970, in SQL: one clock for all processes.
const NOW: &str = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// Conversations in a database, for all processes that use it.
///
/// What a method has returned from is there after this process has died, and after a crash of the
/// database, as far as that keeps what it says.
///
/// Dropping the future of a method leaves it open whether the work is done. An [`append`](Store::append)
/// is done before its lease is free for others, or not at all. One that fails because the database
/// cannot be reached may be done as well: who goes on takes the conversation again, and reads it first.
///
/// Dropping a lease does not wait. This store knows at once that it is let go, others in a moment; they
/// look for two seconds before they say that a conversation is held.
#[derive(Debug)]
pub struct PostgresConversations {
    database: Database,
    locks: Locks,
}

impl PostgresConversations {
    /// The conversations of this database. Nobody is contacted before there is something to do.
    pub fn new(database: Database) -> Self {
        let locks = Locks::new(database.clone());
        Self { database, locks }
    }
}

impl Store for PostgresConversations {
    fn begin(&self, new: NewConversation) -> Work<'_, Result<ConversationId, StoreError>> {
        Box::pin(async move {
            let beginning = Beginning::new(new)?;
            again(|| writing::begin(&self.database, &beginning)).await?;
            Ok(beginning.id)
        })
    }

    fn lease<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<Lease, StoreError>> {
        Box::pin(async move { Ok(holding::lease(&self.database, &self.locks, id).await?) })
    }

    fn append<'a>(
        &'a self,
        lease: &'a Lease,
        record: &'a Record,
    ) -> Work<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let entry = Entry::new(record)?;
            Ok(writing::append(&self.database, lease, &entry).await?)
        })
    }

    fn draft<'a>(
        &'a self,
        lease: &'a Lease,
        said: &'a [Block],
    ) -> Work<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let said = draft_json(said)?;
            Ok(writing::draft(&self.database, lease, &said).await?)
        })
    }

    fn is_owned_by<'a>(
        &'a self,
        id: &'a ConversationId,
        owner: &'a str,
    ) -> Work<'a, Result<bool, StoreError>> {
        Box::pin(
            async move { Ok(again(|| reading::is_owned_by(&self.database, id, owner)).await?) },
        )
    }

    fn load<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<Stored, StoreError>> {
        Box::pin(async move {
            self.locks.settle().await;
            Ok(again(|| reading::load(&self.database, id)).await?)
        })
    }

    fn list<'a>(&'a self, wanted: &'a Wanted) -> Work<'a, Result<Vec<Summary>, StoreError>> {
        Box::pin(async move {
            self.locks.settle().await;
            Ok(again(|| reading::list(&self.database, wanted)).await?)
        })
    }

    fn remove<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<(), StoreError>> {
        Box::pin(async move {
            self.locks.settle().await;
            Ok(removing::remove(&self.database, id).await?)
        })
    }

    fn purge(&self, older_than_days: u64) -> Work<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            self.locks.settle().await;
            Ok(removing::purge(&self.database, older_than_days).await?)
        })
    }
}
