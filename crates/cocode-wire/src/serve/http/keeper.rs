//! Keeps sessions where other servers find them: tells the store what becomes of them here, and
//! learns from it what becomes of them elsewhere. No request of a session that is known here waits for
//! any of it.

mod hearing;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::handler::Shared;
use super::kept::Kept;
use super::revival::Revivals;
use super::session::Session;
use crate::serve::session_store::{
    SessionKey, SessionMark, SessionStore, SessionStoreError, StoreWork, StoredSession, Whose,
};

/// How long the store may take for anything that nobody has to wait for, or that can be done without it.
const STORE_WITHIN: Duration = Duration::from_secs(2);

/// How long it may take to find a session, without which its client cannot go on. When a gateway is gone, all
/// that it had come at once.
const FOUND_WITHIN: Duration = Duration::from_secs(15);

/// How often it is asked what happened elsewhere, and told again what it did not take.
const NEWS_INTERVAL: Duration = Duration::from_secs(1);

/// How long there must have been no session here before nobody asks any more.
const REST_AFTER: Duration = Duration::from_mins(10);

/// How often it is told which sessions are in use, unless they end sooner.
const TOUCH_INTERVAL: Duration = Duration::from_mins(1);

/// A session that is in use here is good, even if the store was away for so long.
const MAX_OUTAGE: Duration = Duration::from_hours(24);

/// How often it is told to forget sessions that nobody uses.
const SWEEP_INTERVAL: Duration = Duration::from_mins(5);

/// Nobody comes back after so long, and clocks can count it.
const MAX_IDLE: Duration = Duration::from_hours(24 * 365);

/// Sessions that it is told of at once.
const MAX_AT_ONCE: usize = 500;

/// Ends that wait until the store takes them.
const MAX_WAITING: usize = 10_000;

/// Keeps the sessions of a server.
#[derive(Debug)]
pub(super) struct Keeper {
    store: Arc<dyn SessionStore>,
    /// How long a session is good without being used.
    idle: Duration,
    pub(super) revivals: Revivals,
    waiting: Mutex<Waiting>,
    wake: Notify,
    is_away: AtomicBool,
    /// The store was away, and what it has missed is still to be told.
    has_missed: AtomicBool,
    /// Up to where it is known what happened elsewhere.
    mark: Mutex<Option<SessionMark>>,
    /// Sessions that were changed elsewhere in a way that is not known here yet.
    unheard: Mutex<HashSet<SessionKey>>,
    is_closing: AtomicBool,
}

/// What the store is still to be told.
#[derive(Debug, Default)]
struct Waiting {
    retold: BTreeMap<SessionKey, Arc<Kept>>,
    ended: BTreeSet<SessionKey>,
    /// Who was sent away.
    evicted: BTreeSet<Whose>,
}

impl Keeper {
    pub(super) fn new(store: Arc<dyn SessionStore>, idle: Duration) -> Self {
        Self {
            store,
            idle: idle.min(MAX_IDLE),
            revivals: Revivals::default(),
            waiting: Mutex::default(),
            wake: Notify::new(),
            is_away: AtomicBool::new(false),
            has_missed: AtomicBool::new(false),
            mark: Mutex::default(),
            unheard: Mutex::default(),
            is_closing: AtomicBool::new(false),
        }
    }

    /// Keeps a session from now on. If the store is away, only this server has it for the time being.
    pub(super) async fn keep(&self, session: &Session) {
        if self.is_away() {
            // Nobody waits for it again and again.
            return;
        }
        if let Some(stored) = session.stored()
            && self.listen().await.is_ok()
            && self.ask(self.store.put(&stored)).await.is_some()
        {
            session.set_stored();
        }
    }

    /// The session of that key. If it ends elsewhere from now on, that is heard of.
    pub(super) async fn find(&self, key: &SessionKey) -> Result<Option<StoredSession>, Away> {
        if self.waiting().ended.contains(key) {
            // The store will be told.
            return Ok(None);
        }
        self.listen().await?;
        let finding = self.store.find(key, self.idle);
        let found = self.ask_within(FOUND_WITHIN, finding).await;
        found.ok_or(Away)
    }

    /// A session was ended by its client. Once this is over, nobody finds it any more, unless the store
    /// is away, which is told later then.
    pub(super) async fn end(&self, key: SessionKey) {
        if self.ask(self.store.remove(&[key])).await.is_none() {
            self.end_soon(key);
        }
    }

    /// The same, without waiting for it.
    pub(super) fn end_soon(&self, key: SessionKey) {
        let mut waiting = self.waiting();
        if waiting.ended.len() < MAX_WAITING {
            waiting.ended.insert(key);
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// All sessions of somebody have ended.
    pub(super) fn end_of(&self, whose: Whose) {
        let mut waiting = self.waiting();
        if waiting.evicted.len() < MAX_WAITING {
            waiting.evicted.insert(whose);
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// The client has set something.
    pub(super) fn retell(&self, kept: Arc<Kept>) {
        self.waiting().retold.insert(kept.key(), kept);
        self.wake.notify_one();
    }

    /// Talks with the store for as long as the server serves.
    pub(super) async fn run(self: Arc<Self>, shared: Weak<Shared>) {
        let mut heard = Instant::now();
        let (mut touched, mut swept) = (heard, heard);
        // When there was a session here last.
        let mut in_use: Option<Instant> = None;
        loop {
            // What is to be told is told at once, unless the store has just failed to take it.
            let soon = async {
                if self.is_away() {
                    std::future::pending::<()>().await;
                } else {
                    self.wake.notified().await;
                }
            };
            tokio::select! {
                () = soon => {}
                () = tokio::time::sleep_until(heard + NEWS_INTERVAL) => {}
            }
            self.flush().await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if self.is_closing.load(Ordering::Acquire) {
                return;
            }
            let is_empty = shared.sessions.is_empty() && self.revivals.is_resting();
            if !is_empty {
                in_use = Some(Instant::now());
            }
            let is_lively = in_use.is_some_and(|last| last.elapsed() < REST_AFTER);
            if heard.elapsed() >= NEWS_INTERVAL {
                heard = Instant::now();
                if is_lively {
                    self.hear(&shared).await;
                } else {
                    // Nobody is interested. Who comes next begins to listen anew.
                    self.mark().take();
                }
            }
            if touched.elapsed() >= self.touch_interval() {
                touched = Instant::now();
                self.touch(&shared).await;
            }
            if swept.elapsed() >= SWEEP_INTERVAL && in_use.is_some() {
                swept = Instant::now();
                self.ask(self.store.remove_idle(self.idle)).await;
            }
        }
    }

    /// The server has ended: nothing is brought over any more, and the store is told the rest by
    /// whoever [runs](Self::run) this.
    pub(super) fn close(&self) {
        self.revivals.stop();
        self.is_closing.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Tells the store what it is still to be told. What it does not take waits.
    async fn flush(&self) {
        let mut waiting = std::mem::take(&mut *self.waiting());
        let is_through = self.pass_on(&mut waiting).await.is_some();
        if !is_through {
            let mut now = self.waiting();
            now.ended.append(&mut waiting.ended);
            now.evicted.append(&mut waiting.evicted);
            // What is to be told of a session is with the session, whenever this was noted.
            now.retold.append(&mut waiting.retold);
        }
    }

    /// Tells the store, up to where it does not take it.
    async fn pass_on(&self, waiting: &mut Waiting) -> Option<()> {
        // Who has to go waits for nobody who has something to set.
        while let Some(whose) = waiting.evicted.first() {
            self.ask(self.store.remove_of(whose)).await?;
            waiting.evicted.pop_first();
        }
        while !waiting.ended.is_empty() {
            let keys = waiting.ended.iter().copied();
            let keys: Vec<SessionKey> = keys.take(MAX_AT_ONCE).collect();
            self.ask(self.store.remove(&keys)).await?;
            waiting.ended.retain(|key| !keys.contains(key));
        }
        while let Some(entry) = waiting.retold.first_entry() {
            let (key, kept) = (*entry.key(), Arc::clone(entry.get()));
            if let Some(saying) = kept.saying() {
                let version = self.ask(self.store.tell(&key, &saying.messages)).await?;
                if kept.said(&saying, version) {
                    self.unheard().insert(key);
                }
            }
            waiting.retold.remove(&key);
        }
        Some(())
    }

    /// Waits for the store within bounds. `None` if it is away, which is said once.
    async fn ask<T>(&self, work: StoreWork<'_, T>) -> Option<T> {
        self.ask_within(STORE_WITHIN, work).await
    }

    async fn ask_within<T>(&self, within: Duration, work: StoreWork<'_, T>) -> Option<T> {
        let outcome = match timeout(within, work).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(SessionStoreError::Unusable {
                place: "the store".into(),
                action: "reached",
                why: format!("no answer within {} seconds", within.as_secs()),
            }),
        };
        match outcome {
            Err(error @ SessionStoreError::TooMany { .. }) => {
                tracing::warn!(%error, "a session is not kept for other gateways");
                None
            }
            Ok(done) => {
                if self.is_away.swap(false, Ordering::AcqRel) {
                    self.has_missed.store(true, Ordering::Release);
                    tracing::warn!("sessions are kept for other gateways again");
                }
                Some(done)
            }
            Err(error) => {
                if !self.is_away.swap(true, Ordering::AcqRel) {
                    tracing::warn!(
                        %error,
                        "until it can be used again, sessions that begin here end with this gateway, and \
                         sessions of others are not found"
                    );
                }
                None
            }
        }
    }

    fn touch_interval(&self) -> Duration {
        TOUCH_INTERVAL.min(self.idle / 4)
    }

    fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Acquire)
    }

    fn mark(&self) -> MutexGuard<'_, Option<SessionMark>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unheard(&self) -> MutexGuard<'_, HashSet<SessionKey>> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The store could not be asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Away;
