//! What is kept of a session for other servers: what its client has set, here or elsewhere, and what of
//! that the store is still to be told.
//!
//! Servers tell the store what changes, and not what there is: what was set at two of them at the same
//! time is put together there. What a server reads there may be older than what it was told by its own
//! client in the meantime, so that comes on top of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::told::{Setting, Subject, Told};
use crate::raw::RawJson;
use crate::serve::session_store::{MAX_TOLD, MAX_TOLD_BYTES, SessionKey, StoredSession};

/// What is kept of a session for other servers.
#[derive(Debug)]
pub(super) struct Kept {
    key: SessionKey,
    state: Mutex<State>,
    /// Whether the store has it.
    is_stored: AtomicBool,
}

#[derive(Debug)]
struct State {
    told: Told,
    /// What was set here and the store is not known to have, each with its number.
    unsaid: BTreeMap<Subject, (u64, Setting)>,
    unsaid_bytes: usize,
    last_noted: u64,
    /// Up to which change it is known here what was set elsewhere.
    version: u64,
}

/// What the store is told at once.
#[derive(Debug)]
pub(super) struct Saying {
    pub(super) messages: Vec<Bytes>,
    up_to: u64,
}

impl Kept {
    /// What a client has told, up to that change of it.
    pub(super) fn new(id: &str, told: Told, version: u64) -> Self {
        Self {
            key: SessionKey::of(id),
            state: Mutex::new(State {
                told,
                unsaid: BTreeMap::new(),
                unsaid_bytes: 0,
                last_noted: 0,
                version,
            }),
            is_stored: AtomicBool::new(false),
        }
    }

    pub(super) fn key(&self) -> SessionKey {
        self.key
    }

    pub(super) fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Acquire)
    }

    pub(super) fn set_stored(&self) {
        self.is_stored.store(true, Ordering::Release);
    }

    /// What another server has to be told.
    pub(super) fn messages(&self) -> Vec<Bytes> {
        self.state().told.messages()
    }

    /// Notes a request that was answered without an error. Gives whether the store has to be told: also
    /// of what is so here already, because another server may have changed it.
    pub(super) fn note(&self, method: &str, params: Option<&RawJson>) -> bool {
        let mut state = self.state();
        let Some((subject, setting)) = state.told.note(method, params) else {
            return false;
        };
        state.add(subject, setting)
    }

    /// What the store is still to be told, unless it knows all.
    pub(super) fn saying(&self) -> Option<Saying> {
        let state = self.state();
        let settings = (1..).zip(state.unsaid.values());
        let messages: Vec<_> = settings
            .map(|(id, (_, setting))| setting.message(id))
            .collect();
        (!messages.is_empty()).then_some(Saying {
            messages,
            up_to: state.last_noted,
        })
    }

    /// The store was told that, which was the change of that number; `None` if it has no such session.
    /// Gives whether another server has changed something that is not known here.
    pub(super) fn said(&self, saying: &Saying, version: Option<u64>) -> bool {
        let mut state = self.state();
        state.unsaid.retain(|_, (number, _)| *number > saying.up_to);
        state.unsaid_bytes = state.unsaid.values().map(size).sum();
        let Some(version) = version else {
            return false;
        };
        if version == state.version + 1 {
            state.version = version;
        }
        version > state.version
    }

    /// Whether that change is known here.
    pub(super) fn knows(&self, version: u64) -> bool {
        version <= self.state().version
    }

    /// Learns what the store has, and gives what has to be done for it here.
    pub(super) fn catch_up(&self, stored: &StoredSession) -> Vec<Setting> {
        let Some(mut now) = Told::read(&stored.told) else {
            return Vec::new();
        };
        let mut state = self.state();
        if stored.version < state.version {
            return Vec::new();
        }
        for (_, setting) in state.unsaid.values() {
            now.set(setting);
        }
        let news = now.since(&state.told);
        state.told = now;
        state.version = stored.version;
        news
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What does not fit because the store has been away for too long is not kept.
    fn add(&mut self, subject: Subject, setting: Setting) -> bool {
        let before = self.unsaid.get(&subject).map_or(0, size);
        let is_another = before == 0;
        self.last_noted += 1;
        let entry = (self.last_noted, setting);
        let bytes = self.unsaid_bytes - before + size(&entry);
        if bytes > MAX_TOLD_BYTES || (is_another && self.unsaid.len() >= MAX_TOLD) {
            return false;
        }
        self.unsaid_bytes = bytes;
        self.unsaid.insert(subject, entry);
        true
    }
}

fn size((_, setting): &(u64, Setting)) -> usize {
    setting.size()
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
