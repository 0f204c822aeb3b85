//! Matches answers to requests, and passes on everything else a server says.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_wire::{
    Closed, Frame, FrameKind, Inbox, LinkError, Malformed, Origin, RawJson, RpcError,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::clock::CallClock;
use crate::handler::{Handler, Notification};
use crate::progress::{OnProgress, Progress};
use crate::relay::Witness;

/// Server-initiated messages that may wait for the serving task, which answers or refuses them. A
/// server that sends more than these in one burst gets no answer to the rest.
const MAX_WAITING_REQUESTS: usize = 1024;

/// The receiving half of a session: the inbox of its link.
pub(crate) struct Mux {
    handler: Arc<dyn Handler>,
    next_id: AtomicU64,
    answers: AtomicU64,
    table: Mutex<Table>,
    incoming: mpsc::Sender<Incoming>,
    closed: watch::Sender<Option<Closed>>,
    /// The server is of the modern era.
    stateless: AtomicBool,
    /// The server has ended the session behind our back.
    session_gone: Notify,
    /// What came that was no message at all: the first lines of it.
    noise: Mutex<Vec<String>>,
}

/// Lines that are remembered of what was no message.
const NOISE_LINES: usize = 5;

#[derive(Default)]
struct Table {
    pending: HashMap<u64, Pending, BuildHasherDefault<IdHasher>>,
    /// Set when the link ended: nobody may register after that.
    closed: Option<Closed>,
}

/// Spreads numbers that were given out one after the other. Nobody else chooses them, so that they
/// cannot be made to collide.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // The golden ratio: neighbors end up far from each other.
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

struct Pending {
    reply: oneshot::Sender<Outcome>,
    clock: Arc<CallClock>,
    reports: Reports,
}

/// What a request wants to hear of before its answer.
#[derive(Clone)]
pub(crate) enum Reports {
    /// Nothing.
    No,
    /// Progress: it keeps the request alive, and is passed on if somebody listens.
    Yes(Option<OnProgress>),
    /// Notifications that name the request, for as long as it lasts.
    Subscription,
    /// Everything that belongs to it, as it comes; progress only if it is asked for.
    Relay {
        witness: Arc<dyn Witness>,
        progress: bool,
    },
}

/// What became of a request: its answer and where that came, or why there is none.
pub(crate) type Outcome = Result<(Frame, Origin), Failure>;

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Link(LinkError),
    Closed(Closed),
    Malformed(Malformed),
    /// An error that names no request, when only one was waiting.
    Unaddressed(RpcError),
    /// The server took a subscription back.
    TakenBack,
}

/// Something the server wants of us.
pub(crate) enum Incoming {
    Request {
        id: RawJson,
        method: String,
        params: Option<RawJson>,
        origin: Origin,
        /// Who asked for what the question is about, if that is somebody else.
        witness: Option<Arc<dyn Witness>>,
    },
    /// The server no longer wants the answer to its request.
    Cancelled { id: RawJson },
}

impl Mux {
    pub(crate) fn new(handler: Arc<dyn Handler>) -> (Arc<Self>, mpsc::Receiver<Incoming>) {
        let (incoming, requests) = mpsc::channel(MAX_WAITING_REQUESTS);
        let closed = watch::Sender::new(None);
        let (next_id, table) = (AtomicU64::new(1), Mutex::default());
        (
            Arc::new(Self {
                handler,
                next_id,
                answers: AtomicU64::new(0),
                table,
                incoming,
                closed,
                stateless: AtomicBool::new(false),
                session_gone: Notify::new(),
                noise: Mutex::default(),
            }),
            requests,
        )
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// How many answers have come.
    pub(crate) fn answered(&self) -> u64 {
        self.answers.load(Ordering::Relaxed)
    }

    /// Expects an answer to `id` from now on.
    pub(crate) fn register(
        &self,
        id: u64,
        clock: Arc<CallClock>,
        reports: Reports,
    ) -> Result<oneshot::Receiver<Outcome>, Closed> {
        let (reply, answer) = oneshot::channel();
        let mut table = self.lock();
        if let Some(reason) = &table.closed {
            return Err(reason.clone());
        }
        table.pending.insert(
            id,
            Pending {
                reply,
                clock,
                reports,
            },
        );
        Ok(answer)
    }

    /// Expects no answer to `id` any more. Whether one was still expected.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.lock().pending.remove(&id).is_some()
    }

    /// Why the link ended, once it has.
    pub(crate) fn watch_closed(&self) -> watch::Receiver<Option<Closed>> {
        self.closed.subscribe()
    }

    /// The server is of the modern era.
    pub(crate) fn set_stateless(&self) {
        self.stateless.store(true, Ordering::Relaxed);
    }

    /// Resolves when the server has ended the session outside of any request.
    pub(crate) async fn session_ended(&self) {
        self.session_gone.notified().await;
    }

    /// The beginning of what the server sent that was no message.
    pub(crate) fn noise(&self) -> Vec<String> {
        self.noise
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Stops the clocks of those requests on whose behalf a message may have come.
    pub(crate) fn pause(&self, origin: Origin) -> Paused {
        let table = self.lock();
        let clocks: Vec<_> = match origin {
            Origin::Request(id) => table.pending.get(&id).into_iter().collect(),
            Origin::Shared => table.pending.values().collect::<Vec<_>>(),
        };
        let clocks: Vec<_> = clocks
            .into_iter()
            .map(|pending| Arc::clone(&pending.clock))
            .collect();
        drop(table);
        for clock in &clocks {
            clock.pause();
        }
        Paused(clocks)
    }

    /// The server did not take the answer to a request that it sent on the stream of ours. In the
    /// modern era no server has to: it waits for the answer, and we would wait for the server.
    pub(crate) fn answer_refused(&self, origin: Origin, error: &LinkError) {
        if let Origin::Request(id) = origin
            && self.stateless.load(Ordering::Relaxed)
        {
            let detail = format!("the server sent a request and refused the answer to it: {error}");
            self.answer(id, Err(Failure::Link(LinkError::NoAnswer { detail })));
        }
    }

    fn answer(&self, id: u64, outcome: Outcome) {
        let Some(pending) = self.lock().pending.remove(&id) else {
            tracing::debug!(id, "an answer that nobody waits for");
            return;
        };
        // The receiver may be gone: the caller just gave up.
        drop(pending.reply.send(outcome));
    }

    /// The only request that is waiting for an answer, if there is exactly one.
    fn only_pending(&self) -> Option<u64> {
        let table = self.lock();
        let mut waiting = table
            .pending
            .iter()
            .filter(|(_, pending)| !pending.is_subscription());
        waiting
            .next()
            .map(|(id, _)| *id)
            .filter(|_| waiting.next().is_none())
    }

    /// Whether request `id` is a subscription that still stands.
    fn is_subscribed(&self, id: u64) -> bool {
        self.lock()
            .pending
            .get(&id)
            .is_some_and(Pending::is_subscription)
    }

    fn response(&self, frame: Frame, origin: Origin) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        if let Some(id) = frame.numeric_id() {
            return self.answer(id, Ok((frame, origin)));
        }
        let error = frame.error().filter(|_| frame.id().is_none());
        match (error, self.only_pending()) {
            (Some(error), Some(id)) => self.answer(id, Err(Failure::Unaddressed(error))),
            (error, _) => tracing::warn!(?error, "an answer that names no request of ours"),
        }
    }

    /// Who asked for the request whose stream this is, if that is somebody else.
    fn witness(&self, origin: Origin) -> Option<Arc<dyn Witness>> {
        let Origin::Request(id) = origin else {
            return None;
        };
        match &self.lock().pending.get(&id)?.reports {
            Reports::Relay { witness, .. } => Some(Arc::clone(witness)),
            Reports::No | Reports::Yes(_) | Reports::Subscription => None,
        }
    }

    fn notification(&self, frame: &Frame, origin: Origin) {
        let method = frame.method();
        let params = frame.params();
        match (method, &params) {
            ("notifications/progress", Some(params)) => self.progress(params),
            ("notifications/cancelled", Some(params)) => self.cancelled(params),
            (_, Some(params)) if self.is_stale(params) => {
                tracing::debug!(method, "a notification of a subscription that is over");
                return;
            }
            _ => {}
        }
        let witness = self.witness(origin);
        let notification = Notification {
            method: method.to_owned(),
            params,
            is_heard: witness.is_some(),
        };
        if let Some(witness) = witness {
            shielded(|| witness.notified(&notification));
        }
        shielded(|| self.handler.notified(&notification));
    }

    fn progress(&self, params: &RawJson) {
        let Some(id) = Progress::request(params) else {
            return;
        };
        let reports = {
            let table = self.lock();
            let Some(pending) = table.pending.get(&id) else {
                return;
            };
            pending.clock.progress();
            pending.reports.clone()
        };
        // Called without the lock, so that the callback may use the session.
        match reports {
            Reports::Yes(Some(on_progress)) => {
                if let Some(progress) = Progress::parse(params) {
                    shielded(|| on_progress(&progress));
                }
            }
            Reports::Relay { witness, .. } => shielded(|| witness.progress(params)),
            Reports::No | Reports::Yes(None) | Reports::Subscription => {}
        }
    }

    fn cancelled(&self, params: &RawJson) {
        #[derive(serde::Deserialize)]
        struct Cancelled<'a> {
            #[serde(borrow, rename = "requestId")]
            request_id: &'a serde_json::value::RawValue,
        }
        let Ok(cancelled) = params.decode::<Cancelled<'_>>() else {
            return;
        };
        let id = cancelled.request_id.get().trim_matches('"').parse();
        let subscription = id.ok().filter(|id| self.is_subscribed(*id));
        if let Some(id) = subscription.filter(|_| self.stateless.load(Ordering::Relaxed)) {
            self.answer(id, Err(Failure::TakenBack));
        } else {
            let id = params.share(cancelled.request_id);
            self.pass_on(Incoming::Cancelled { id });
        }
    }

    /// Whether a notification names a subscription, and none that stands.
    fn is_stale(&self, params: &RawJson) -> bool {
        #[derive(serde::Deserialize)]
        struct Params<'a> {
            #[serde(borrow, rename = "_meta")]
            meta: Meta<'a>,
        }
        #[derive(serde::Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, rename = "io.modelcontextprotocol/subscriptionId")]
            subscription: &'a serde_json::value::RawValue,
        }
        if !self.stateless.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(params) = params.decode::<Params<'_>>() else {
            return false;
        };
        let id = params.meta.subscription.get().trim_matches('"').parse();
        !id.is_ok_and(|id| self.is_subscribed(id))
    }

    fn pass_on(&self, incoming: Incoming) {
        if let Err(error) = self.incoming.try_send(incoming) {
            let error = error.to_string();
            tracing::warn!(error, "the server asks more than can be served");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs code of the caller's. If it panics, that harms its own notification and not the link that
/// reads for everybody; the panic hook has shown it by then.
fn shielded(callback: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a handler panicked on a notification");
    }
}

impl Pending {
    fn is_subscription(&self) -> bool {
        matches!(self.reports, Reports::Subscription)
    }
}

impl Inbox for Mux {
    fn frame(&self, frame: Frame, origin: Origin) {
        tracing::trace!(json = %String::from_utf8_lossy(frame.bytes()), "received");
        match frame.kind() {
            FrameKind::Response => self.response(frame, origin),
            FrameKind::Notification => self.notification(&frame, origin),
            FrameKind::Request => {
                let Some(id) = frame.id() else { return };
                if self.stateless.load(Ordering::Relaxed) {
                    // The specification forbids it. A server that sends one waits for the answer.
                    let method = frame.method();
                    tracing::warn!(method, "server of the modern era sent a request");
                }
                let (method, params) = (frame.method().to_owned(), frame.params());
                let witness = self.witness(origin);
                self.pass_on(Incoming::Request {
                    id,
                    method,
                    params,
                    origin,
                    witness,
                });
            }
        }
    }

    fn malformed(&self, malformed: Malformed) {
        let Some(id) = malformed.id else {
            let Malformed {
                reason, excerpt, ..
            } = &malformed;
            tracing::warn!(%reason, excerpt, "the server sent something unusable");
            let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
            if noise.len() < NOISE_LINES {
                noise.push(excerpt.clone());
            }
            return;
        };
        self.answer(id, Err(Failure::Malformed(malformed)));
    }

    fn session_gone(&self) {
        self.session_gone.notify_one();
    }

    fn failed(&self, id: u64, error: LinkError) {
        self.answer(id, Err(Failure::Link(error)));
    }

    fn closed(&self, reason: Closed) {
        let pending = {
            let mut table = self.lock();
            if table.closed.is_some() {
                // The first reason is the cause; what follows from it is not.
                return;
            }
            table.closed = Some(reason.clone());
            std::mem::take(&mut table.pending)
        };
        self.closed.send_replace(Some(reason.clone()));
        for pending in pending.into_values() {
            drop(pending.reply.send(Err(Failure::Closed(reason.clone()))));
        }
    }
}

impl std::fmt::Debug for Mux {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Mux").finish_non_exhaustive()
    }
}

/// Clocks that stand still until this is dropped.
#[derive(Debug)]
pub(crate) struct Paused(Vec<Arc<CallClock>>);

impl Drop for Paused {
    fn drop(&mut self) {
        for clock in &self.0 {
            clock.resume();
        }
    }
}
