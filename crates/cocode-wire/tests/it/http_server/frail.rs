//! A store of sessions that fails when it is told to, and counts what it is asked for.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::serve::{
    MemorySessionStore, SessionKey, SessionMark, SessionNews, SessionStore, SessionStoreError,
    StoreWork, StoredSession, Whose,
};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Well,
    Refusing,
    Hanging,
}

/// Keeps sessions in memory, if it is well.
#[derive(Debug)]
pub(super) struct Frail {
    kept: MemorySessionStore,
    mood: watch::Sender<Mood>,
    /// Whether those who look get what they have found.
    is_held: watch::Sender<bool>,
    looks: AtomicUsize,
    news: AtomicUsize,
    used: AtomicUsize,
}

impl Default for Frail {
    fn default() -> Self {
        Self {
            kept: MemorySessionStore::new(),
            mood: watch::Sender::new(Mood::Well),
            is_held: watch::Sender::new(false),
            looks: AtomicUsize::new(0),
            news: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
        }
    }
}

impl Frail {
    /// Fails at once from now on.
    pub(super) fn refuse(&self) {
        self.mood.send_replace(Mood::Refusing);
    }

    /// Answers nothing from now on.
    pub(super) fn hang(&self) {
        self.mood.send_replace(Mood::Hanging);
    }

    /// Is well again.
    pub(super) fn come_back(&self) {
        self.mood.send_replace(Mood::Well);
    }

    /// Finds sessions as they are now, but does not give them out before they are [let go](Self::let_go).
    pub(super) fn hold_what_is_found(&self) {
        self.is_held.send_replace(true);
    }

    /// Gives out what was found.
    pub(super) fn let_go(&self) {
        self.is_held.send_replace(false);
    }

    /// How often a server has looked for a session.
    pub(super) fn n_looks(&self) -> usize {
        self.looks.load(Ordering::SeqCst)
    }

    /// How often it was asked for news.
    pub(super) fn n_news(&self) -> usize {
        self.news.load(Ordering::SeqCst)
    }

    /// How often it was asked for anything.
    pub(super) fn n_used(&self) -> usize {
        self.used.load(Ordering::SeqCst)
    }

    fn then<'a, T: 'a>(&'a self, work: StoreWork<'a, T>) -> StoreWork<'a, T> {
        self.used.fetch_add(1, Ordering::SeqCst);
        let mood = *self.mood.borrow();
        match mood {
            Mood::Well => work,
            Mood::Hanging => Box::pin(std::future::pending()),
            Mood::Refusing => Box::pin(async {
                Err(SessionStoreError::Unusable {
                    place: "a test".into(),
                    action: "used",
                    why: "as asked".into(),
                })
            }),
        }
    }
}

impl SessionStore for Frail {
    fn put<'a>(&'a self, session: &'a StoredSession) -> StoreWork<'a, ()> {
        self.then(self.kept.put(session))
    }

    fn find<'a>(
        &'a self,
        key: &'a SessionKey,
        idle: Duration,
    ) -> StoreWork<'a, Option<StoredSession>> {
        // Tests look with a bound of their own.
        let is_test = idle == Duration::MAX;
        let finding = self.then(self.kept.find(key, idle));
        Box::pin(async move {
            let found = finding.await;
            if !is_test {
                self.looks.fetch_add(1, Ordering::SeqCst);
                let mut is_held = self.is_held.subscribe();
                drop(is_held.wait_for(|is_held| !is_held).await);
            }
            found
        })
    }

    fn tell<'a>(&'a self, key: &'a SessionKey, said: &'a [Bytes]) -> StoreWork<'a, Option<u64>> {
        self.then(self.kept.tell(key, said))
    }

    fn touch<'a>(
        &'a self,
        keys: &'a [SessionKey],
        idle: Duration,
    ) -> StoreWork<'a, Vec<SessionKey>> {
        self.then(self.kept.touch(keys, idle))
    }

    fn remove<'a>(&'a self, keys: &'a [SessionKey]) -> StoreWork<'a, ()> {
        self.then(self.kept.remove(keys))
    }

    fn remove_of<'a>(&'a self, whose: &'a Whose) -> StoreWork<'a, ()> {
        self.then(self.kept.remove_of(whose))
    }

    fn remove_idle(&self, idle: Duration) -> StoreWork<'_, ()> {
        self.then(self.kept.remove_idle(idle))
    }

    fn news<'a>(&'a self, mark: Option<&'a SessionMark>) -> StoreWork<'a, SessionNews> {
        self.news.fetch_add(1, Ordering::SeqCst);
        self.then(self.kept.news(mark))
    }
}
