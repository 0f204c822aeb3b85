//! Keeps one server in a known state. Each state owns what it needs (the attempt, the session and
//! its tasks): leaving the state ends them.

mod down;

use std::sync::Arc;
use std::time::Duration;

use cocode_wire::Closed;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::attempt::{self, Connected};
use super::events::Event;
use super::server::{Order, Replacement, Server, Standing};
use super::shared::Shared;
use super::state::{Cause, ServerState, Trouble};
use super::verdict::{self, Next};
use super::{health, idling, listing, sandbox};
use crate::clock::later;
use crate::server_log::LogSource;
use crate::session::Session;

/// The longest rest of a server that was given up, before it is tried again by itself.
const LONGEST_REST: Duration = Duration::from_hours(1);

pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    server: Arc<Server>,
    orders: mpsc::Receiver<Order>,
    /// Attempts since a connection was a good one.
    attempts: u32,
    /// How often it was given up since then.
    given_up: u32,
    /// It was connected at least once.
    worked_before: bool,
    /// It had been given up, and this attempt is for somebody who needs it nevertheless.
    last_chance: bool,
    /// It was given up, and its tools are not offered before it is ready again.
    withdrawn: bool,
    /// How often a sign-in seemed to have happened since it was ready.
    woken: u32,
    /// Sessions that were lost, on their way to their end.
    closing: JoinSet<()>,
}

/// What the supervisor is at.
enum Phase {
    /// Nothing, until somebody needs the server.
    Resting,
    Connecting,
    /// Waiting for the next attempt.
    Pausing {
        until: Instant,
    },
    Ready(Box<Live>),
    /// Nothing, until somebody needs the server; then once.
    Down {
        retry_at: Option<Instant>,
    },
    Ended,
}

/// A session and the tasks that belong to it.
struct Live {
    session: Session,
    since: Instant,
    tasks: JoinSet<Option<Trouble>>,
}

/// How the time of a session ended.
enum Leaving {
    Lost(Trouble),
    Idle,
    Ordered(Order),
}

impl Supervisor {
    pub(crate) fn new(
        shared: Arc<Shared>,
        server: Arc<Server>,
        orders: mpsc::Receiver<Order>,
    ) -> Self {
        Self {
            shared,
            server,
            orders,
            attempts: 0,
            given_up: 0,
            worked_before: false,
            last_chance: false,
            withdrawn: false,
            woken: 0,
            closing: JoinSet::new(),
        }
    }

    /// Runs until it is ordered to end.
    pub(crate) async fn run(mut self) {
        let mut phase = match self.server.state() {
            ServerState::Starting { .. } => Phase::Connecting,
            _ => Phase::Resting,
        };
        loop {
            phase = match phase {
                Phase::Resting => self.rest().await,
                Phase::Connecting => self.connect().await,
                Phase::Pausing { until } => self.pause(until).await,
                Phase::Ready(live) => self.serve(live).await,
                Phase::Down { retry_at } => self.stay_down(retry_at).await,
                Phase::Ended => break,
            };
        }
        // From now on nobody is told that an order will be carried out.
        self.orders.close();
        while self.closing.join_next().await.is_some() {}
    }

    async fn rest(&mut self) -> Phase {
        loop {
            match self.orders.recv().await {
                Some(Order::Demand) => {
                    self.attempts = 0;
                    self.stand(ServerState::Starting { slow: false }, None);
                    return Phase::Connecting;
                }
                Some(Order::Restart(Some(replacement), done)) if !replacement.at_once => {
                    self.adopt(*replacement);
                    drop(done);
                }
                Some(Order::Restart(replacement, done)) => {
                    return self.begin_anew(replacement, done);
                }
                Some(Order::Stop(done)) => drop(done),
                Some(Order::End) | None => return Phase::Ended,
            }
        }
    }

    /// One attempt, from the wait for a place to a session whose tools are known.
    async fn connect(&mut self) -> Phase {
        let begun = Instant::now();
        let spec = self.server.spec();
        let (shared, server) = (Arc::clone(&self.shared), Arc::clone(&self.server));
        let mut closing = std::mem::take(&mut self.closing);
        let mut attempt = Box::pin(async {
            // Two processes of one server would get into each other's way.
            while closing.join_next().await.is_some() {}
            let place = shared.options.start_limiter.place().await;
            tokio::select! {
                outcome = attempt::connect(&shared, &server, &spec) => outcome,
                never = place.expire() => match never {},
            }
        });
        let mut slow_at = Some(later(begun, spec.startup_timeout));
        let outcome = loop {
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Demand) => {}
                    Some(Order::Restart(replacement, done)) => {
                        drop(attempt);
                        return self.begin_anew(replacement, done);
                    }
                    Some(Order::Stop(done)) => {
                        drop(attempt);
                        self.stand(ServerState::Stopped, None);
                        drop(done);
                        return Phase::Resting;
                    }
                    Some(Order::End) | None => return Phase::Ended,
                },
                outcome = &mut attempt => break outcome,
                () = sleep_until(slow_at.unwrap_or(begun)), if slow_at.is_some() => {
                    slow_at = None;
                    if let ServerState::Starting { .. } = server.state() {
                        self.stand(ServerState::Starting { slow: true }, None);
                    }
                }
            }
        };
        drop(attempt);
        match outcome {
            Ok(connected) => self.ready(connected, begun),
            Err(trouble) => self.failed(trouble),
        }
    }

    fn ready(&mut self, connected: Connected, begun: Instant) -> Phase {
        let Connected { session, sandbox } = connected;
        let (shared, server) = (&self.shared, &self.server);
        server.connected(attempt::facts(&session, begun.elapsed()));
        if self.worked_before {
            server.count_reconnect();
        }
        self.worked_before = true;
        self.withdrawn = false;
        self.woken = 0;
        if std::mem::take(&mut self.last_chance) {
            (self.attempts, self.given_up) = (0, 0);
        }
        server.touch();
        let mut tasks = JoinSet::new();
        let options = &shared.options;
        let watching = health::watch(
            Arc::clone(server),
            session.clone(),
            options.health,
            options.time_of_day,
        );
        tasks.spawn(async move { Some(watching.await) });
        let keeping = listing::keep(Arc::clone(shared), Arc::clone(server), session.clone());
        tasks.spawn(async move {
            keeping.await;
            None
        });
        if let Some(state) = sandbox {
            let telling = sandbox::keep_telling(server.name.clone(), session.clone(), state);
            tasks.spawn(async move {
                telling.await;
                None
            });
        }
        self.stand(ServerState::Ready, Some(session.clone()));
        // Only now, so that what is wanted from here on is asked by whoever wants it.
        let renewing = attempt::subscribe_again(Arc::clone(server), session.clone());
        tasks.spawn(async move {
            renewing.await;
            None
        });
        Phase::Ready(Box::new(Live {
            session,
            since: Instant::now(),
            tasks,
        }))
    }

    /// Looks after a session until it is lost or not wanted any more.
    async fn serve(&mut self, mut live: Box<Live>) -> Phase {
        let mut leaving = self.until_leaving(&mut live).await;
        if let Leaving::Idle = leaving {
            self.stand(ServerState::Stopped, None);
            match idling::let_finish(&self.server, &live.session, &mut self.orders).await {
                // It is needed after all, and still there.
                Some(Order::Demand) => {
                    self.stand(ServerState::Ready, Some(live.session.clone()));
                    return Phase::Ready(live);
                }
                Some(order) => leaving = Leaving::Ordered(order),
                None => {}
            }
        }
        let Live {
            session,
            since,
            mut tasks,
        } = *live;
        // None of them is to write down anything about what the server becomes.
        tasks.shutdown().await;
        match leaving {
            Leaving::Lost(trouble) => {
                if since.elapsed() >= self.shared.options.health.stable_after {
                    (self.attempts, self.given_up) = (0, 0);
                }
                self.lost(trouble, session)
            }
            Leaving::Idle => {
                session.close().await;
                Phase::Resting
            }
            Leaving::Ordered(Order::Restart(replacement, done)) => {
                let next = self.begin_anew(replacement, done);
                session.close().await;
                next
            }
            Leaving::Ordered(Order::Stop(done)) => {
                self.stand(ServerState::Stopped, None);
                session.close().await;
                drop(done);
                Phase::Resting
            }
            Leaving::Ordered(Order::End | Order::Demand) => {
                self.orders.close();
                self.stand(ServerState::Stopped, None);
                session.close().await;
                Phase::Ended
            }
        }
    }

    /// A session is of no use any more.
    fn lost(&mut self, trouble: Trouble, session: Session) -> Phase {
        let next = self.failed(trouble.clone());
        let is_signed_out = matches!(
            self.server.state(),
            ServerState::NeedsAuth(_) | ServerState::NeedsClientRegistration(_)
        );
        if is_signed_out {
            // Only new credentials are missing: what is under way may still end well.
            return next;
        }
        // Whoever still waits for an answer learns why none will come.
        session.abort(match trouble.cause {
            Cause::Lost(closed) => closed,
            _ => Closed::Protocol(trouble.to_string()),
        });
        if session.pid().is_some() {
            self.closing.spawn(session.close());
        }
        next
    }

    async fn until_leaving(&mut self, live: &mut Live) -> Leaving {
        let session = live.session.clone();
        let mut closed = Box::pin(async move { session.closed().await });
        loop {
            let idle_at = idling::idle_at(&self.shared, &self.server, &live.session);
            tokio::select! {
                closed = &mut closed => return Leaving::Lost(Cause::Lost(closed).into()),
                order = self.orders.recv() => match order {
                    Some(Order::Demand) => {}
                    Some(order) => return Leaving::Ordered(order),
                    None => return Leaving::Ordered(Order::End),
                },
                Some(ended) = live.tasks.join_next() => match ended {
                    Ok(Some(trouble)) => return Leaving::Lost(trouble),
                    Ok(None) => {}
                    Err(error) => {
                        // Without this task nobody would notice what becomes of the session.
                        tracing::error!(server = %self.server.name, %error, "a task of a server broke");
                        let broken = Closed::Protocol(format!("looking after it failed: {error}"));
                        return Leaving::Lost(Cause::Lost(broken).into());
                    }
                },
                () = sleep_until(idle_at.unwrap_or_else(Instant::now)), if idle_at.is_some() => {
                    let is_over = idling::idle_at(&self.shared, &self.server, &live.session).is_some_and(|at| at <= Instant::now());
                    if is_over {
                        return Leaving::Idle;
                    }
                }
            }
        }
    }

    async fn pause(&mut self, until: Instant) -> Phase {
        loop {
            tokio::select! {
                biased;
                order = self.orders.recv() => match order {
                    Some(Order::Demand) => {}
                    Some(Order::Restart(replacement, done)) => {
                        return self.begin_anew(replacement, done);
                    }
                    Some(Order::Stop(done)) => {
                        self.stand(ServerState::Stopped, None);
                        drop(done);
                        return Phase::Resting;
                    }
                    Some(Order::End) | None => return Phase::Ended,
                },
                () = sleep_until(until) => return Phase::Connecting,
            }
        }
    }

    /// Something failed: an attempt, or a session.
    fn failed(&mut self, trouble: Trouble) -> Phase {
        self.last_chance = false;
        let options = &self.shared.options;
        let (health, once) = (options.health, options.start.once);
        let next = verdict::after(&trouble.cause, self.worked_before);
        if let Next::TryAgain(retry_after) = next
            && self.attempts < health.reconnect.attempts
            && (!once || self.worked_before)
        {
            self.attempts += 1;
            let attempt = self.attempts;
            let wait = health.reconnect.wait(attempt, retry_after, fastrand::f64());
            self.stand(ServerState::Reconnecting { attempt, trouble }, None);
            return Phase::Pausing {
                until: later(Instant::now(), wait),
            };
        }
        self.withdrawn = true;
        let state = match next {
            Next::NeedsAuth => ServerState::NeedsAuth(trouble),
            Next::NeedsClientRegistration => ServerState::NeedsClientRegistration(trouble),
            Next::GiveUp | Next::TryAgain(_) => ServerState::Failed(trouble),
        };
        self.stand(state, None);
        let retry_failed = health.retry_failed.filter(|_| !once);
        let retry_at = match (next, retry_failed) {
            (Next::TryAgain(_), Some(first)) => {
                // A server that never holds comes to rest: twice as long each time.
                let doubled = first.saturating_mul(1 << self.given_up.min(16));
                self.given_up += 1;
                Some(later(Instant::now(), doubled.min(LONGEST_REST.max(first))))
            }
            _ => None,
        };
        Phase::Down { retry_at }
    }

    /// Begins as if nothing had been, perhaps as another server.
    fn begin_anew(
        &mut self,
        replacement: Option<Box<Replacement>>,
        done: oneshot::Sender<()>,
    ) -> Phase {
        if let Some(replacement) = replacement {
            self.adopt(*replacement);
        }
        (self.attempts, self.given_up) = (0, 0);
        self.withdrawn = false;
        self.stand(ServerState::Starting { slow: false }, None);
        drop(done);
        Phase::Connecting
    }

    fn adopt(&mut self, replacement: Replacement) {
        self.server.become_another(replacement);
        self.worked_before = false;
        self.withdrawn = false;
        self.server.offer(true);
    }

    /// Enters a state, and tells everybody. Whoever sees that a server is ready sees its tools, too.
    fn stand(&self, state: ServerState, session: Option<Session>) {
        let server = &self.server;
        let kind = state.kind();
        if let Some(trouble) = state.trouble() {
            let code = trouble.code();
            tracing::warn!(server = %server.name, state = %kind, code, error = %trouble);
            let line = format!("{kind}: {trouble}");
            server.log.line(LogSource::State, &line);
        } else {
            tracing::info!(server = %server.name, state = %kind);
            server.log.line(LogSource::State, kind.as_str());
        }
        let is_offered = state.offers_tools() && !self.withdrawn;
        let was_offered = server.offer(is_offered);
        let is_ready = matches!(state, ServerState::Ready);
        if is_ready || is_offered != was_offered {
            self.shared.publish();
        }
        server.stand(Standing {
            state: state.clone(),
            session,
        });
        self.shared.bus.tell(|| Event::ServerStateChanged {
            server: server.name.clone(),
            state,
        });
    }
}

/// However it ends: nobody waits for a server that nobody looks after, and its session ends.
impl Drop for Supervisor {
    fn drop(&mut self) {
        self.orders.close();
        if !matches!(self.server.state(), ServerState::Stopped) {
            self.stand(ServerState::Stopped, None);
        }
    }
}
