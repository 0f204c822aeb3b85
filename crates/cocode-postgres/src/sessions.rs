//! Sessions of all gateways that share a database, so that another one can go on with them.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::serve::{
    SessionKey, SessionMark, SessionNews, SessionStore, SessionStoreError, StoreWork, StoredSession,
};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error as PostgresError, Row};

use crate::database::Database;
use crate::error::DatabaseError;

/// Sessions that are kept.
const MAX_SESSIONS: i64 = 100_000;
/// Events that are told at once. Whoever misses some learns of them when it touches its sessions.
const MAX_EVENTS: i64 = 10_000;

const FINDING: &str = "find a session";
const KEEPING: &str = "keep a session";
const ENDING: &str = "end sessions";
const LOOKING: &str = "see what happened to sessions";

/// Keeps a session, if there is room for one more, or if it is there.
const PUT: &str = "
    INSERT INTO cocode.sessions (key, guest, endpoint, revision, told, used)
    SELECT $1, $2, $3, $4, $5, now()
    WHERE (SELECT count(*) FROM cocode.sessions) < $6
        OR EXISTS (SELECT FROM cocode.sessions WHERE key = $1)
    ON CONFLICT (key) DO UPDATE SET guest = excluded.guest, endpoint = excluded.endpoint,
        revision = excluded.revision, told = excluded.told, used = excluded.used";

const FIND: &str = "
    UPDATE cocode.sessions SET used = now()
    WHERE key = $1 AND used >= now() - make_interval(secs => $2)
    RETURNING guest, endpoint, revision, told";

/// The number of the transaction that this is a part of.
const TELL: &str = "
    WITH changed AS (UPDATE cocode.sessions SET told = $2 WHERE key = $1 RETURNING key)
    INSERT INTO cocode.session_events (done_by, key, is_end, at)
    SELECT pg_current_xact_id()::text::bigint, key, false, now() FROM changed";

/// Rows are held in one order, so that two who touch the same sessions never wait for each other.
const TOUCH: &str = "
    WITH held AS (
        SELECT key FROM cocode.sessions
        WHERE key = ANY ($1) AND used >= now() - make_interval(secs => $2)
        ORDER BY key FOR UPDATE
    )
    UPDATE cocode.sessions SET used = now() FROM held WHERE sessions.key = held.key
    RETURNING sessions.key";

const REMOVE: &str = "
    WITH held AS (SELECT key FROM cocode.sessions WHERE key = ANY ($1) ORDER BY key FOR UPDATE),
    removed AS (DELETE FROM cocode.sessions USING held WHERE sessions.key = held.key RETURNING held.key)
    INSERT INTO cocode.session_events (done_by, key, is_end, at)
    SELECT pg_current_xact_id()::text::bigint, key, true, now() FROM removed";

const REMOVE_OF: &str = "
    WITH held AS (SELECT key FROM cocode.sessions WHERE guest = $1 ORDER BY key FOR UPDATE),
    removed AS (DELETE FROM cocode.sessions USING held WHERE sessions.key = held.key RETURNING held.key)
    INSERT INTO cocode.session_events (done_by, key, is_end, at)
    SELECT pg_current_xact_id()::text::bigint, key, true, now() FROM removed";

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
    SELECT DISTINCT key, is_end FROM cocode.session_events WHERE done_by >= $1 LIMIT $2";

/// A value and its type.
type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Keeps sessions in a database.
#[derive(Clone, Debug)]
pub struct PostgresSessionStore {
    database: Database,
}

impl PostgresSessionStore {
    /// Keeps sessions in this database. Nobody is contacted yet.
    pub fn new(database: Database) -> Self {
        Self { database }
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
            endpoint,
            revision,
            told,
        } = session;
        let told: Vec<&[u8]> = told.iter().map(|message| &**message).collect();
        let parameters: [Parameter<'_>; 6] = [
            (&key.as_bytes().as_slice(), Type::BYTEA),
            (guest, Type::TEXT),
            (endpoint, Type::TEXT),
            (revision, Type::TEXT),
            (&told, Type::BYTEA_ARRAY),
            (&MAX_SESSIONS, Type::INT8),
        ];
        match self.change(KEEPING, PUT, &parameters).await? {
            0 => Err(SessionStoreError::TooMany {
                place: self.database.place().to_owned(),
                limit: usize::try_from(MAX_SESSIONS).unwrap_or(usize::MAX),
            }),
            _ => Ok(()),
        }
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
            endpoint: row.get(1),
            revision: row.get(2),
            told: row
                .get::<_, Vec<Vec<u8>>>(3)
                .into_iter()
                .map(Bytes::from)
                .collect(),
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
                    news.retold.push(key);
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

    fn tell<'a>(&'a self, key: &'a SessionKey, told: &'a [Bytes]) -> StoreWork<'a, ()> {
        Box::pin(async move {
            let told: Vec<&[u8]> = told.iter().map(|message| &**message).collect();
            let key = key.as_bytes().as_slice();
            let parameters: [Parameter<'_>; 2] = [(&key, Type::BYTEA), (&told, Type::BYTEA_ARRAY)];
            self.change(KEEPING, TELL, &parameters).await?;
            Ok(())
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
            self.change(ENDING, REMOVE, &[(&keys, Type::BYTEA_ARRAY)])
                .await?;
            Ok(())
        })
    }

    fn remove_of<'a>(&'a self, guest: &'a str) -> StoreWork<'a, ()> {
        Box::pin(async move {
            self.change(ENDING, REMOVE_OF, &[(&guest, Type::TEXT)])
                .await?;
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
