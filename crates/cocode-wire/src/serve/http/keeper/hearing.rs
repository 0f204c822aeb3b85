//! What happened to sessions elsewhere, and what follows from it here.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::handler::Shared;
use super::super::revival;
use super::{Away, FOUND_WITHIN, Keeper, MAX_AT_ONCE, MAX_OUTAGE};
use crate::serve::session_store::{SessionKey, SessionNews};

impl Keeper {
    /// Makes sure that what happens elsewhere from now on is heard of.
    pub(super) async fn listen(&self) -> Result<(), Away> {
        if self.mark().is_none() {
            let news = self.ask_within(FOUND_WITHIN, self.store.news(None)).await;
            let news = news.ok_or(Away)?;
            // Whoever was faster has heard as much.
            self.mark().get_or_insert(news.mark);
        }
        Ok(())
    }

    /// What has happened since it was asked for last. Only [`Self::run`] asks.
    async fn news(&self) -> Option<SessionNews> {
        self.listen().await.ok()?;
        let mark = self.mark().clone();
        let news = self.ask(self.store.news(mark.as_ref())).await?;
        *self.mark() = Some(news.mark.clone());
        Some(news)
    }

    /// Learns what has happened to sessions, and ends or changes what is here of them.
    pub(super) async fn hear(&self, shared: &Arc<Shared>) {
        let Some(SessionNews { ended, retold, .. }) = self.news().await else {
            return;
        };
        if self.has_missed.swap(false, Ordering::AcqRel) {
            self.touch(shared).await;
        }
        self.ended_elsewhere(shared, &ended);
        self.note_unheard(shared, retold);
        self.catch_up(shared).await;
    }

    /// Notes which sessions that are here, or are being brought here, were changed elsewhere. Most of
    /// what happens is no business of this server, or was done by it.
    fn note_unheard(&self, shared: &Shared, retold: Vec<(SessionKey, u64)>) {
        if retold.is_empty() {
            return;
        }
        let keys = retold.iter().map(|(key, _)| *key).collect();
        // In this order, because who is brought over is among those who are here before it is not among
        // those who come any more.
        let coming = self.revivals.of_keys(&keys);
        let here = shared.sessions.of_keys(&keys);
        let news = retold
            .into_iter()
            .filter(|(key, version)| match here.get(key) {
                Some(session) => !session.knows(*version),
                None => coming.contains(key),
            });
        self.unheard().extend(news.map(|(key, _)| key));
    }

    /// Learns what was set elsewhere in sessions that are here. Those that it does not come to now, or that
    /// are still on their way here, are left for the next time.
    ///
    /// Only [`Self::run`] does this, and tells the store what was set here: so what is read is not older
    /// than what the store was told.
    async fn catch_up(&self, shared: &Shared) {
        let keys: HashSet<SessionKey> = self.unheard().iter().copied().collect();
        if keys.is_empty() {
            return;
        }
        let coming = self.revivals.of_keys(&keys);
        let here = shared.sessions.of_keys(&keys);
        let is_of_interest = |key: &SessionKey| here.contains_key(key) || coming.contains(key);
        self.unheard()
            .retain(|key| !keys.contains(key) || is_of_interest(key));
        for (key, session) in here.into_iter().take(MAX_AT_ONCE) {
            let Ok(found) = self.find(&key).await else {
                return;
            };
            self.unheard().remove(&key);
            if let Some(stored) = found {
                revival::catch_up(&session, &stored);
            }
        }
    }

    /// Tells which sessions are in use, and learns which of them are not there any more.
    pub(super) async fn touch(&self, shared: &Arc<Shared>) {
        let (in_use, alone) = shared.sessions.in_use(self.touch_interval() * 2);
        let idle = self.idle + MAX_OUTAGE;
        for keys in in_use.chunks(MAX_AT_ONCE) {
            let Some(gone) = self.ask(self.store.touch(keys, idle)).await else {
                return;
            };
            self.ended_elsewhere(shared, &gone);
        }
        // The store was away when these began.
        for session in alone {
            self.keep(&session).await;
        }
    }

    fn ended_elsewhere(&self, shared: &Shared, keys: &[SessionKey]) {
        if !keys.is_empty() {
            let keys: HashSet<SessionKey> = keys.iter().copied().collect();
            self.revivals.give_up(&keys);
            shared.sessions.end_keys(&keys);
        }
    }
}
