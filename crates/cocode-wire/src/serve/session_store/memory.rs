//! Sessions that are kept in memory, for servers of one process.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    SessionKey, SessionMark, SessionNews, SessionStore, SessionStoreError, StoreWork,
    StoredSession, Whose,
};
use crate::serve::http::retold;

/// Sessions that it keeps.
const MAX_SESSIONS: usize = 100_000;

/// How long it is remembered that something has happened.
const REMEMBERED: Duration = Duration::from_mins(2);

/// Keeps sessions in memory.
#[derive(Debug, Default)]
pub struct MemorySessionStore {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    sessions: HashMap<SessionKey, (StoredSession, Instant)>,
    /// Oldest first; each has the number behind the one before it.
    events: VecDeque<(Instant, Event)>,
    /// How many events there were before the first of these.
    n_forgotten: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Ended(SessionKey),
    Retold(SessionKey, u64),
}

impl MemorySessionStore {
    /// Without any sessions.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_now(&self, session: &StoredSession) -> Result<(), SessionStoreError> {
        let mut kept = self.kept();
        if kept.sessions.len() >= MAX_SESSIONS && !kept.sessions.contains_key(&session.key) {
            return Err(SessionStoreError::TooMany {
                place: "memory".into(),
                limit: MAX_SESSIONS,
            });
        }
        let mut session = session.clone();
        if let Some((known, _)) = kept.sessions.remove(&session.key) {
            session.told = known.told;
            session.version = known.version;
        }
        let used = (session, Instant::now());
        kept.sessions.insert(used.0.key, used);
        Ok(())
    }
}

impl Kept {
    /// The session, if it is still good, which is used now.
    fn used(&mut self, key: &SessionKey, idle: Duration) -> Option<&StoredSession> {
        let (session, last) = self.sessions.get_mut(key)?;
        if last.elapsed() > idle {
            return None;
        }
        *last = Instant::now();
        Some(session)
    }

    /// Notes what a client has said besides, and gives the number of the change.
    fn tell(&mut self, key: &SessionKey, said: &[Bytes]) -> Option<u64> {
        let (session, _) = self.sessions.get_mut(key)?;
        if let Some(told) = retold(&session.told, said) {
            session.told = told;
            session.version += 1;
            let version = session.version;
            self.note(Event::Retold(*key, version));
            return Some(version);
        }
        Some(session.version)
    }

    fn end(&mut self, ends: impl Fn(&StoredSession) -> bool) {
        let ending = self
            .sessions
            .extract_if(|_, (session, _)| ends(session))
            .map(|(key, _)| key)
            .collect::<Vec<_>>();
        for key in ending {
            self.note(Event::Ended(key));
        }
    }

    fn note(&mut self, event: Event) {
        let is_old = |(time, _): &mut (Instant, Event)| time.elapsed() > REMEMBERED;
        while self.events.pop_front_if(is_old).is_some() {
            self.n_forgotten += 1;
        }
        self.events.push_back((Instant::now(), event));
    }

    fn news(&self, mark: Option<&SessionMark>) -> SessionNews {
        let now = self.n_forgotten + self.events.len() as u64;
        let known = mark.map_or(now, |mark| {
            let bytes = mark.as_bytes().try_into();
            bytes.map_or(0, u64::from_be_bytes)
        });
        let mut news = SessionNews {
            mark: SessionMark::new(now.to_be_bytes()),
            ..SessionNews::default()
        };
        let skipped = known.saturating_sub(self.n_forgotten);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        for (_, event) in self.events.iter().skip(skipped) {
            match event {
                Event::Ended(key) => news.ended.push(*key),
                Event::Retold(key, version) => news.retold.push((*key, *version)),
            }
        }
        news
    }
}

impl SessionStore for MemorySessionStore {
    fn put<'a>(&'a self, session: &'a StoredSession) -> StoreWork<'a, ()> {
        Box::pin(async move { self.put_now(session) })
    }

    fn find<'a>(
        &'a self,
        key: &'a SessionKey,
        idle: Duration,
    ) -> StoreWork<'a, Option<StoredSession>> {
        Box::pin(async move { Ok(self.kept().used(key, idle).cloned()) })
    }

    fn tell<'a>(&'a self, key: &'a SessionKey, said: &'a [Bytes]) -> StoreWork<'a, Option<u64>> {
        Box::pin(async move { Ok(self.kept().tell(key, said)) })
    }

    fn touch<'a>(
        &'a self,
        keys: &'a [SessionKey],
        idle: Duration,
    ) -> StoreWork<'a, Vec<SessionKey>> {
        Box::pin(async move {
            let mut kept = self.kept();
            let gone = keys.iter().filter(|key| kept.used(key, idle).is_none());
            Ok(gone.copied().collect())
        })
    }

    fn remove<'a>(&'a self, keys: &'a [SessionKey]) -> StoreWork<'a, ()> {
        Box::pin(async move {
            let mut kept = self.kept();
            for key in keys {
                if kept.sessions.remove(key).is_some() {
                    kept.note(Event::Ended(*key));
                }
            }
            Ok(())
        })
    }

    fn remove_of<'a>(&'a self, whose: &'a Whose) -> StoreWork<'a, ()> {
        Box::pin(async move {
            self.kept().end(|session| {
                whose.includes(session.guest.as_deref(), session.credential.as_deref())
            });
            Ok(())
        })
    }

    fn remove_idle(&self, idle: Duration) -> StoreWork<'_, ()> {
        Box::pin(async move {
            let mut kept = self.kept();
            kept.sessions.retain(|_, (_, last)| last.elapsed() <= idle);
            Ok(())
        })
    }

    fn news<'a>(&'a self, mark: Option<&'a SessionMark>) -> StoreWork<'a, SessionNews> {
        Box::pin(async move { Ok(self.kept().news(mark)) })
    }
}
