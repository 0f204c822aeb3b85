//! The table of sessions: who is in it, how many there may be, and who has been away too long.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::crypto::SecureRandom;
use tokio::runtime::Handle;

use super::guests::{Guests, Visitor};
use super::kept::Kept;
use super::options::HttpLimits;
use super::session::{Ground, NewSession, Session, Transport};
use super::streams::{Outlet, Streams};
use super::told::Told;
use crate::serve::service::Endpoint;
use crate::serve::session_store::{SessionKey, Whose};

/// Nobody guesses this much.
const ID_BYTES: usize = 24;

/// Whether this may be the id of a session: 24 bytes as text.
pub(super) fn is_id(text: &str) -> bool {
    let is_of_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    text.len() == ID_BYTES / 3 * 4 && text.bytes().all(is_of_id)
}

/// All sessions of a server.
pub(super) struct Sessions {
    table: Mutex<HashMap<String, Arc<Session>>>,
    taken: Arc<AtomicUsize>,
    limits: HttpLimits,
    random: &'static dyn SecureRandom,
    runtime: Handle,
}

/// One of the sessions that there may be at a time.
#[derive(Debug)]
pub(super) struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Sessions {
    pub(super) fn new(limits: HttpLimits, runtime: Handle) -> Self {
        Self {
            table: Mutex::default(),
            taken: Arc::default(),
            limits,
            random: rustls::crypto::ring::default_provider().secure_random,
            runtime,
        }
    }

    /// A new session that nobody can find yet. `None` if there are too many. Other servers may go on
    /// with it by what it has `told`.
    pub(super) fn open(
        &self,
        endpoint: &dyn Endpoint,
        ground: Ground,
        told: Option<Told>,
    ) -> Option<Arc<Session>> {
        let id: [u8; ID_BYTES] = self.random()?;
        let id = URL_SAFE_NO_PAD.encode(id);
        let kept = told.map(|told| Kept::new(&id, told, 0));
        self.begin(endpoint, ground, (id, kept))
    }

    /// A session of another server that goes on here. Nobody can find it yet.
    pub(super) fn reopen(
        &self,
        id: String,
        endpoint: &dyn Endpoint,
        ground: Ground,
        kept: Kept,
    ) -> Option<Arc<Session>> {
        self.begin(endpoint, ground, (id, Some(kept)))
    }

    fn begin(
        &self,
        endpoint: &dyn Endpoint,
        ground: Ground,
        (id, kept): (String, Option<Kept>),
    ) -> Option<Arc<Session>> {
        let before = self.taken.fetch_add(1, Ordering::AcqRel);
        let seat = Seat(Arc::clone(&self.taken));
        if before >= self.limits.max_sessions {
            return None;
        }
        let resumable = ground.transport == Transport::Streamable;
        let origin = u32::from_be_bytes(self.random()?);
        let streams = Arc::new(Streams::new(self.limits, resumable, origin));
        let conversation = endpoint.converse(Arc::new(Outlet(Arc::clone(&streams))));
        Some(Arc::new(Session::new(NewSession {
            kept,
            id,
            ground,
            conversation,
            streams,
            runtime: self.runtime.clone(),
            seat,
        })))
    }

    fn random<const N: usize>(&self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        if self.random.fill(&mut bytes).is_err() {
            tracing::error!("the system gives no random numbers, so no session can begin");
            return None;
        }
        Some(bytes)
    }

    /// Lets a session be found, unless its guest was sent away meanwhile, with which it ends.
    #[must_use]
    pub(super) fn admit(&self, session: &Arc<Session>, guests: &Guests) -> bool {
        let id = session.id.clone();
        self.table().insert(id, Arc::clone(session));
        // Whoever sends the guest away from now on finds the session.
        let stays = !guests.has_evicted(&session.ground.visitor);
        if !stays {
            self.end(session);
        }
        stays
    }

    /// The session of that id, if it belongs to that ground.
    pub(super) fn find(&self, id: &str, ground: &Ground) -> Option<Arc<Session>> {
        let table = self.table();
        let session = table.get(id).filter(|session| session.ground == *ground);
        session.cloned()
    }

    /// The session of that id and guest over HTTP+SSE, whatever its endpoint.
    pub(super) fn find_sse(&self, id: &str, visitor: &Visitor) -> Option<Arc<Session>> {
        let table = self.table();
        let session = table.get(id).filter(|session| {
            let ground = &session.ground;
            ground.transport == Transport::Sse && ground.visitor == *visitor
        });
        session.cloned()
    }

    /// Lets a session not be found any more.
    pub(super) fn forget(&self, session: &Session) {
        let known = self.table().remove(&session.id);
        // The last one to hold it ends it, and that must not happen under the lock.
        drop(known);
    }

    /// Ends a session.
    pub(super) fn end(&self, session: &Session) {
        self.forget(session);
        session.end();
    }

    /// Whether there is any.
    pub(super) fn is_empty(&self) -> bool {
        self.table().is_empty()
    }

    /// Ends the sessions that have been idle for too long.
    pub(super) fn end_idle(&self) {
        let limit = self.limits.session_idle;
        self.end_where(|session| session.is_idle(limit));
    }

    /// Ends the sessions that have no request under way.
    pub(super) fn end_resting(&self) {
        self.end_where(|session| !session.is_working());
    }

    /// Ends the sessions of somebody.
    pub(super) fn end_of(&self, whose: &Whose) {
        self.end_where(|session| session.ground.visitor.is_meant(whose));
    }

    /// Tells of every session.
    pub(super) fn facts<F>(&self, of: impl Fn(&Session) -> F) -> Vec<F> {
        self.table().values().map(|session| of(session)).collect()
    }

    /// Ends the sessions of those keys.
    pub(super) fn end_keys(&self, keys: &HashSet<SessionKey>) {
        self.end_where(|session| session.key().is_some_and(|key| keys.contains(&key)));
    }

    /// Those of these sessions that are here.
    pub(super) fn of_keys(&self, keys: &HashSet<SessionKey>) -> HashMap<SessionKey, Arc<Session>> {
        let table = self.table();
        let of_keys = table.values().filter_map(|session| {
            let key = session.key().filter(|key| keys.contains(key))?;
            Some((key, Arc::clone(session)))
        });
        of_keys.collect()
    }

    /// The sessions that were used lately: those that the store has, and those that it should have.
    pub(super) fn in_use(&self, lately: Duration) -> (Vec<SessionKey>, Vec<Arc<Session>>) {
        let table = self.table();
        let (mut stored, mut alone) = (Vec::new(), Vec::new());
        for session in table.values().filter(|session| !session.is_idle(lately)) {
            match session.stored_key() {
                Some(key) => stored.push(key),
                None if session.key().is_some() => alone.push(Arc::clone(session)),
                None => {}
            }
        }
        (stored, alone)
    }

    /// Ends all sessions.
    pub(super) fn end_all(&self) {
        self.end_where(|_| true);
    }

    /// Ends the sessions of which this says so.
    pub(super) fn end_where(&self, ends: impl Fn(&Session) -> bool) {
        let mut ending = Vec::new();
        self.table().retain(|_, session| {
            let ends = ends(session);
            if ends {
                ending.push(Arc::clone(session));
            }
            !ends
        });
        // An endpoint that hears of an end may well look at other sessions.
        for session in ending {
            session.end();
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Sessions")
            .field("open", &self.table().len())
            .finish_non_exhaustive()
    }
}
