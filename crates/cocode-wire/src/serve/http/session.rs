//! One session: a client that comes again and again, each time on another connection perhaps.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client_name::ClientName;
use super::guests::Visitor;
use super::kept::Kept;
use super::sessions::Seat;
use super::streams::{STANDALONE, Streams};
use super::told::Setting;
use crate::raw::RawJson;
use crate::serve::service::{Answer, Conversation, Serving};
use crate::serve::session_store::{SessionKey, StoredSession};

/// The first revision whose clients take an event without data; older ones fail on it.
const FIRST_PRIMED: &str = "2025-11-25";

/// Where a session may be used, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ground {
    pub(super) endpoint: Option<String>,
    pub(super) transport: Transport,
    pub(super) visitor: Visitor,
}

/// What carries a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Streamable,
    /// HTTP+SSE: ends with its one stream.
    Sse,
}

/// A session.
pub(super) struct Session {
    pub(super) id: String,
    pub(super) ground: Ground,
    pub(super) conversation: Arc<dyn Conversation>,
    pub(super) streams: Arc<Streams>,
    activity: Arc<Activity>,
    /// What the client does not wait for on a connection; `None` once the session has ended.
    tasks: Mutex<Option<JoinSet<()>>>,
    revision: OnceLock<String>,
    /// What other servers may find of it, if there is a store.
    kept: Option<Arc<Kept>>,
    pub(super) client: ClientName,
    failed: AtomicBool,
    ended: AtomicBool,
    since: Instant,
    runtime: Handle,
    _seat: Seat,
}

#[derive(Debug)]
struct Activity {
    requests: AtomicUsize,
    readers: AtomicUsize,
    last: Mutex<Instant>,
}

/// Something that keeps a session from being idle.
#[derive(Debug)]
pub(super) struct Active {
    activity: Arc<Activity>,
    kind: ActiveKind,
}

#[derive(Debug)]
enum ActiveKind {
    Request,
    Reader,
}

/// The parts of a new session.
pub(super) struct NewSession {
    pub(super) id: String,
    pub(super) ground: Ground,
    pub(super) conversation: Arc<dyn Conversation>,
    pub(super) streams: Arc<Streams>,
    pub(super) runtime: Handle,
    pub(super) seat: Seat,
    pub(super) kept: Option<Kept>,
}

impl Session {
    pub(super) fn new(parts: NewSession) -> Self {
        let NewSession {
            id,
            ground,
            conversation,
            streams,
            runtime,
            seat,
            kept,
        } = parts;
        Self {
            id,
            ground,
            conversation,
            streams,
            activity: Arc::new(Activity {
                requests: AtomicUsize::new(0),
                readers: AtomicUsize::new(0),
                last: Mutex::new(Instant::now()),
            }),
            tasks: Mutex::new(Some(JoinSet::new())),
            revision: OnceLock::new(),
            kept: kept.map(Arc::new),
            client: ClientName::default(),
            failed: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            since: Instant::now(),
            runtime,
            _seat: seat,
        }
    }

    /// A request begins, unless `limit` are under way.
    pub(super) fn begin_request(&self, limit: usize) -> Option<Active> {
        let before = self.activity.requests.fetch_add(1, Ordering::AcqRel);
        let active = Active {
            activity: Arc::clone(&self.activity),
            kind: ActiveKind::Request,
        };
        (before < limit).then_some(active)
    }

    /// Somebody listens to a stream.
    pub(super) fn begin_reading(&self) -> Active {
        self.activity.readers.fetch_add(1, Ordering::AcqRel);
        Active {
            activity: Arc::clone(&self.activity),
            kind: ActiveKind::Reader,
        }
    }

    /// The client has shown itself without a request.
    pub(super) fn touch(&self) {
        self.activity.touch();
    }

    /// Whether nothing has happened for that long.
    pub(super) fn is_idle(&self, limit: Duration) -> bool {
        self.idle() > limit
    }

    /// How long nothing has happened.
    pub(super) fn idle(&self) -> Duration {
        let activity = &self.activity;
        if activity.readers.load(Ordering::Acquire) > 0 || self.is_working() {
            return Duration::ZERO;
        }
        activity.last().elapsed()
    }

    /// How long it has been there.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether requests are under way.
    pub(super) fn is_working(&self) -> bool {
        self.activity.requests.load(Ordering::Acquire) > 0
    }

    /// The revision that was agreed on, once it was.
    pub(super) fn revision(&self) -> Option<&str> {
        self.revision.get().map(String::as_str)
    }

    /// Learns the revision from the answer to `initialize`.
    pub(super) fn learn_revision(&self, answer: &Answer) {
        #[derive(Deserialize)]
        struct Whole {
            result: Agreed,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Agreed {
            protocol_version: String,
        }
        if let Ok(whole) = serde_json::from_slice::<Whole>(&answer.body) {
            // A second `initialize` changes nothing.
            drop(self.revision.set(whole.result.protocol_version));
        }
    }

    /// What the store knows it by, if it is to be kept there.
    pub(super) fn key(&self) -> Option<SessionKey> {
        self.kept.as_ref().map(|kept| kept.key())
    }

    /// The same, once the store has it.
    pub(super) fn stored_key(&self) -> Option<SessionKey> {
        let kept = self.kept.as_ref()?;
        kept.is_stored().then(|| kept.key())
    }

    /// The store has it.
    pub(super) fn set_stored(&self) {
        if let Some(kept) = &self.kept {
            kept.set_stored();
        }
    }

    /// What is to be stored, once a revision was agreed on.
    pub(super) fn stored(&self) -> Option<StoredSession> {
        let guest = self.ground.visitor.guest.as_ref();
        Some(StoredSession {
            key: self.key()?,
            guest: guest.map(|guest| guest.id().to_owned()),
            credential: guest.and_then(|guest| guest.credential().map(str::to_owned)),
            endpoint: self.ground.endpoint.clone(),
            revision: self.revision()?.to_owned(),
            told: self.kept.as_ref()?.messages(),
            version: 0,
        })
    }

    /// Whether it is to be kept for other servers.
    pub(super) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Notes a request that sets something. Gives what the store is to be told of.
    pub(super) fn note(&self, method: &str, params: Option<&RawJson>) -> Option<Arc<Kept>> {
        let kept = self.kept.as_ref()?;
        kept.note(method, params).then(|| Arc::clone(kept))
    }

    /// Whether that change of what is kept is known here.
    pub(super) fn knows(&self, version: u64) -> bool {
        self.kept.as_ref().is_none_or(|kept| kept.knows(version))
    }

    /// Learns what was set elsewhere, and gives what has to be done for it here.
    pub(super) fn catch_up(&self, stored: &StoredSession) -> Vec<Setting> {
        let kept = self.kept.as_ref();
        kept.map_or_else(Vec::new, |kept| kept.catch_up(stored))
    }

    /// The request that opens the session was refused.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Whether the session never came to be.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Whether streams begin with an event that has an id and no data.
    pub(super) fn primes_streams(&self) -> bool {
        self.revision().is_some_and(|agreed| agreed >= FIRST_PRIMED)
    }

    /// Whether the client may send several messages in one body.
    pub(super) fn takes_batches(&self) -> bool {
        self.revision()
            .is_some_and(|agreed| matches!(agreed, "2024-11-05" | "2025-03-26"))
    }

    /// Goes on with a request that no connection waits for. Its answer ends `stream`, if there is
    /// one.
    pub(super) fn adopt(&self, serving: Serving, stream: Option<u64>, active: Active) {
        let streams = Arc::clone(&self.streams);
        self.go_on(async move {
            let answer = serving.await;
            if let Some(stream) = stream {
                streams.finish(stream, &answer);
            }
            drop(active);
        });
    }

    /// Works on a request whose answer goes where everything goes.
    pub(super) fn work_aside(&self, serving: Serving, active: Active) {
        let streams = Arc::clone(&self.streams);
        self.go_on(async move {
            let answer = serving.await;
            streams.answer(STANDALONE, &answer);
            drop(active);
        });
    }

    /// Needs no runtime around it. After the end of the session, the work is dropped.
    pub(super) fn go_on(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = &mut *self.tasks() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn_on(work, &self.runtime);
        }
    }

    /// Ends the session: its streams, its work and its conversation.
    pub(super) fn end(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        self.streams.end();
        let tasks = self.tasks().take();
        drop(tasks);
        self.conversation.ended();
    }

    fn tasks(&self) -> MutexGuard<'_, Option<JoinSet<()>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Whoever knows the id has the session.
        formatter
            .debug_struct("Session")
            .field("ground", &self.ground)
            .field("revision", &self.revision)
            .finish_non_exhaustive()
    }
}

impl Activity {
    fn last(&self) -> Instant {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.activity.touch();
        let count = match self.kind {
            ActiveKind::Request => &self.activity.requests,
            ActiveKind::Reader => &self.activity.readers,
        };
        count.fetch_sub(1, Ordering::AcqRel);
    }
}
