//! Sessions in a file of SQLite, for all gateways of a user.
//!
//! What is lost by a power cut is only what the last seconds brought: a client whose session is not
//! found begins anew. So nothing waits for the disk.

mod statements;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cocode_agent::sqlite_file::{self, FileTrouble, Unusable};
use cocode_wire::serve::{
    Headcount, SessionKey, SessionMark, SessionNews, SessionStore, SessionStoreError, StoreWork,
    StoredSession, Whose,
};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::Semaphore;

/// Sessions that are kept.
const MAX_SESSIONS: usize = 100_000;

/// How long other processes that write are waited for in one go, by one who keeps all others of this
/// process waiting.
const BUSY_WAIT: Duration = Duration::from_millis(200);

/// How often that is done before the file cannot be used: for 14 seconds, so that who has 15 learns why.
/// Each of the others takes milliseconds, but they do not take turns. Whoever does not wait that long gives
/// up by dropping the work, and is in nobody's way any more.
const MAX_TRIES: u32 = 70;

/// How long to leave the turn to others in between.
const PAUSE: Duration = Duration::from_millis(5);

/// What is left of a log that has grown larger, in bytes.
const LOG_LIMIT: i64 = 1024 * 1024;

/// What is done by who changes nothing.
const LOOKED_AT: &str = "looked at";

/// The format of the file, and what makes it.
const FORMAT: i64 = 1;
const SCHEMA: &str = "
    CREATE TABLE sessions (
        key BLOB PRIMARY KEY,
        guest TEXT,
        credential TEXT,
        endpoint TEXT,
        revision TEXT NOT NULL,
        told TEXT NOT NULL,
        version INTEGER NOT NULL,
        used INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        key BLOB NOT NULL,
        is_end INTEGER NOT NULL,
        version INTEGER NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    PRAGMA user_version = 1;";

/// Keeps sessions in a file, which is made when the first session is to be kept.
#[derive(Debug)]
pub(super) struct FileSessionStore {
    file: Arc<File>,
    /// Whose turn it is: who waits for his turn waits without a thread.
    turns: Arc<Semaphore>,
    headcount: Arc<Headcount>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    connection: Mutex<Option<Connection>>,
}

/// What went wrong, before it is told with the name of the file.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    #[error(transparent)]
    File(#[from] FileTrouble),
    #[error("a newer version of cocode made it (format {0})")]
    Newer(i64),
    #[error("there are too many")]
    TooMany,
}

impl FileSessionStore {
    /// The store in that file.
    pub(super) fn new(path: PathBuf) -> Self {
        let connection = Mutex::new(None);
        Self {
            file: Arc::new(File { path, connection }),
            turns: Arc::new(Semaphore::new(1)),
            headcount: Arc::new(Headcount::new(MAX_SESSIONS)),
        }
    }

    /// Does work on the file, all of it or nothing. While another process keeps it busy, others of this
    /// one have their turns too: those who only read need not wait for who writes.
    async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl Fn(&Transaction<'_>) -> Result<T, Trouble> + Send + Sync + 'static,
    ) -> Result<T, SessionStoreError> {
        let place = self.file.path.display().to_string();
        let unusable = |why| SessionStoreError::Unusable {
            place: place.clone(),
            action,
            why,
        };
        let work = Arc::new(work);
        let mut n_tries = 0;
        loop {
            n_tries += 1;
            match self.try_once(action, &work).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(trouble)) if trouble.is_busy() && n_tries < MAX_TRIES => {
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(Err(Trouble::TooMany)) => {
                    let limit = MAX_SESSIONS;
                    return Err(SessionStoreError::TooMany { place, limit });
                }
                Ok(Err(trouble)) => return Err(unusable(trouble.to_string())),
                Err(why) => return Err(unusable(why)),
            }
        }
    }

    /// Does work when it has its turn, unless somebody else is writing for too long.
    async fn try_once<T: Send + 'static>(
        &self,
        action: &'static str,
        work: &Arc<impl Fn(&Transaction<'_>) -> Result<T, Trouble> + Send + Sync + 'static>,
    ) -> Result<Result<T, Trouble>, String> {
        // Who only reads waits for nobody who writes.
        let behavior = match action {
            LOOKED_AT => TransactionBehavior::Deferred,
            _ => TransactionBehavior::Immediate,
        };
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|closed| closed.to_string())?;
        let (file, work) = (Arc::clone(&self.file), Arc::clone(work));
        let done = tokio::task::spawn_blocking(move || {
            let done = file.with(behavior, &*work);
            // Not before, even if nobody waits for the outcome any more.
            drop(turn);
            done
        });
        done.await.map_err(|error| error.to_string())
    }
}

impl Trouble {
    fn is_busy(&self) -> bool {
        self.sqlite().is_some_and(sqlite_file::is_busy)
    }
}

impl File {
    fn with<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl Fn(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let connection = self.connection.lock();
        let mut connection = connection.unwrap_or_else(PoisonError::into_inner);
        let open = match &mut *connection {
            Some(open) => open,
            closed => closed.insert(sqlite_file::open(&self.path, BUSY_WAIT, prepare)?),
        };
        let transaction = open.transaction_with_behavior(behavior)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }
}

/// Sets up a connection, and the tables where they are missing.
fn prepare(connection: &mut Connection) -> Result<(), Trouble> {
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_row| Ok(()))?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update_and_check(None, "journal_size_limit", LOG_LIMIT, |_row| Ok(()))?;
    let beginning = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let format = beginning.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match format {
        0 => beginning.execute_batch(SCHEMA)?,
        FORMAT => {}
        newer => return Err(Trouble::Newer(newer)),
    }
    beginning.commit()?;
    Ok(())
}

impl Unusable for Trouble {
    fn sqlite(&self) -> Option<&rusqlite::Error> {
        match self {
            Self::Sql(error) => Some(error),
            _ => None,
        }
    }
}

impl SessionStore for FileSessionStore {
    fn put<'a>(&'a self, session: &'a StoredSession) -> StoreWork<'a, ()> {
        let (session, headcount) = (session.clone(), Arc::clone(&self.headcount));
        Box::pin(self.run("changed", move |file| {
            statements::put(file, &session, &headcount)
        }))
    }

    fn find<'a>(
        &'a self,
        key: &'a SessionKey,
        idle: Duration,
    ) -> StoreWork<'a, Option<StoredSession>> {
        let key = *key;
        Box::pin(self.run("read", move |file| statements::find(file, key, idle)))
    }

    fn tell<'a>(&'a self, key: &'a SessionKey, said: &'a [Bytes]) -> StoreWork<'a, Option<u64>> {
        let (key, said) = (*key, said.to_vec());
        Box::pin(self.run("changed", move |file| statements::tell(file, key, &said)))
    }

    fn touch<'a>(
        &'a self,
        keys: &'a [SessionKey],
        idle: Duration,
    ) -> StoreWork<'a, Vec<SessionKey>> {
        let keys = keys.to_vec();
        Box::pin(self.run("changed", move |file| statements::touch(file, &keys, idle)))
    }

    fn remove<'a>(&'a self, keys: &'a [SessionKey]) -> StoreWork<'a, ()> {
        let keys = keys.to_vec();
        Box::pin(self.run("changed", move |file| statements::remove(file, &keys)))
    }

    fn remove_of<'a>(&'a self, whose: &'a Whose) -> StoreWork<'a, ()> {
        let whose = whose.clone();
        Box::pin(self.run("changed", move |file| statements::remove_of(file, &whose)))
    }

    fn remove_idle(&self, idle: Duration) -> StoreWork<'_, ()> {
        Box::pin(self.run("changed", move |file| statements::remove_idle(file, idle)))
    }

    fn news<'a>(&'a self, mark: Option<&'a SessionMark>) -> StoreWork<'a, SessionNews> {
        let mark = mark.and_then(|mark| mark.as_bytes().try_into().ok());
        let mark = mark.map(i64::from_be_bytes);
        Box::pin(self.run(LOOKED_AT, move |file| statements::news(file, mark)))
    }
}

#[cfg(test)]
#[path = "session_file_tests.rs"]
mod tests;
