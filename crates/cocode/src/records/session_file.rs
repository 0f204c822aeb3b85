//! Sessions in a file of SQLite, for all gateways of a user.
//!
//! What is lost by a power cut is only what the last seconds brought: a client whose session is not
//! found begins anew. So nothing waits for the disk.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use cocode_agent::sqlite_file::{self, FileTrouble, Unusable};
use cocode_wire::serve::{
    SessionKey, SessionMark, SessionNews, SessionStore, SessionStoreError, StoreWork, StoredSession,
};
use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};
use tokio::sync::Semaphore;

/// Sessions that are kept.
const MAX_SESSIONS: i64 = 100_000;

/// How long other processes that write are waited for. Each takes milliseconds, but they do not take turns.
const BUSY_LIMIT: Duration = Duration::from_secs(10);

/// How long it is remembered that something has happened.
const REMEMBERED: Duration = Duration::from_mins(2);

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
        endpoint TEXT,
        revision TEXT NOT NULL,
        told TEXT NOT NULL,
        used INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE events (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        key BLOB NOT NULL,
        is_end INTEGER NOT NULL,
        at INTEGER NOT NULL
    ) STRICT;
    PRAGMA user_version = 1;";

/// Keeps sessions in a file, which is made when the first session is to be kept.
#[derive(Debug)]
pub(super) struct FileSessionStore {
    file: Arc<File>,
    /// Whose turn it is: who waits for his turn waits without a thread.
    turns: Arc<Semaphore>,
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
        }
    }

    /// Does work on the file, all of it or nothing.
    async fn run<T: Send + 'static>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, SessionStoreError> {
        // Who only reads waits for nobody who writes.
        let behavior = match action {
            LOOKED_AT => TransactionBehavior::Deferred,
            _ => TransactionBehavior::Immediate,
        };
        let place = self.file.path.display().to_string();
        let unusable = |place, why| SessionStoreError::Unusable { place, action, why };
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        let turn = turn.map_err(|closed| unusable(place.clone(), closed.to_string()))?;
        let file = Arc::clone(&self.file);
        let done = tokio::task::spawn_blocking(move || {
            let done = file.with(behavior, work);
            // Not before, even if nobody waits for the outcome any more.
            drop(turn);
            done
        });
        match done.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(Trouble::TooMany)) => Err(SessionStoreError::TooMany {
                place,
                limit: usize::try_from(MAX_SESSIONS).unwrap_or(usize::MAX),
            }),
            Ok(Err(trouble)) => Err(unusable(place, trouble.to_string())),
            Err(error) => Err(unusable(place, error.to_string())),
        }
    }
}

impl File {
    fn with<T>(
        &self,
        behavior: TransactionBehavior,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let connection = self.connection.lock();
        let mut connection = connection.unwrap_or_else(PoisonError::into_inner);
        let open = match &mut *connection {
            Some(open) => open,
            closed => closed.insert(sqlite_file::open(&self.path, BUSY_LIMIT, prepare)?),
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

/// The time, in milliseconds.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    millis(now.unwrap_or_default())
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What was used before this is as good as gone.
fn oldest(idle: Duration) -> i64 {
    now().saturating_sub(millis(idle))
}

fn note(file: &Transaction<'_>, key: &[u8], is_end: bool) -> Result<(), Trouble> {
    let mut noting = file.prepare("INSERT INTO events (key, is_end, at) VALUES (?1, ?2, ?3)")?;
    noting.execute(params![key, is_end, now()])?;
    Ok(())
}

fn put(file: &Transaction<'_>, session: &StoredSession) -> Result<(), Trouble> {
    let mut putting = file.prepare(
        "INSERT OR REPLACE INTO sessions (key, guest, endpoint, revision, told, used)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE (SELECT count(*) FROM sessions) < ?7
            OR EXISTS (SELECT 1 FROM sessions WHERE key = ?1)",
    )?;
    let changed = putting.execute(params![
        session.key.as_bytes(),
        session.guest,
        session.endpoint,
        session.revision,
        written(&session.told),
        now(),
        MAX_SESSIONS,
    ])?;
    if changed == 0 {
        return Err(Trouble::TooMany);
    }
    Ok(())
}

fn find(
    file: &Transaction<'_>,
    key: SessionKey,
    idle: Duration,
) -> Result<Option<StoredSession>, Trouble> {
    let mut finding = file.prepare(
        "UPDATE sessions SET used = ?1 WHERE key = ?2 AND used >= ?3
         RETURNING guest, endpoint, revision, told",
    )?;
    let found = finding.query_row(params![now(), key.as_bytes(), oldest(idle)], |row| {
        let told: String = row.get(3)?;
        Ok(StoredSession {
            key,
            guest: row.get(0)?,
            endpoint: row.get(1)?,
            revision: row.get(2)?,
            told: read(&told),
        })
    });
    Ok(found.optional()?)
}

fn touch(
    file: &Transaction<'_>,
    keys: &[SessionKey],
    idle: Duration,
) -> Result<Vec<SessionKey>, Trouble> {
    let mut touching =
        file.prepare("UPDATE sessions SET used = ?1 WHERE key = ?2 AND used >= ?3")?;
    let mut gone = Vec::new();
    for key in keys {
        if touching.execute(params![now(), key.as_bytes(), oldest(idle)])? == 0 {
            gone.push(*key);
        }
    }
    Ok(gone)
}

fn remove_of(file: &Transaction<'_>, guest: &str) -> Result<(), Trouble> {
    let mut removing = file.prepare("DELETE FROM sessions WHERE guest = ?1 RETURNING key")?;
    let keys = removing.query_map([guest], |row| row.get::<_, Vec<u8>>(0))?;
    let keys: Vec<_> = keys.collect::<Result<_, _>>()?;
    for key in keys {
        note(file, &key, true)?;
    }
    Ok(())
}

fn news(file: &Transaction<'_>, mark: Option<i64>) -> Result<SessionNews, Trouble> {
    let last = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events'";
    let last: i64 = file.prepare(last)?.query_row([], |row| row.get(0))?;
    let mut news = SessionNews {
        mark: SessionMark::new(last.to_be_bytes()),
        ..SessionNews::default()
    };
    let Some(mark) = mark.filter(|mark| *mark != last) else {
        return Ok(news);
    };
    let mut asking = file.prepare("SELECT DISTINCT key, is_end FROM events WHERE number > ?1")?;
    let mut rows = asking.query([mark])?;
    while let Some(row) = rows.next()? {
        let Some(key) = key_of(row)? else {
            continue;
        };
        if row.get(1)? {
            news.ended.push(key);
        } else {
            news.retold.push(key);
        }
    }
    Ok(news)
}

fn key_of(row: &Row<'_>) -> Result<Option<SessionKey>, Trouble> {
    let bytes: Vec<u8> = row.get(0)?;
    let bytes = <[u8; 32]>::try_from(bytes).ok();
    Ok(bytes.map(SessionKey::from_bytes))
}

/// Messages as one text: a list of strings.
fn written(told: &[Bytes]) -> String {
    let texts = told.iter().map(|text| String::from_utf8_lossy(text));
    let texts: Vec<_> = texts.collect();
    serde_json::json!(texts).to_string()
}

/// The messages in a text. A text that is none has none, and makes no session.
fn read(told: &str) -> Vec<Bytes> {
    let texts: Vec<String> = serde_json::from_str(told).unwrap_or_default();
    texts.into_iter().map(Bytes::from).collect()
}

impl SessionStore for FileSessionStore {
    fn put<'a>(&'a self, session: &'a StoredSession) -> StoreWork<'a, ()> {
        let session = session.clone();
        Box::pin(self.run("changed", move |file| put(file, &session)))
    }

    fn find<'a>(
        &'a self,
        key: &'a SessionKey,
        idle: Duration,
    ) -> StoreWork<'a, Option<StoredSession>> {
        let key = *key;
        Box::pin(self.run("read", move |file| find(file, key, idle)))
    }

    fn tell<'a>(&'a self, key: &'a SessionKey, told: &'a [Bytes]) -> StoreWork<'a, ()> {
        let (key, told) = (*key, written(told));
        Box::pin(self.run("changed", move |file| {
            let changed = file.execute(
                "UPDATE sessions SET told = ?1 WHERE key = ?2",
                params![told, key.as_bytes()],
            )?;
            if changed > 0 {
                note(file, key.as_bytes(), false)?;
            }
            Ok(())
        }))
    }

    fn touch<'a>(
        &'a self,
        keys: &'a [SessionKey],
        idle: Duration,
    ) -> StoreWork<'a, Vec<SessionKey>> {
        let keys = keys.to_vec();
        Box::pin(self.run("changed", move |file| touch(file, &keys, idle)))
    }

    fn remove<'a>(&'a self, keys: &'a [SessionKey]) -> StoreWork<'a, ()> {
        let keys = keys.to_vec();
        Box::pin(self.run("changed", move |file| {
            let mut removing = file.prepare("DELETE FROM sessions WHERE key = ?1")?;
            for key in keys {
                if removing.execute([key.as_bytes()])? > 0 {
                    note(file, key.as_bytes(), true)?;
                }
            }
            Ok(())
        }))
    }

    fn remove_of<'a>(&'a self, guest: &'a str) -> StoreWork<'a, ()> {
        let guest = guest.to_owned();
        Box::pin(self.run("changed", move |file| remove_of(file, &guest)))
    }

    fn remove_idle(&self, idle: Duration) -> StoreWork<'_, ()> {
        Box::pin(self.run("changed", move |file| {
            file.execute("DELETE FROM sessions WHERE used < ?1", [oldest(idle)])?;
            file.execute("DELETE FROM events WHERE at < ?1", [oldest(REMEMBERED)])?;
            Ok(())
        }))
    }

    fn news<'a>(&'a self, mark: Option<&'a SessionMark>) -> StoreWork<'a, SessionNews> {
        let mark = mark.and_then(|mark| mark.as_bytes().try_into().ok());
        let mark = mark.map(i64::from_be_bytes);
        Box::pin(self.run(LOOKED_AT, move |file| news(file, mark)))
    }
}

#[cfg(test)]
#[path = "session_file_tests.rs"]
mod tests;
