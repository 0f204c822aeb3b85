//! What goes on between one server and its clients: whose requests are on their way, who is told
//! what, and whom the questions of the server are for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cocode_client::{ClientCapabilities, Handler, Notification, Witness as _};
use cocode_core::ServerName;
use cocode_wire::{RawJson, RpcError, code};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::caller::Abilities;
use crate::downstream::Downstream;
use crate::witness::{Asking, CallWitness};

/// How long a question waits until it is clear whom it is for.
const CLEAR_WITHIN: Duration = Duration::from_secs(30);

/// Hears what a server tells to everybody.
pub(crate) trait Listener: Send + Sync {
    /// Must return at once.
    fn told(&self, server: &ServerName, notification: &Notification);
}

/// The traffic of one connection to one server.
pub(crate) struct Traffic {
    name: ServerName,
    /// What the server is told that its clients can do.
    capabilities: ClientCapabilities,
    /// The one client that the connection is for, if it is for one.
    owner: Option<Weak<Downstream>>,
    state: Mutex<State>,
    changed: Notify,
    /// Lets one request through at a time, where they have to take turns.
    turn: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    next: u64,
    calls: BTreeMap<u64, Call>,
    listeners: BTreeMap<u64, Weak<dyn Listener>>,
    /// What the server has asked by ways that do not say for whom.
    asks: Abilities,
    /// Questions of which it is not clear yet whom they are for.
    unclear: usize,
}

/// A request on its way.
struct Call {
    /// Requests of one session are the same to it.
    session: u64,
    witness: Arc<CallWitness>,
    /// Questions of the server that it waits for.
    waiting: u32,
    turn: Option<OwnedSemaphorePermit>,
}

/// A request that the traffic knows of, until this is dropped.
pub(crate) struct OnItsWay {
    traffic: Arc<Traffic>,
    number: u64,
}

/// Somebody listens, until this is dropped.
pub(crate) struct Listening {
    traffic: Arc<Traffic>,
    number: u64,
}

/// Whom a question is for.
enum Whom {
    Call(u64, Arc<CallWitness>),
    /// Nobody who could answer it.
    Nobody(RpcError),
    /// It was asked for no request.
    Unasked,
    /// Not clear yet: it may be about any of so many requests.
    Unclear(usize),
}

impl Traffic {
    pub(crate) fn new(
        name: ServerName,
        capabilities: ClientCapabilities,
        owner: Option<Weak<Downstream>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            capabilities,
            owner,
            state: Mutex::default(),
            changed: Notify::new(),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// What the server has been seen to ask without saying for whom.
    pub(crate) fn asks(&self) -> Abilities {
        self.lock().asks
    }

    /// Announces a request. If requests have to take turns, waits for its turn until then.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        session: u64,
        witness: &Arc<CallWitness>,
        until: Instant,
    ) -> Result<OnItsWay, RpcError> {
        let takes_turns = self.owner.is_none() && self.asks().and(witness.can()).any();
        let turn = if takes_turns {
            let turn = self.turn(until).await?;
            self.settled(session, until).await?;
            Some(turn)
        } else {
            None
        };
        let call = Call {
            session,
            witness: Arc::clone(witness),
            waiting: 0,
            turn,
        };
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        state.calls.insert(number, call);
        drop(state);
        Ok(OnItsWay {
            traffic: Arc::clone(self),
            number,
        })
    }

    /// Waits for requests of others that began before turns were taken: a question that comes while
    /// they run may be about them.
    async fn settled(&self, session: u64, until: Instant) -> Result<(), RpcError> {
        loop {
            let changed = self.changed.notified();
            let is_settled = {
                let state = self.lock();
                let asks = state.asks;
                let may_be_meant = |call: &Call| {
                    let is_free = call.turn.is_none() && call.waiting == 0;
                    is_free && call.session != session && call.witness.can().and(asks).any()
                };
                !state.calls.values().any(may_be_meant)
            };
            if is_settled {
                return Ok(());
            }
            if timeout_at(until, changed).await.is_err() {
                return Err(self.too_late());
            }
        }
    }

    fn too_late(&self) -> RpcError {
        let what = format!(
            "server `{}` takes one call at a time, and it was not the turn of this one in time",
            self.name
        );
        RpcError::new(code::INTERNAL_ERROR, what)
    }

    async fn turn(&self, until: Instant) -> Result<OwnedSemaphorePermit, RpcError> {
        let turn = Arc::clone(&self.turn).acquire_owned();
        match timeout_at(until, turn).await {
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(_)) | Err(_) => Err(self.too_late()),
        }
    }

    /// Lets somebody hear what the server tells to everybody.
    pub(crate) fn listen(self: &Arc<Self>, listener: Weak<dyn Listener>) -> Listening {
        let mut state = self.lock();
        state.next += 1;
        let number = state.next;
        state.listeners.insert(number, listener);
        drop(state);
        Listening {
            traffic: Arc::clone(self),
            number,
        }
    }

    async fn route(&self, method: &str, params: Option<RawJson>) -> Result<RawJson, RpcError> {
        let needed = Abilities::needed_for(method, params.as_ref());
        if let Some(owner) = &self.owner {
            return self.ask_owner(owner, method, params).await;
        }
        self.learn(needed);
        let until = Instant::now() + CLEAR_WITHIN;
        let mut unclear = None;
        let (number, witness) = loop {
            let changed = self.changed.notified();
            match self.whom(needed, method, params.as_ref()) {
                Whom::Call(number, witness) => break (number, witness),
                Whom::Nobody(refusal) => return Err(refusal),
                Whom::Unasked if method == "roots/list" => {
                    // It would be told somebody's folders, and use them for everybody.
                    let none = RawJson::parse(r#"{"roots":[]}"#);
                    return none.map_err(|error| internal(&error.to_string()));
                }
                Whom::Unasked => {
                    let what = "no client has a request on its way that this could be about";
                    return Err(internal(what));
                }
                Whom::Unclear(candidates) => {
                    // Each of them waits for an answer: none will be done before.
                    if self.unclear_questions(&mut unclear) >= candidates {
                        return Err(internal(
                            "several clients are asked at once, and it cannot be told who is \
                             asked what; from now on they take turns",
                        ));
                    }
                    if timeout_at(until, changed).await.is_err() {
                        return Err(internal("it cannot be told which client this is for"));
                    }
                }
            }
        };
        drop(unclear);
        let waiting = Waiting::begin(self, number);
        let answer = witness.ask(method, params).await;
        if waiting.had_turn {
            // Whoever took its turn meanwhile is let finish; the server is to get the answer even
            // if that takes long.
            if let Ok(turn) = self.turn(Instant::now() + CLEAR_WITHIN).await {
                waiting.give_back(turn);
            }
        }
        drop(waiting);
        answer
    }

    /// How many questions wait until it is clear whom they are for, this one included.
    fn unclear_questions<'a>(&'a self, this: &mut Option<Unclear<'a>>) -> usize {
        if this.is_none() {
            self.lock().unclear += 1;
            *this = Some(Unclear(self));
        }
        self.lock().unclear
    }

    async fn ask_owner(
        &self,
        owner: &Weak<Downstream>,
        method: &str,
        params: Option<RawJson>,
    ) -> Result<RawJson, RpcError> {
        let Some(owner) = owner.upgrade() else {
            return Err(internal("the client is gone"));
        };
        let newest = {
            let state = self.lock();
            let newest = state.calls.values().next_back();
            newest.map(|call| Arc::clone(&call.witness))
        };
        match newest {
            Some(witness) => witness.ask(method, params).await,
            None => owner.ask_outside(method, params.as_ref()).await,
        }
    }

    fn whom(&self, needed: Abilities, method: &str, params: Option<&RawJson>) -> Whom {
        let state = self.lock();
        if state.calls.is_empty() {
            return Whom::Unasked;
        }
        // Clients that cannot be asked count, too: the server was told that all can be. Who waits for an answer already does not ask again before it has it; a server that does
        // so nevertheless is believed as long as nobody else is there.
        let mut free = state
            .calls
            .iter()
            .rev()
            .filter(|(_, call)| call.waiting == 0);
        let mut all = state.calls.iter().rev();
        let newest = free.next().or_else(|| all.next());
        let Some((number, call)) = newest else {
            return Whom::Unclear(usize::MAX);
        };
        let others = free.filter(|(_, other)| other.session != call.session);
        let n_others = others.count();
        if n_others > 0 {
            return Whom::Unclear(n_others + 1);
        }
        if let Err(refusal) = call.witness.can().check(method, params) {
            call.witness.lacks(needed);
            return Whom::Nobody(refusal);
        }
        Whom::Call(*number, Arc::clone(&call.witness))
    }

    fn learn(&self, needed: Abilities) {
        let mut state = self.lock();
        let known = state.asks;
        state.asks = known.or(needed);
        if state.asks != known {
            tracing::info!(
                server = %self.name,
                "the server asks its clients, and does not say for whom: from now on clients that can \
                 be asked get a process of their own, or take turns"
            );
        }
    }

    /// A log message that came by a way that does not say for whom.
    fn log_message(&self, notification: &Notification) {
        let state = self.lock();
        let mut calls = state.calls.values().rev();
        let Some(newest) = calls.next() else {
            drop(calls);
            drop(state);
            return self.tell(notification);
        };
        if calls.all(|call| call.session == newest.session) {
            let witness = Arc::clone(&newest.witness);
            drop(state);
            witness.notified(notification);
        }
        // What was logged for one client is not for another; all of it is in the server's log.
    }

    fn tell(&self, notification: &Notification) {
        let listeners: Vec<_> = {
            let state = self.lock();
            let alive = state.listeners.values().filter_map(Weak::upgrade);
            alive.collect()
        };
        for listener in listeners {
            listener.told(&self.name, notification);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Traffic {
    fn capabilities(&self) -> ClientCapabilities {
        self.capabilities.clone()
    }

    fn notified(&self, notification: &Notification) {
        match notification.method.as_str() {
            "notifications/progress" | "notifications/cancelled" => {}
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/resources/updated" => self.tell(notification),
            _ if notification.is_heard => {}
            "notifications/message" => self.log_message(notification),
            _ => self.tell(notification),
        }
    }

    fn asked(&self, method: &str, params: Option<&RawJson>) -> Option<Asking<'_>> {
        let (method, params) = (method.to_owned(), params.cloned());
        Some(Box::pin(async move { self.route(&method, params).await }))
    }
}

/// A question of which it is not clear yet whom it is for.
struct Unclear<'a>(&'a Traffic);

impl Drop for Unclear<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.unclear = state.unclear.saturating_sub(1);
    }
}

/// A request whose client was asked something.
struct Waiting<'a> {
    traffic: &'a Traffic,
    number: u64,
    had_turn: bool,
}

impl<'a> Waiting<'a> {
    fn begin(traffic: &'a Traffic, number: u64) -> Self {
        let mut state = traffic.lock();
        let call = state.calls.get_mut(&number);
        let turn = call.and_then(|call| {
            call.waiting += 1;
            call.turn.take()
        });
        drop(state);
        let had_turn = turn.is_some();
        drop(turn);
        traffic.changed.notify_waiters();
        Self {
            traffic,
            number,
            had_turn,
        }
    }

    fn give_back(&self, turn: OwnedSemaphorePermit) {
        if let Some(call) = self.traffic.lock().calls.get_mut(&self.number) {
            call.turn = Some(turn);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.traffic.lock().calls.get_mut(&self.number) {
            call.waiting = call.waiting.saturating_sub(1);
        }
        self.traffic.changed.notify_waiters();
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let gone = self.traffic.lock().calls.remove(&self.number);
        drop(gone);
        self.traffic.changed.notify_waiters();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.traffic.lock().listeners.remove(&self.number);
    }
}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Traffic")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn internal(what: &str) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, what)
}
