//! One server as everybody but its supervisor sees it: its state, its session, what it listed, and
//! a way to give its supervisor orders.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use cocode_core::{Era, ServerName, ServerSpec};
use cocode_wire::LinkError;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

use super::changes::Changes;
use super::lists::{Asked, Lists};
use super::state::{ConnectionFacts, ServerState, ServerStatus, Trouble};
use super::verdict::needs_somebody;
use crate::error::RequestError;
use crate::server_log::ServerLog;
use crate::session::Session;
use crate::telemetry::ServerTrace;

/// Orders that may wait for a supervisor.
const MAX_ORDERS: usize = 16;

pub(crate) struct Server {
    pub(crate) name: ServerName,
    pub(crate) changes: Changes,
    pub(crate) log: ServerLog,
    /// A request has failed in a way that makes the connection look dead.
    pub(crate) suspected: Notify,
    spec: Mutex<Arc<ServerSpec>>,
    standing: watch::Sender<Standing>,
    orders: mpsc::Sender<Order>,
    lists: Mutex<Lists>,
    /// Goes up with every change of the lists, and of what is known about them.
    lists_changed: watch::Sender<u64>,
    /// Whether its tools are worth showing to a model.
    offered: AtomicBool,
    /// The number of the connection, and of what was asked on any.
    connection: AtomicU64,
    asked: AtomicU64,
    memory: Mutex<Memory>,
    trace: Mutex<ServerTrace>,
    reconnects: AtomicU32,
    uses: AtomicUsize,
    /// Milliseconds from `made` to the moment it was used last.
    last_used: AtomicU64,
    made: Instant,
}

/// Where a server stands. The session is there exactly while the server is ready.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    pub(crate) state: ServerState,
    pub(crate) session: Option<Session>,
}

/// What is remembered from one connection to the next.
#[derive(Debug, Default)]
struct Memory {
    era: Option<Era>,
    facts: Option<Arc<ConnectionFacts>>,
    trouble: Option<Trouble>,
    /// Resources whose changes somebody wants to hear of.
    subscriptions: BTreeSet<String>,
}

/// What a supervisor can be told to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Somebody needs the server.
    Demand,
    /// Connect anew, perhaps as another. The sender is dropped as soon as the old connection is of
    /// no use to anybody any more.
    Restart(Option<Box<Replacement>>, oneshot::Sender<()>),
    /// Disconnect, until somebody needs it. The sender is dropped when that is done.
    Stop(oneshot::Sender<()>),
    /// Disconnect for good.
    End,
}

/// What a server becomes.
#[derive(Debug)]
pub(crate) struct Replacement {
    pub(crate) spec: ServerSpec,
    pub(crate) lists: Lists,
    pub(crate) era: Option<Era>,
    /// Whether it is to be started even if it does not run.
    pub(crate) at_once: bool,
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// The server is in a state in which there is none.
    State(ServerState),
    /// It did not come up in time.
    TooLate(ServerState),
}

impl Server {
    pub(crate) fn new(
        spec: ServerSpec,
        state: ServerState,
        (lists, era): (Lists, Option<Era>),
        log: ServerLog,
        trace: ServerTrace,
    ) -> (Arc<Self>, mpsc::Receiver<Order>) {
        let (orders, received) = mpsc::channel(MAX_ORDERS);
        let server = Self {
            name: spec.name.clone(),
            changes: Changes::default(),
            log,
            suspected: Notify::new(),
            spec: Mutex::new(Arc::new(spec)),
            standing: watch::Sender::new(Standing {
                state,
                session: None,
            }),
            orders,
            lists: Mutex::new(lists),
            lists_changed: watch::Sender::new(0),
            offered: AtomicBool::new(true),
            connection: AtomicU64::new(0),
            asked: AtomicU64::new(1),
            memory: Mutex::new(Memory {
                era,
                ..Memory::default()
            }),
            trace: Mutex::new(trace),
            reconnects: AtomicU32::new(0),
            uses: AtomicUsize::new(0),
            last_used: AtomicU64::new(0),
            made: Instant::now(),
        };
        (Arc::new(server), received)
    }

    pub(crate) fn spec(&self) -> Arc<ServerSpec> {
        Arc::clone(&lock(&self.spec))
    }

    pub(crate) fn set_spec(&self, spec: ServerSpec) {
        *lock(&self.spec) = Arc::new(spec);
    }

    /// Takes the place of what it was: nothing of that counts any more.
    /// For its supervisor alone, when nothing of the old connection is at work any more.
    pub(crate) fn become_another(&self, replacement: Replacement) {
        let Replacement {
            spec,
            lists,
            era,
            at_once: _,
        } = replacement;
        self.set_spec(spec);
        self.change_lists(|old| *old = lists);
        *lock(&self.memory) = Memory {
            era,
            ..Memory::default()
        };
    }

    /// The session, if there is one at this moment.
    pub(crate) fn current(&self) -> Option<Session> {
        self.standing.borrow().session.clone()
    }

    pub(crate) fn state(&self) -> ServerState {
        self.standing.borrow().state.clone()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// For its supervisor alone. Gives the state before.
    pub(crate) fn stand(&self, standing: Standing) -> ServerState {
        if let Some(trouble) = standing.state.trouble() {
            lock(&self.memory).trouble = Some(trouble.clone());
        }
        self.trace(|trace| trace.enter(standing.state.kind().as_str()));
        self.standing.send_replace(standing).state
    }

    /// The session; if there is none, waits for one until then. A server that does not run is
    /// started, and one that failed is tried once more.
    pub(crate) async fn session(&self, until: Instant) -> Result<Session, NoSession> {
        if let Some(session) = self.current() {
            return Ok(session);
        }
        let mut standing = self.standing.subscribe();
        let mut demanded = false;
        loop {
            let state = {
                let now = standing.borrow_and_update();
                if let Some(session) = &now.session {
                    return Ok(session.clone());
                }
                now.state.clone()
            };
            let is_to_be_tried = match &state {
                ServerState::Disabled | ServerState::PendingTrust => {
                    return Err(NoSession::State(state));
                }
                ServerState::Stopped => true,
                ServerState::Failed(_)
                | ServerState::NeedsAuth(_)
                | ServerState::NeedsClientRegistration(_) => {
                    if demanded {
                        return Err(NoSession::State(state));
                    }
                    true
                }
                ServerState::Starting { .. }
                | ServerState::Ready
                | ServerState::Reconnecting { .. } => {
                    // Whatever comes of the attempt that is being made is the answer.
                    demanded = true;
                    false
                }
            };
            if is_to_be_tried {
                demanded = true;
                match timeout_at(until, self.orders.send(Order::Demand)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_nobody_listens)) => return Err(NoSession::State(state)),
                    Err(_elapsed) => return Err(NoSession::TooLate(state)),
                }
            }
            tokio::select! {
                changed = timeout_at(until, standing.changed()) => if changed.is_err() {
                    return Err(NoSession::TooLate(self.state()));
                },
                // Nobody looks after it any more: no change will come.
                () = self.orders.closed() => return Err(NoSession::State(self.state())),
            }
        }
    }

    /// Lets the supervisor know that a request has failed in a way that makes the connection look
    /// dead.
    pub(crate) fn suspect(&self, error: &RequestError) {
        let looks_dead = match error {
            RequestError::Timeout { .. } => true,
            RequestError::Link { error, .. } if needs_somebody(error) => true,
            RequestError::Link { error, .. } => matches!(
                error,
                LinkError::AuthRequired(_)
                    | LinkError::Unreachable { .. }
                    | LinkError::Broken { .. }
                    | LinkError::NoAnswer { .. }
                    | LinkError::Status { .. }
            ),
            _ => false,
        };
        if looks_dead {
            self.suspected.notify_one();
        }
    }

    /// Gives an order. The supervisor may be gone already, which is as good.
    pub(crate) async fn order(&self, order: Order) {
        if self.orders.send(order).await.is_err() {
            tracing::debug!(server = %self.name, "an order for a server that is gone");
        }
    }

    pub(crate) fn lists<T>(&self, look: impl FnOnce(&Lists) -> T) -> T {
        look(&lock(&self.lists))
    }

    pub(crate) fn change_lists<T>(&self, change: impl FnOnce(&mut Lists) -> T) -> T {
        let changed = change(&mut lock(&self.lists));
        self.lists_changed.send_modify(|count| *count += 1);
        changed
    }

    /// Tells when lists have changed.
    pub(crate) fn lists_changed(&self) -> watch::Receiver<u64> {
        self.lists_changed.subscribe()
    }

    /// Something is being asked on the connection of this moment.
    pub(crate) fn asks(&self, at: SystemTime) -> Asked {
        Asked {
            connection: Some(self.connection()),
            number: self.asked.fetch_add(1, Ordering::Relaxed),
            at,
        }
    }

    /// The number of the connection.
    pub(crate) fn connection(&self) -> u64 {
        self.connection.load(Ordering::Relaxed)
    }

    /// A connection is there, which is another than the one before. Its era is kept for the next.
    pub(crate) fn count_connection(&self, era: Era) {
        self.connection.fetch_add(1, Ordering::Relaxed);
        lock(&self.memory).era = Some(era);
    }

    pub(crate) fn is_offered(&self) -> bool {
        self.offered.load(Ordering::Relaxed)
    }

    /// For its supervisor alone. Gives what it was before.
    pub(crate) fn offer(&self, offered: bool) -> bool {
        self.offered.swap(offered, Ordering::Relaxed)
    }

    pub(crate) fn era(&self) -> Option<Era> {
        lock(&self.memory).era
    }

    pub(crate) fn connected(&self, facts: ConnectionFacts) {
        lock(&self.memory).facts = Some(Arc::new(facts));
    }

    pub(crate) fn facts(&self) -> Option<Arc<ConnectionFacts>> {
        lock(&self.memory).facts.clone()
    }

    pub(crate) fn trace(&self, record: impl FnOnce(&mut ServerTrace)) {
        record(&mut lock(&self.trace));
    }

    pub(crate) fn count_reconnect(&self) {
        self.trace(|trace| trace.reconnected());
        self.reconnects.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn subscriptions(&self) -> Vec<String> {
        lock(&self.memory).subscriptions.iter().cloned().collect()
    }

    pub(crate) fn change_subscriptions(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) {
        change(&mut lock(&self.memory).subscriptions);
    }

    /// The server is being used as long as what this gives is there.
    pub(crate) fn in_use(self: &Arc<Self>) -> InUse {
        self.uses.fetch_add(1, Ordering::AcqRel);
        InUse(Arc::clone(self))
    }

    /// Whether somebody is using it at this moment.
    pub(crate) fn is_in_use(&self) -> bool {
        self.uses.load(Ordering::Acquire) > 0
    }

    /// Since when nobody uses it; nothing while somebody does, or wants to hear from it.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        if self.is_in_use() || !lock(&self.memory).subscriptions.is_empty() {
            return None;
        }
        let last = self.last_used.load(Ordering::Relaxed);
        Some(self.made + Duration::from_millis(last))
    }

    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(now, Ordering::Relaxed);
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let Standing { state, session } = self.standing.borrow().clone();
        let memory = lock(&self.memory);
        ServerStatus {
            name: self.name.clone(),
            state,
            connection: memory.facts.clone(),
            last_trouble: memory.trouble.clone(),
            reconnects: self.reconnects.load(Ordering::Relaxed),
            in_flight: session.map_or(0, |session| session.in_flight()),
            required: lock(&self.spec).required,
        }
    }
}

/// Somebody uses a server.
pub(crate) struct InUse(Arc<Server>);

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.touch();
        self.0.uses.fetch_sub(1, Ordering::AcqRel);
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Server")
            .field("name", &self.name)
            .field("state", &self.standing.borrow().state)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
