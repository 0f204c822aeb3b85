//! Sessions of all gateways that share a database, so that another one can go on with them.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::serve::{
    Headcount, SessionKey, SessionMark, SessionNews, SessionStore, SessionStoreError, StoreWork,
    StoredSession, Whose, retold,
};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error as PostgresError, Row};

use crate::database::Database;
use crate::error::DatabaseError;

/// Sessions that are kept.
const MAX_SESSIONS: usize = 100_000;
/// Events that are told at once. Whoever misses some learns of them when it touches its sessions.
const MAX_EVENTS: i64 = 10_000;

const FINDING: &str = "find a session";
const KEEPING: &str = "keep a session";
const ENDING: &str = "end sessions";
const LOOKING: &str = "see what happened to sessions";

/// Keeps a session, if there is room for one more, or if it is there.
const PUT: &str = "
    INSERT INTO cocode.sessions (key, guest, credential, endpoint, revision, told, version, used)
    SELECT $1, $2, $3, $4, $5, $6, $7, now()
    WHERE $8 OR EXISTS (SELECT FROM cocode.sessions WHERE key = $1)
    ON CONFLICT (key) DO UPDATE SET guest = excluded.guest, credential = excluded.credential,
        endpoint = excluded.endpoint, revision = excluded.revision, used = excluded.used";

const COUNT: &str = "SELECT count(*) FROM cocode.sessions";

const FIND: &str = "
    UPDATE cocode.sessions SET used = now()
    WHERE key = $1 AND used >= now() - make_interval(secs => $2)
    RETURNING guest, credential, endpoint, revision, told, version";

/// Takes the row of a session, so that whoever else has something to tell waits.
const HOLD: &str = "SELECT told, version FROM cocode.sessions WHERE key = $1 FOR UPDATE";

/// The number of the transaction that this is a part of.
const TELL: &str = "
    WITH changed AS (
        UPDATE cocode.sessions SET told = $2, version = $3 WHERE key = $1 RETURNING key, version
    )
    INSERT INTO cocode.session_events (done_by, key, is_end, version, at)
    SELECT pg_current_xact_id()::text::bigint, key, false, version, now() FROM changed";

/// Rows are held in one order, so that two who touch the same sessions never wait for each other.
const TOUCH: &str = "
    WITH held AS (
        SELECT key FROM cocode.sessions
        WHERE key = ANY ($1) AND used >= now() - make_interval(secs => $2)
        ORDER BY key FOR UPDATE
    )
    UPDATE cocode.sessions SET used = now() FROM held WHERE sessions.key = held.key
    RETURNING sessions.key";

/// Ends the sessions of which this says so.
fn removing(which: &str) -> String {
    format!(
        "WITH held AS (SELECT key FROM cocode.sessions WHERE {which} ORDER BY key FOR UPDATE),
        removed AS (
            DELETE FROM cocode.sessions USING held WHERE sessions.key = held.key
            RETURNING held.key, sessions.version
        )
        INSERT INTO cocode.session_events (done_by, key, is_end, version, at)
        SELECT pg_current_xact_id()::text::bigint, key, true, version, now() FROM removed"
    )
}

/// Rows that somebody holds are left for the next time.
const REMOVE_IDLE: &str = "
    WITH idle AS (
        SELECT key FROM cocode.sessions WHERE used < now() - make_interval(secs => $1)
        FOR UPDATE SKIP LOCKED
    ), removed AS (DELETE FROM cocode.sessions USING idle WHERE sessions.key = idle.key),
    old AS (
        SELECT ctid FROM cocode.session_events WHERE at < now() - interval '2 minutes'
        FOR UPDATE SKIP LOCKED
    )
    DELETE FROM cocode.session_events USING old WHERE session_events.ctid = old.ctid";

/// The oldest transaction that has not ended, and the next one that will begin: numbers before the
/// first are all known, and none is as high as the second.
const NOW: &str = "
    SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint
    FROM pg_current_snapshot() AS now";

const EVENTS: &str = "
    SELECT key, is_end, max(version) FROM cocode.session_events WHERE done_by >= $1
    GROUP BY key, is_end LIMIT $2";

/// A value and its type.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Keeps sessions in a database.
#[derive(Clone, Debug)]
pub struct PostgresSessionStore {
    database: Database,
    headcount: Arc<Headcount>,
}

impl PostgresSessionStore {
    /// Keeps sessions in this database. Nobody is contacted yet.
    pub fn new(database: Database) -> Self {
        Self {
            database,
            headcount: Arc::new(Headcount::new(MAX_SESSIONS)),
        }
    }

    /// Asks for rows, in one transaction of its own.
    async fn rows(
        &self,
        action: &'static str,
        query: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, DatabaseError> {
        let work = async {
            let connection = self.database.connection().await?;
            let rows: Result<_, PostgresError> = connection.query_typed(query, parameters).await;
            let rows = rows.map_err(self.database.failed(action))?;
            connection.give_back();
            Ok(rows)
        };
        self.database.timely(action, work).await
    }

    /// Changes rows, and says how many.
    async fn change(
        &self,
        action: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, SessionStoreError> {
        let work = async {
            let connection = self.database.connection().await?;
            let changed = connection.execute_typed(statement, parameters).await;
            let changed = changed.map_err(self.database.failed(action))?;
            connection.give_back();
            Ok(changed)
        };
        let changed = self.database.timely(action, work).await;
        changed.map_err(|error| self.told(&error, "changed"))
    }

    async fn put_now(&self, session: &StoredSession) -> Result<(), SessionStoreError> {
        let StoredSession {
            key,
            guest,
            credential,
            endpoint,
            revision,
            told,
            version,
        } = session;
        let has_room = self.has_room().await?;
        let told: Vec<&[u8]> = told.iter().map(|message| &**message).collect();
        let parameters: [Parameter<'_>; 8] = [
            (&key.as_bytes().as_slice(), Type::BYTEA),
            (guest, Type::TEXT),
            (credential, Type::TEXT),
            (endpoint, Type::TEXT),
            (revision, Type::TEXT),
            (&told, Type::BYTEA_ARRAY),
            (&number(*version), Type::INT8),
            (&has_room, Type::BOOL),
        ];
        match self.change(KEEPING, PUT, &parameters).await? {
            0 => Err(SessionStoreError::TooMany {
                place: self.database.place().to_owned(),
                limit: MAX_SESSIONS,
            }),
            _ => Ok(()),
        }
    }

    /// Whether one more may be kept.
    async fn has_room(&self) -> Result<bool, SessionStoreError> {
        if self.headcount.take() {
            return Ok(true);
        }
        let rows = self.rows(KEEPING, COUNT, &[]).await;
        let rows = rows.map_err(|error| self.told(&error, "read"))?;
        let count = rows.first().map_or(0, |row| row.get::<_, i64>(0));
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(self.headcount.counted(count))
    }

    /// Puts what a client has said to what is kept, while nobody else can.
    async fn tell_now(
        &self,
        key: &SessionKey,
        said: &[Bytes],
    ) -> Result<Option<u64>, DatabaseError> {
        let failed = self.database.failed(KEEPING);
        let key = key.as_bytes().as_slice();
        let mut connection = self.database.connection().await?;
        let transaction = connection.transaction().await.map_err(&failed)?;
        let held = transaction.query_typed(HOLD, &[(&key, Type::BYTEA)]).await;
        let held = held.map_err(&failed)?;
        let mut version = None;
        if let Some(row) = held.first() {
            let before: i64 = row.get(1);
            let told = retold(&messages(row, 0), said);
            let after = before + i64::from(told.is_some());
            if let Some(told) = told {
                let told: Vec<&[u8]> = told.iter().map(|message| &**message).collect();
                let parameters: [Parameter<'_>; 3] = [
                    (&key, Type::BYTEA),
                    (&told, Type::BYTEA_ARRAY),
                    (&after, Type::INT8),
                ];
                let changed = transaction.execute_typed(TELL, &parameters).await;
                changed.map_err(&failed)?;
            }
            version = Some(after.unsigned_abs());
        }
        transaction.commit().await.map_err(&failed)?;
        connection.give_back();
        Ok(version)
    }

    async fn find_now(
        &self,
        key: &SessionKey,
        idle: Duration,
    ) -> Result<Option<StoredSession>, SessionStoreError> {
        let parameters: [Parameter<'_>; 2] = [
            (&key.as_bytes().as_slice(), Type::BYTEA),
            (&idle.as_secs_f64(), Type::FLOAT8),
        ];
        let rows = self.rows(FINDING, FIND, &parameters).await;
        let rows = rows.map_err(|error| self.told(&error, "read"))?;
        Ok(rows.first().map(|row| StoredSession {
            key: *key,
            guest: row.get(0),
            credential: row.get(1),
            endpoint: row.get(2),
            revision: row.get(3),
            told: messages(row, 4),
            version: row.get::<_, i64>(5).unsigned_abs(),
        }))
    }

    async fn touch_now(
        &self,
        keys: &[SessionKey],
        idle: Duration,
    ) -> Result<Vec<SessionKey>, SessionStoreError> {
        let parameters: [Parameter<'_>; 2] = [
            (&bytes_of(keys), Type::BYTEA_ARRAY),
            (&idle.as_secs_f64(), Type::FLOAT8),
        ];
        let rows = self.rows(KEEPING, TOUCH, &parameters).await;
        let rows = rows.map_err(|error| self.told(&error, "changed"))?;
        let there: HashSet<SessionKey> = rows.iter().filter_map(key_of).collect();
        let gone = keys.iter().filter(|key| !there.contains(*key));
        Ok(gone.copied().collect())
    }

    async fn news_now(&self, mark: Option<&SessionMark>) -> Result<SessionNews, SessionStoreError> {
        let news = async {
            // First the mark: what is committed after it is asked for again the next time.
            let now = self.rows(LOOKING, NOW, &[]).await?;
            let (oldest, next): (i64, i64) =
                now.first().map_or((0, 0), |row| (row.get(0), row.get(1)));
            let mut news = SessionNews {
                mark: SessionMark::new(oldest.to_be_bytes()),
                ..SessionNews::default()
            };
            let Some(mark) = mark else {
                return Ok(news);
            };
            let known = mark.as_bytes().try_into().map_or(0, i64::from_be_bytes);
            // Another database has taken the place of that one.
            let known = if known > next { 0 } else { known };
            let parameters: [Parameter<'_>; 2] = [(&known, Type::INT8), (&MAX_EVENTS, Type::INT8)];
            let rows = self.rows(LOOKING, EVENTS, &parameters).await?;
            for row in &rows {
                let Some(key) = key_of(row) else {
                    continue;
                };
                if row.get(1) {
                    news.ended.push(key);
                } else {
                    news.retold.push((key, row.get::<_, i64>(2).unsigned_abs()));
                }
            }
            Ok(news)
        };
        let news: Result<_, DatabaseError> = news.await;
        news.map_err(|error| self.told(&error, "read"))
    }

    fn told(&self, error: &DatabaseError, action: &'static str) -> SessionStoreError {
        SessionStoreError::Unusable {
            place: self.database.place().to_owned(),
            action,
            why: error.to_string(),
        }
    }
}

fn bytes_of(keys: &[SessionKey]) -> Vec<&[u8]> {
    let bytes = keys.iter().map(|key| key.as_bytes().as_slice());
    bytes.collect()
}

fn number(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// The messages in that column.
fn messages(row: &Row, column: usize) -> Vec<Bytes> {
    let messages: Vec<Vec<u8>> = row.get(column);
    messages.into_iter().map(Bytes::from).collect()
}

/// The key in the first column.
fn key_of(row: &Row) -> Option<SessionKey> {
    let bytes = row.get::<_, &[u8]>(0).try_into().ok()?;
    Some(SessionKey::from_bytes(bytes))
}

impl SessionStore for PostgresSessionStore {
    fn put<'a>(&'a self, session: &'a StoredSession) -> StoreWork<'a, ()> {
        Box::pin(self.put_now(session))
    }

    fn find<'a>(
        &'a self,
        key: &'a SessionKey,
        idle: Duration,
    ) -> StoreWork<'a, Option<StoredSession>> {
        Box::pin(self.find_now(key, idle))
    }

    fn tell<'a>(&'a self, key: &'a SessionKey, said: &'a [Bytes]) -> StoreWork<'a, Option<u64>> {
        Box::pin(async move {
            let telling = self.tell_now(key, said);
            let told = self.database.timely(KEEPING, telling).await;
            told.map_err(|error| self.told(&error, "changed"))
        })
    }

    fn touch<'a>(
        &'a self,
        keys: &'a [SessionKey],
        idle: Duration,
    ) -> StoreWork<'a, Vec<SessionKey>> {
        Box::pin(self.touch_now(keys, idle))
    }

    fn remove<'a>(&'a self, keys: &'a [SessionKey]) -> StoreWork<'a, ()> {
        Box::pin(async move {
            let keys = bytes_of(keys);
            let removing = removing("key = ANY ($1)");
            self.change(ENDING, &removing, &[(&keys, Type::BYTEA_ARRAY)])
                .await?;
            Ok(())
        })
    }

    fn remove_of<'a>(&'a self, whose: &'a Whose) -> StoreWork<'a, ()> {
        Box::pin(async move {
            let (which, parameters): (_, Vec<Parameter<'_>>) = match whose {
                Whose::Guest(guest) => ("guest = $1", vec![(guest, Type::TEXT)]),
                Whose::Credential { guest, credential } => (
                    "guest = $1 AND credential = $2",
                    vec![(guest, Type::TEXT), (credential, Type::TEXT)],
                ),
                Whose::Strangers => ("guest IS NULL", Vec::new()),
            };
            self.change(ENDING, &removing(which), &parameters).await?;
            Ok(())
        })
    }

    fn remove_idle(&self, idle: Duration) -> StoreWork<'_, ()> {
        Box::pin(async move {
            let idle = idle.as_secs_f64();
            self.change(ENDING, REMOVE_IDLE, &[(&idle, Type::FLOAT8)])
                .await?;
            Ok(())
        })
    }

    fn news<'a>(&'a self, mark: Option<&'a SessionMark>) -> StoreWork<'a, SessionNews> {
        Box::pin(self.news_now(mark))
    }
}
