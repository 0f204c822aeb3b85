//! The store of conversations in a file of SQLite, for all processes of a user.
//!
//! SQLite blocks, so its work is done on the threads that the runtime has for that: one piece at a time
//! for each store, in the order in which it was asked for. Who waits for his turn waits without a thread.
//! There is no thread of our own: it would have to be ended, and a runtime whose clock is paused by a
//! test would not know that something is still being done.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use super::database::{Database, Trouble};
use super::keeping::{Beginning, Entry, draft_json};
use super::removing::{self, Purge};
use super::writing::{self, Through};
use super::{
    ConversationId, Lease, NewConversation, Store, StoreError, Stored, Summary, Wanted, reading,
};
use crate::content::Block;
use crate::provider::Work;
use crate::record::Record;

/// Conversations in a file of SQLite.
///
/// What a method has returned from is there after this process has died, by whatever means. Records are
/// there after a power cut as well, as far as the disk does what it says; a power cut may take the last
/// drafts, and conversations that have no record yet.
///
/// Dropping the future of a method leaves it open whether the work is done. An [`append`](Store::append)
/// is done before its lease is free for others, or not at all.
#[derive(Debug)]
pub struct SqliteStore {
    file: Arc<StoreFile>,
    /// Whose turn it is.
    turns: Arc<Semaphore>,
}

#[derive(Debug)]
struct StoreFile {
    /// None: it is in memory.
    path: Option<PathBuf>,
    /// For people.
    place: String,
    /// Opened when it is needed first.
    database: Mutex<Option<Database>>,
}

impl SqliteStore {
    /// The store in this file. The file and its directory are made when they are needed first, and only
    /// their owner can read them; nothing is opened until then.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let broken = |why: String| StoreError::Broken {
            place: path.display().to_string(),
            why,
        };
        // An absolute path also means the same when the working directory changes, and no URI to SQLite.
        let path = std::path::absolute(path).map_err(|error| broken(error.to_string()))?;
        if path.file_name().is_none() {
            return Err(broken("it is not the name of a file".to_owned()));
        }
        let place = path.display().to_string();
        Ok(Self::new(Some(path), place))
    }

    /// A store that is gone with this value. Its leases are known to this value alone.
    pub fn in_memory() -> Self {
        Self::new(None, "in memory".to_owned())
    }

    fn new(path: Option<PathBuf>, place: String) -> Self {
        let database = Mutex::new(None);
        Self {
            file: Arc::new(StoreFile {
                path,
                place,
                database,
            }),
            turns: Arc::new(Semaphore::new(1)),
        }
    }

    /// Does work on the file, when it is its turn.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, StoreError> {
        let broken = |why: String| StoreError::Broken {
            place: self.file.place.clone(),
            why,
        };
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|closed| broken(closed.to_string()))?;
        let file = Arc::clone(&self.file);
        let done = tokio::task::spawn_blocking(move || {
            let done = file.with(work);
            // Not before, even if nobody waits for the outcome any more.
            drop(turn);
            done
        });
        done.await.map_err(|error| broken(error.to_string()))?
    }
}

impl StoreFile {
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Database) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        let mut database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let told = |trouble: Trouble| trouble.told(&self.place);
        let mut open = match database.take() {
            Some(open) => open,
            None => match &self.path {
                Some(path) => Database::open(path),
                None => Database::in_memory(),
            }
            .map_err(told)?,
        };
        let done = work(&mut open);
        *database = Some(open);
        done.map_err(told)
    }
}

impl Store for SqliteStore {
    fn begin(&self, new: NewConversation) -> Work<'_, Result<ConversationId, StoreError>> {
        Box::pin(async move {
            let beginning = Beginning::new(new)?;
            self.run(|database| writing::begin(database, beginning))
                .await
        })
    }

    fn lease<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<Lease, StoreError>> {
        let id = id.clone();
        Box::pin(self.run(|database| writing::lease(database, id)))
    }

    fn append<'a>(
        &'a self,
        lease: &'a Lease,
        record: &'a Record,
    ) -> Work<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let entry = Entry::new(record)?;
            let through = Through::new(lease);
            self.run(|database| writing::append(database, through, entry))
                .await
        })
    }

    fn draft<'a>(
        &'a self,
        lease: &'a Lease,
        said: &'a [Block],
    ) -> Work<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let said = draft_json(said)?;
            let through = Through::new(lease);
            self.run(move |database| writing::draft(database, through, &said))
                .await
        })
    }

    fn is_owned_by<'a>(
        &'a self,
        id: &'a ConversationId,
        owner: &'a str,
    ) -> Work<'a, Result<bool, StoreError>> {
        let (id, owner) = (id.clone(), owner.to_owned());
        Box::pin(self.run(move |database| reading::is_owned_by(database, &id, &owner)))
    }

    fn load<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<Stored, StoreError>> {
        let id = id.clone();
        Box::pin(self.run(move |database| reading::load(database, &id)))
    }

    fn list<'a>(&'a self, wanted: &'a Wanted) -> Work<'a, Result<Vec<Summary>, StoreError>> {
        let wanted = wanted.clone();
        Box::pin(self.run(move |database| reading::list(database, &wanted)))
    }

    fn remove<'a>(&'a self, id: &'a ConversationId) -> Work<'a, Result<(), StoreError>> {
        let id = id.clone();
        Box::pin(async move {
            self.run(move |database| removing::remove(database, &id))
                .await?;
            self.give_back().await
        })
    }

    fn purge(&self, older_than_days: u64) -> Work<'_, Result<u64, StoreError>> {
        Box::pin(async move {
            let mut purge = Purge::of_older_than(older_than_days);
            while !purge.is_over {
                purge = self
                    .run(move |database| removing::purge(database, purge))
                    .await?;
            }
            if purge.removed > 0 {
                self.give_back().await?;
            }
            Ok(purge.removed)
        })
    }
}

impl SqliteStore {
    /// Gives room back to the disk, piece by piece, so that others get their turns in between.
    async fn give_back(&self) -> Result<(), StoreError> {
        while !self.run(removing::give_back).await? {}
        Ok(())
    }
}
