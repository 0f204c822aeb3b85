//! What goes on between one server and its clients: whose requests are on their way, who is told
//! what, and whom the questions of the server are for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cocode_client::{ClientCapabilities, Handler, Notification, Witness as _};
use cocode_core::ServerName;
use cocode_wire::{RawJson, RpcError, code};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout_at};

use crate::caller::Abilities;
use crate::downstream::Downstream;
use crate::level::Level;
use crate::party::Party;
use crate::witness::{Asking, CallWitness};
use calls::{About, Caller, Calls, InTheWay};
use tasks::Tasks;
pub(crate) use tasks::{Kept, TaskOwner};
use telling::Users;

mod calls;
mod tasks;
mod telling;

/// How long a question waits until it is clear whom it is for.
const CLEAR_WITHIN: Duration = Duration::from_secs(30);
/// Hears what a server tells to everybody.
pub(crate) trait Listener: Send + Sync {
    /// Must return at once.
    fn told(&self, server: &ServerName, notification: &Notification);

    /// The least severe log messages that it wants, if it said anything about it.
    fn wanted_level(&self) -> Option<Level>;

    /// The session that it is, if it is one.
    fn session(&self) -> Option<u64>;

    /// Whom it belongs to, unless it is gone.
    fn party(&self) -> Option<Arc<Party>>;
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
    /// Tells of what the server was seen to ask for the first time.
    learned: watch::Sender<()>,
    /// Somebody listens no longer.
    left: Notify,
}

#[derive(Default)]
struct State {
    calls: Calls<Arc<CallWitness>>,
    next_listener: u64,
    listeners: BTreeMap<u64, Weak<dyn Listener>>,
    /// What the server has asked by ways that do not say for whom.
    asks: Abilities,
    /// Questions of which it is not clear yet whom they are for.
    unclear: usize,
    tasks: Tasks,
    users: Users,
}

/// A request that the traffic knows of. If this is dropped before it is done, the server may still
/// be at work for nobody.
pub(crate) struct OnItsWay {
    traffic: Arc<Traffic>,
    number: u64,
    is_done: bool,
}

/// Somebody listens, until this is dropped.
pub(crate) struct Listening {
    traffic: Arc<Traffic>,
    number: u64,
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
            learned: watch::Sender::default(),
            left: Notify::new(),
        })
    }

    /// The server.
    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    /// Whether the connection is for any client.
    pub(crate) fn is_shared(&self) -> bool {
        self.owner.is_none()
    }

    /// What the server has been seen to ask without saying for whom.
    pub(crate) fn asks(&self) -> Abilities {
        self.lock().asks
    }

    /// Tells when that is more than before.
    pub(crate) fn watch_asks(&self) -> watch::Receiver<()> {
        self.learned.subscribe()
    }

    /// Announces a request. If requests have to take turns, waits for its turn until then.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        session: u64,
        method: &str,
        witness: &Arc<CallWitness>,
        until: Instant,
    ) -> Result<OnItsWay, RpcError> {
        let caller = Caller {
            session,
            can: witness.can(),
            only_looks: only_looks(method),
        };
        let mut queued = None;
        let number = loop {
            let changed = self.changed.notified();
            let gone_at = match self.attempt(caller, witness, &mut queued) {
                Ok(number) => break number,
                Err(InTheWay::Until(gone_at)) => gone_at.min(until),
                Err(InTheWay::Nothing | InTheWay::Others) => until,
            };
            let others = timeout_at(gone_at, changed).await;
            if others.is_err() && Instant::now() >= until {
                return Err(self.too_late());
            }
        };
        Ok(OnItsWay {
            traffic: Arc::clone(self),
            number,
            is_done: false,
        })
    }

    /// Announces a request, if nothing is in its way.
    fn attempt<'a>(
        &'a self,
        caller: Caller,
        witness: &Arc<CallWitness>,
        queued: &mut Option<Queued<'a>>,
    ) -> Result<u64, InTheWay> {
        let mut state = self.lock();
        if self.owner.is_none() {
            let asks = state.asks;
            let place = queued.as_ref().map(|queued| queued.number);
            let in_the_way = match state.calls.in_the_way(caller, place, asks) {
                // More requests would make it even less clear whom a question is for.
                InTheWay::Nothing if state.unclear > 0 && !caller.only_looks => InTheWay::Others,
                in_the_way => in_the_way,
            };
            if in_the_way != InTheWay::Nothing {
                if queued.is_none() && caller.can.and(asks).any() {
                    let number = state.calls.queue_up();
                    let traffic = self;
                    *queued = Some(Queued { traffic, number });
                }
                return Err(in_the_way);
            }
        }
        state.users.add(witness.principal());
        Ok(state.calls.add(caller, Arc::clone(witness)))
    }

    fn too_late(&self) -> RpcError {
        let what = format!(
            "server `{}` takes one call at a time, and it was not the turn of this one in time",
            self.name
        );
        RpcError::new(code::INTERNAL_ERROR, what)
    }

    /// Lets somebody hear what the server tells to everybody.
    pub(crate) fn listen(self: &Arc<Self>, listener: Weak<dyn Listener>) -> Listening {
        let mut state = self.lock();
        state.next_listener += 1;
        let number = state.next_listener;
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
            let meant = self.lock().calls.meant();
            match meant {
                About::One(number, witness) => break (number, witness),
                About::GivenUp => {
                    let what = "this may be about a request that was given up a moment ago; nobody \
                                else is asked";
                    return Err(internal(what));
                }
                About::Nothing if method == "roots/list" => {
                    // It would be told somebody's folders, and use them for everybody.
                    let none = RawJson::parse(r#"{"roots":[]}"#);
                    return none.map_err(|error| internal(&error.to_string()));
                }
                About::Nothing => {
                    let what = "no client has a request on its way that this could be about";
                    return Err(internal(what));
                }
                About::Any(candidates) => {
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
        if let Err(refusal) = witness.can().check(method, params.as_ref()) {
            witness.lacks(needed);
            return Err(refusal);
        }
        let _waiting = Waiting::begin(self, number);
        drop(unclear);
        witness.asked(method, params).await
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
        let newest = self.lock().calls.newest();
        if let Some(witness) = newest {
            return witness.asked(method, params).await;
        }
        let asked = owner.ask_outside(&self.name, method, params.as_ref());
        asked.await
    }

    fn learn(&self, needed: Abilities) {
        let mut state = self.lock();
        let known = state.asks;
        state.asks = known.or(needed);
        if state.asks != known {
            self.learned.send_replace(());
            tracing::info!(
                server = %self.name,
                "the server asks its clients, and does not say for whom: from now on clients that can \
                 be asked get a process of their own, or take turns"
            );
        }
    }

    /// The least severe log messages that anybody wants who listens.
    pub(crate) fn wanted_level(&self) -> Option<Level> {
        let listeners = self.listeners();
        let wanted = listeners.iter().filter_map(|one| one.wanted_level());
        wanted.min()
    }

    /// Ends when somebody listens no longer. For one who waits.
    pub(crate) async fn somebody_left(&self) {
        self.left.notified().await;
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
        self.pass_on(notification);
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
        drop(state);
        self.0.changed.notify_waiters();
    }
}

/// A request whose client was asked something.
struct Waiting<'a> {
    traffic: &'a Traffic,
    number: u64,
}

impl<'a> Waiting<'a> {
    fn begin(traffic: &'a Traffic, number: u64) -> Self {
        traffic.lock().calls.ask(number);
        // Others may go on meanwhile.
        traffic.changed.notify_waiters();
        Self { traffic, number }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.traffic.lock().calls.answered(self.number);
        self.traffic.changed.notify_waiters();
    }
}

/// A request that waits to begin.
struct Queued<'a> {
    traffic: &'a Traffic,
    number: u64,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.traffic.lock().calls.leave_queue(self.number);
        self.traffic.changed.notify_waiters();
    }
}

impl OnItsWay {
    /// Its answer came, or never will.
    pub(crate) fn done(mut self) {
        self.is_done = true;
    }
}

impl Drop for OnItsWay {
    fn drop(&mut self) {
        let mut state = self.traffic.lock();
        let gone = if self.is_done || self.traffic.owner.is_some() {
            state.calls.done(self.number)
        } else {
            state.calls.give_up(self.number)
        };
        drop(state);
        drop(gone);
        self.traffic.changed.notify_waiters();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.traffic.lock().listeners.remove(&self.number);
        self.traffic.left.notify_one();
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

/// Whether somebody only wants to know what there is, for which servers ask nobody.
fn only_looks(method: &str) -> bool {
    matches!(
        method,
        "ping"
            | "logging/setLevel"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
    )
}

fn internal(what: &str) -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, what)
}
