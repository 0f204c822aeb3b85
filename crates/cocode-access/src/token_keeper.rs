//! The tokens that count at this moment: a copy of the store in memory that follows its changes, so that
//! a request waits for nobody; and who was revoked, so that what they still have open can be ended.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{Notify, broadcast, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::principal::PrincipalName;
use crate::token::Token;
use crate::token_store::{TokenHash, TokenRecord, TokenStamp, TokenStore, TokenStoreError};

/// How often the store is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How soon it is looked at again, because somebody comes with a token that is not known.
const LOOK_PAUSE: Duration = Duration::from_millis(100);
/// How long somebody with a token that is not known waits for that look.
const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// How long a store may take for one look.
const STORE_LIMIT: Duration = Duration::from_secs(10);
/// How old the time of the last use gets in the store while a token is used.
const NOTE_USE_EVERY: Duration = Duration::from_mins(5);
/// How long to wait after uses could not be noted.
const NOTE_USE_PAUSE: Duration = Duration::from_mins(1);
/// Revocations that wait for whoever follows them.
const MAX_WAITING_REVOCATIONS: usize = 256;

/// Knows the tokens of a store, and follows its changes until it is dropped.
#[derive(Debug)]
pub struct TokenKeeper {
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    store: Arc<dyn TokenStore>,
    known: RwLock<HashMap<TokenHash, Known>>,
    /// Whether there has been a token at any time.
    has_had_tokens: AtomicBool,
    /// Looks at the store that have begun, and the last of them that is over.
    n_begun: AtomicU64,
    looked: watch::Sender<u64>,
    wanted: Notify,
    revoked: broadcast::Sender<RevokedToken>,
}

struct Known {
    record: TokenRecord,
    /// When it was used last, in seconds since 1970; 0 if never.
    used: AtomicU64,
}

/// Tells who was revoked, one after the other.
#[derive(Debug)]
pub struct Revocations(broadcast::Receiver<RevokedToken>);

/// A token that is not what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedToken {
    /// What it was called, and whoever used it.
    pub name: PrincipalName,
    /// Which one of that name it was, by [`Principal::credential`](crate::Principal::credential): there may
    /// be another by now.
    pub credential: Arc<str>,
}

/// Whose token is not what it was: it was revoked, replaced, or may do less or for another time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// This one. What was opened with it is to be ended; who has a good token may come again.
    One(RevokedToken),
    /// More than could be listed: what everybody has open is to be ended.
    Many,
}

impl TokenKeeper {
    /// Reads the tokens of a store, and follows it from then on. Without the first reading there is no
    /// keeper, because nobody could tell who may come.
    pub async fn open(store: Arc<dyn TokenStore>) -> Result<Self, TokenStoreError> {
        let shared = Arc::new(Shared {
            store,
            known: RwLock::default(),
            has_had_tokens: AtomicBool::new(false),
            n_begun: AtomicU64::new(0),
            looked: watch::Sender::new(0),
            wanted: Notify::new(),
            revoked: broadcast::Sender::new(MAX_WAITING_REVOCATIONS),
        });
        let stamp = shared.store.stamp().await?;
        let tokens = shared.store.list().await?;
        shared.take_over(tokens);
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&shared).follow(stamp));
        Ok(Self {
            shared,
            _tasks: tasks,
        })
    }

    /// Whether requests need a token because there is one, or was since this began. Revoking the last
    /// one opens no door.
    pub fn is_needed(&self) -> bool {
        self.shared.has_had_tokens.load(Ordering::Acquire)
    }

    /// Waits until requests need a token. Does not keep the keeper, and never ends without it.
    pub fn until_needed(&self) -> impl Future<Output = ()> + Send + use<> {
        let shared = Arc::downgrade(&self.shared);
        let mut looked = self.shared.looked.subscribe();
        async move {
            let is_needed = |_: &u64| {
                let shared = shared.upgrade();
                shared.is_some_and(|shared| shared.has_had_tokens.load(Ordering::Acquire))
            };
            if looked.wait_for(is_needed).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// What is known of a token, and that it is used now.
    pub fn find(&self, token: &Token) -> Option<TokenRecord> {
        self.shared.find(&token.hash(), SystemTime::now())
    }

    /// As [`Self::find`], after a look at the store, which may have the token by now. All who wait share
    /// one look, and there are not more than ten in a second.
    pub async fn look_for(&self, token: &Token) -> Option<TokenRecord> {
        self.shared.look().await;
        self.find(token)
    }

    /// Tells who is revoked from now on.
    pub fn revocations(&self) -> Revocations {
        Revocations(self.shared.revoked.subscribe())
    }

    /// Looks at the store, so that changes count which were made before.
    pub async fn refresh(&self) {
        self.shared.look().await;
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn TokenStore> {
        &self.shared.store
    }

    /// Notes when tokens were used, before the process ends.
    pub async fn close(&self) -> Result<(), TokenStoreError> {
        self.shared.note_uses(Duration::ZERO).await
    }
}

impl Revocations {
    /// Waits for the next one. There is none any more when the keeper is gone.
    pub async fn next(&mut self) -> Option<Revoked> {
        match self.0.recv().await {
            Ok(token) => Some(Revoked::One(token)),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                // They are all covered by this.
                self.0 = self.0.resubscribe();
                Some(Revoked::Many)
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Shared {
    fn find(&self, hash: &TokenHash, now: SystemTime) -> Option<TokenRecord> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(hash)?;
        if !found.record.has_expired(now) {
            found.used.store(seconds(now), Ordering::Relaxed);
        }
        Some(found.record.clone())
    }

    /// Waits until a look at the store is over that has begun after this.
    async fn look(&self) {
        let wanted = self.n_begun.load(Ordering::Acquire) + 1;
        let mut looked = self.looked.subscribe();
        self.wanted.notify_one();
        let look = looked.wait_for(|done| *done >= wanted);
        if timeout(LOOK_LIMIT, look).await.is_err() {
            tracing::warn!("the store of tokens takes long to answer");
        }
    }

    async fn follow(self: Arc<Self>, mut stamp: TokenStamp) {
        let mut is_well = true;
        let mut note_uses_at = Instant::now();
        loop {
            let begun = self.n_begun.fetch_add(1, Ordering::AcqRel) + 1;
            let looked = timeout(STORE_LIMIT, self.look_once(&mut stamp)).await;
            self.looked.send_replace(begun);
            let trouble = match looked {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(error.to_string()),
                Err(_elapsed) => Some("the store does not answer".to_owned()),
            };
            if let Some(error) = &trouble
                && is_well
            {
                tracing::warn!(
                    error,
                    "the tokens stay as they were until the store can be read"
                );
            }
            is_well = trouble.is_none();
            if is_well && Instant::now() >= note_uses_at {
                let noted = timeout(STORE_LIMIT, self.note_uses(NOTE_USE_EVERY)).await;
                if !matches!(noted, Ok(Ok(()))) {
                    tracing::warn!("when tokens were used cannot be noted now");
                    note_uses_at = Instant::now() + NOTE_USE_PAUSE;
                }
            }
            let next = Instant::now() + LOOK_EVERY;
            sleep(LOOK_PAUSE).await;
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.wanted.notified() => {}
            }
        }
    }

    async fn look_once(&self, stamp: &mut TokenStamp) -> Result<(), TokenStoreError> {
        let current = self.store.stamp().await?;
        if current != *stamp {
            let tokens = self.store.list().await?;
            self.take_over(tokens);
            *stamp = current;
        }
        Ok(())
    }

    /// Makes these the tokens that count, and tells whose is not what it was.
    fn take_over(&self, tokens: Vec<TokenRecord>) {
        if !tokens.is_empty() {
            self.has_had_tokens.store(true, Ordering::Release);
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        *known = tokens
            .into_iter()
            .map(|record| {
                let same = before
                    .get(&record.hash)
                    .filter(|old| is_same(&old.record, &record));
                let noted = record.last_used.map_or(0, seconds);
                let used = same.map_or(0, |old| old.used.load(Ordering::Relaxed));
                if same.is_some() {
                    before.remove(&record.hash);
                }
                let used = AtomicU64::new(used.max(noted));
                (record.hash, Known { record, used })
            })
            .collect();
        drop(known);
        let mut gone: Vec<RevokedToken> = before
            .into_values()
            .map(|old| RevokedToken {
                name: old.record.name,
                credential: old.record.hash.short(),
            })
            .collect();
        gone.sort_by(|one, other| one.name.cmp(&other.name));
        for token in gone {
            // Nobody may follow.
            let _n_followers = self.revoked.send(token);
        }
    }

    /// Notes uses that are later than what is noted by more than this.
    async fn note_uses(&self, older_than: Duration) -> Result<(), TokenStoreError> {
        let mut used: Vec<(TokenHash, SystemTime)> = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let later = |token: &Known| {
                let used = token.used.load(Ordering::Relaxed);
                let noted = token.record.last_used.map_or(0, seconds);
                let due = noted == 0 || used - noted.min(used) >= older_than.as_secs();
                (used > noted && due).then(|| UNIX_EPOCH + Duration::from_secs(used))
            };
            let due = known
                .values()
                .filter_map(|token| Some((token.record.hash, later(token)?)));
            due.collect()
        };
        if used.is_empty() {
            return Ok(());
        }
        used.sort_by_key(|(hash, _)| *hash.as_bytes());
        self.store.note_use(&used).await?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for (hash, time) in used {
            if let Some(token) = known.get_mut(&hash) {
                token.record.last_used = token.record.last_used.max(Some(time));
            }
        }
        Ok(())
    }
}

/// Whether a token is what it was, for those who have come with it.
fn is_same(old: &TokenRecord, new: &TokenRecord) -> bool {
    (&old.name, old.is_admin, old.expires) == (&new.name, new.is_admin, new.expires)
}

fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        formatter
            .debug_struct("Shared")
            .field("store", &self.store)
            .field("n_tokens", &known.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "token_keeper_tests.rs"]
mod tests;
