//! Who holds which conversation, as far as this process knows and asks for.
//!
//! A held conversation is a lock of PostgreSQL, of the session of one connection that all leases of a
//! store share. A session may take the same lock twice, so what it has is also written down here. A lock
//! that is let go is put on a list, because letting go must not wait; a task gives it back, or whoever
//! uses the connection next.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_agent::ConversationId;
use cocode_agent::keeping::{Hold, random_bytes};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::task::JoinSet;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::trouble::Trouble;
use crate::connection::Lone;
use crate::database::Database;
use crate::error::DatabaseError;

/// What is tried here, for messages.
const TAKE: &str = "take a conversation";
const FREE: &str = "let go of a conversation";

/// Locks of conversations are in the space of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LockKey {
    pub(super) first: i32,
    pub(super) second: i32,
}

/// The same of the column `id`, in SQL.
pub(super) const FIRST_OF_ID: &str = "('x' || left(id, 8))::bit(32)::integer";
pub(super) const SECOND_OF_ID: &str = "('x' || right(id, 8))::bit(32)::integer";

impl LockKey {
    /// The first and the last eight digits of an id, all of which are random.
    pub(super) fn of(id: &ConversationId) -> Self {
        let digits: Vec<u32> = id.as_str().chars().filter_map(|c| c.to_digit(16)).collect();
        let number = |digits: &[u32]| digits.iter().fold(0_u32, |sum, digit| (sum << 4) | digit);
        let ends = (digits.first_chunk::<8>(), digits.last_chunk::<8>());
        let (first, second) = (
            ends.0.map_or(0, |d| number(d)),
            ends.1.map_or(0, |d| number(d)),
        );
        Self {
            first: first.cast_signed(),
            second: second.cast_signed(),
        }
    }
}

/// The locks of a store.
#[derive(Debug)]
pub(super) struct Locks {
    database: Database,
    current: Mutex<Option<Current>>,
    /// Whose turn it is to open another session.
    opening: Semaphore,
}

/// The session that takes locks now, and the task that gives them back.
#[derive(Debug)]
struct Current {
    session: Arc<Session>,
    _giving_back: JoinSet<()>,
}

/// A connection whose session has locks.
struct Session {
    database: Database,
    /// `None`: it was given up, because nobody knows any more what it has locked.
    lone: Mutex<Option<Arc<Lone>>>,
    take: Statement,
    free: Statement,
    /// One thing at a time, so that a lock is free before it is taken again.
    turn: Semaphore,
    locked: Mutex<Locked>,
    /// Something is to be given back.
    wake: Notify,
}

/// What a session has locked.
#[derive(Default)]
struct Locked {
    held: BTreeSet<LockKey>,
    /// To be given back.
    let_go: Vec<LockKey>,
}

/// What has become of the wish to hold a conversation.
#[derive(Debug)]
pub(super) enum Taken {
    Now(Arc<Held>),
    /// By this store, which knows that it was not let go.
    IsHeldHere,
    /// By another, which may just have let it go.
    IsHeldElsewhere,
}

/// A conversation that is held.
pub(super) struct Held {
    session: Arc<Session>,
    key: LockKey,
    token: i64,
    /// Unless the database has said that it is somebody else's.
    may_be_locked: bool,
    /// Whose turn it is to write.
    writing: Semaphore,
    /// The number of the last record. `None`: it is to be read, because a record was on its way when
    /// its writer stopped waiting.
    last_number: Mutex<Option<i64>>,
}

impl Locks {
    pub(super) fn new(database: Database) -> Self {
        Self {
            database,
            current: Mutex::default(),
            opening: Semaphore::new(1),
        }
    }

    /// Takes a lock, unless somebody has it.
    pub(super) async fn take(&self, id: &ConversationId) -> Result<Taken, Trouble> {
        let token = i64::from_ne_bytes(random_bytes()?);
        let session = self.session().await?;
        let key = LockKey::of(id);
        let _turn = turn(&self.database, TAKE, &session.turn).await?;
        session.give_back().await?;
        if !session.locked().held.insert(key) {
            return Ok(Taken::IsHeldHere);
        }
        // From here on it is given back whatever happens, for nobody may wait for the answer.
        let mut held = Held {
            session: Arc::clone(&session),
            key,
            token,
            may_be_locked: true,
            writing: Semaphore::new(1),
            last_number: Mutex::default(),
        };
        let values: [&(dyn ToSql + Sync); 2] = [&key.first, &key.second];
        let rows = session.ask(TAKE, &session.take, &values).await?;
        held.may_be_locked = rows.first().is_some_and(|row| row.get(0));
        Ok(if held.may_be_locked {
            Taken::Now(Arc::new(held))
        } else {
            Taken::IsHeldElsewhere
        })
    }

    /// Gives back what this store has let go, so that nobody sees it as held who asks now. Without
    /// success the connection is given up, and everything is free with that.
    pub(super) async fn settle(&self) {
        if let Some(session) = self.current() {
            session.settle().await;
        }
    }

    /// The session, or another one if it is broken.
    async fn session(&self) -> Result<Arc<Session>, Trouble> {
        let _turn = turn(&self.database, TAKE, &self.opening).await?;
        if let Some(session) = self.current().filter(|session| !session.is_lost()) {
            return Ok(session);
        }
        // The old one is closed first, with what may still be locked by it.
        self.replace(None);
        let session = Arc::new(Session::open(&self.database).await?);
        let mut giving_back = JoinSet::new();
        let own = Arc::clone(&session);
        giving_back.spawn(async move {
            while !own.is_lost() {
                own.wake.notified().await;
                own.settle().await;
            }
        });
        self.replace(Some(Current {
            session: Arc::clone(&session),
            _giving_back: giving_back,
        }));
        Ok(session)
    }

    fn current(&self) -> Option<Arc<Session>> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.as_ref().map(|current| Arc::clone(&current.session))
    }

    fn replace(&self, by: Option<Current>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        *current = by;
    }
}

/// Waits for a turn, as long as work may take.
async fn turn<'a>(
    database: &Database,
    action: &'static str,
    turns: &'a Semaphore,
) -> Result<SemaphorePermit<'a>, Trouble> {
    // Nobody closes it, so that nothing but time can be the reason.
    let waiting = async { Ok(turns.acquire().await.ok()) };
    let turn = database.timely(action, waiting).await?;
    turn.ok_or_else(|| broke(database, action))
}

fn broke(database: &Database, action: &'static str) -> Trouble {
    Trouble::Cut(DatabaseError::Failed {
        place: database.place().to_owned(),
        action,
        why: "the connection that holds conversations broke".to_owned(),
    })
}

impl Session {
    async fn open(database: &Database) -> Result<Self, Trouble> {
        let lone = database.lone().await?;
        let preparing = async {
            let failed = database.failed(TAKE);
            // Nothing happens on it for as long as a turn takes. Older servers do not know the setting.
            let query = "SELECT set_config(name, '0', false) FROM pg_catalog.pg_settings
                         WHERE name = 'idle_session_timeout'";
            lone.query(query, &[]).await.map_err(&failed)?;
            let query = "SELECT pg_try_advisory_lock($1, $2)";
            let take = lone.prepare(query).await.map_err(&failed)?;
            let query = "SELECT pg_advisory_unlock(first, second)
                         FROM unnest($1::integer[], $2::integer[]) AS keys (first, second)";
            let free = lone.prepare(query).await.map_err(&failed)?;
            Ok((take, free))
        };
        let (take, free) = database.timely(TAKE, preparing).await?;
        Ok(Self {
            database: database.clone(),
            lone: Mutex::new(Some(Arc::new(lone))),
            take,
            free,
            turn: Semaphore::new(1),
            locked: Mutex::default(),
            wake: Notify::new(),
        })
    }

    /// Whether its locks are not ours any more.
    fn is_lost(&self) -> bool {
        self.lone().is_none()
    }

    /// The connection, if it is still there.
    fn lone(&self) -> Option<Arc<Lone>> {
        let lone = self.lone.lock().unwrap_or_else(PoisonError::into_inner);
        lone.clone().filter(|lone| !lone.is_closed())
    }

    /// Closes the connection, once nothing is under way on it: all that it has locked is free then.
    fn give_up(&self) {
        let mut lone = self.lone.lock().unwrap_or_else(PoisonError::into_inner);
        *lone = None;
        drop(lone);
        self.wake.notify_one();
    }

    fn locked(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks something by this connection, within its deadline. Without an answer nobody knows what is
    /// locked, so that it is given up.
    async fn ask(
        &self,
        action: &'static str,
        statement: &Statement,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        let asking = async {
            let Some(lone) = self.lone() else {
                return Ok(Err(broke(&self.database, action)));
            };
            let asked = lone.query(statement, values).await;
            Ok(asked.map_err(Trouble::doing(&self.database, action)))
        };
        let asked = self.database.timely(action, asking).await;
        let asked = asked.unwrap_or_else(|slow| Err(slow.into()));
        if asked.is_err() {
            self.give_up();
        }
        asked
    }

    async fn settle(&self) {
        if self.is_lost() || self.locked().let_go.is_empty() {
            return;
        }
        let given_back = match turn(&self.database, FREE, &self.turn).await {
            Ok(_turn) => self.give_back().await,
            Err(trouble) => Err(trouble),
        };
        if let Err(trouble) = given_back {
            tracing::warn!(?trouble, "conversations are let go by closing a connection");
        }
    }

    /// Gives back what was let go. Only by whose turn it is.
    async fn give_back(&self) -> Result<(), Trouble> {
        let keys = self.locked().let_go.clone();
        if keys.is_empty() {
            return Ok(());
        }
        let (first, second): (Vec<i32>, Vec<i32>) =
            keys.iter().map(|key| (key.first, key.second)).unzip();
        let values: [&(dyn ToSql + Sync); 2] = [&first, &second];
        self.ask(FREE, &self.free, &values).await?;
        // More may have been let go in between, at the end. What is given back twice, because nobody
        // waited for this, does no harm: it is taken by nobody in between.
        self.locked().let_go.drain(..keys.len());
        Ok(())
    }
}

impl Held {
    /// Whether somebody else may have it by now.
    pub(super) fn is_lost(&self) -> bool {
        self.session.is_lost()
    }

    /// Waits until it is one's turn to write.
    pub(super) async fn turn(&self, action: &'static str) -> Result<SemaphorePermit<'_>, Trouble> {
        turn(&self.session.database, action, &self.writing).await
    }

    /// The number of the last record, if it is known.
    pub(super) fn last_number(&self) -> Option<i64> {
        *self
            .last_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of that from here on.
    pub(super) fn know(&self, last: Option<i64>) {
        *self
            .last_number
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = last;
    }
}

impl Hold for Held {
    fn token(&self) -> i64 {
        self.token
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut locked = self.session.locked();
        locked.held.remove(&self.key);
        if self.may_be_locked {
            locked.let_go.push(self.key);
        }
        drop(locked);
        self.session.wake.notify_one();
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Held")
            .field("key", &self.key)
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "locks_tests.rs"]
mod tests;
