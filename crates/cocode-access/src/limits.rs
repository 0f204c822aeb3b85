//! How much principals may do at once and in a minute, and how much is done with one server. Nobody
//! waits here: a call may begin, or is told when to come again.

mod bucket;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_core::ServerName;
use tokio::time::Instant;

use crate::policy::Policies;
use crate::principal::PrincipalId;

use bucket::Bucket;

/// Principals that are counted at once, and servers. Those who have done nothing for a minute are
/// forgotten.
const MAX_COUNTED: usize = 10_000;
/// When somebody whose calls are all going on may come again: one of them may be over any time.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// Counts calls. Clones count together.
#[derive(Clone, Debug)]
pub struct Limits {
    shared: Arc<Shared>,
}

/// How much may be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitPlan {
    /// By everybody together, with all servers.
    pub all: ServerLimit,
    /// By principals.
    pub principals: Policies,
    /// With servers that have limits of their own.
    pub servers: BTreeMap<ServerName, ServerLimit>,
    /// With all other servers, each.
    pub other_servers: ServerLimit,
}

/// How much may be done by all together, with a server or with all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerLimit {
    /// Calls in a minute; any number, if not given.
    pub calls_per_minute: Option<NonZeroU32>,
    /// Calls at once; any number, if not given.
    pub max_concurrent: Option<NonZeroU32>,
}

/// A call that is going on. It counts until this is dropped.
#[derive(Debug)]
#[must_use = "the call counts until this is dropped"]
pub struct CallGuard {
    shared: Arc<Shared>,
    principal: PrincipalId,
    server: Option<ServerName>,
}

/// Why a call may not begin now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{whose} {what}: try again in {} s", retry_after.as_secs())]
pub struct LimitReached {
    /// Whose limit it is.
    pub whose: Whose,
    /// Which limit it is, and how much it allows.
    pub what: Limit,
    /// When to come again, in whole seconds.
    pub retry_after: Duration,
}

/// Whose limit was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    /// That of who calls.
    Principal(PrincipalId),
    /// That of the server, for all together.
    Server(ServerName),
    /// That of the gateway.
    Gateway,
}

/// A limit, and how much it allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// So many calls in a minute.
    CallsPerMinute(u32),
    /// So many calls at once.
    Concurrent(u32),
    /// So many principals or servers that are counted.
    Counted(usize),
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    plan: Arc<LimitPlan>,
    all: Count,
    principals: HashMap<PrincipalId, Count>,
    servers: HashMap<ServerName, Count>,
}

/// How something counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// Among the calls of a minute, and those that go on at once.
    UntilItsEnd,
    /// Among the calls of a minute.
    Once,
}

/// What is going on and has gone on, of a principal or a server.
#[derive(Debug, Default)]
struct Count {
    running: u32,
    bucket: Bucket,
}

impl Limits {
    /// Counts by this plan.
    pub fn new(plan: LimitPlan) -> Self {
        let state = State {
            plan: Arc::new(plan),
            ..State::default()
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
            }),
        }
    }

    /// Counts by another plan from now on. What is going on stays counted.
    pub fn replace(&self, plan: LimitPlan) {
        self.shared.state().plan = Arc::new(plan);
    }

    /// Begins a call, if nobody's limit forbids it. A call that may not begin counts for nothing. One
    /// that no server is asked for counts for who makes it.
    pub fn begin(
        &self,
        principal: &PrincipalId,
        server: Option<&ServerName>,
    ) -> Result<CallGuard, LimitReached> {
        self.admit(principal, server, Counts::UntilItsEnd)?;
        Ok(CallGuard {
            shared: Arc::clone(&self.shared),
            principal: principal.clone(),
            server: server.cloned(),
        })
    }

    /// Counts something against the calls of a minute, if there are any left. It is not among what goes
    /// on at once.
    pub fn count(
        &self,
        principal: &PrincipalId,
        server: Option<&ServerName>,
    ) -> Result<(), LimitReached> {
        self.admit(principal, server, Counts::Once)
    }

    fn admit(
        &self,
        principal: &PrincipalId,
        server: Option<&ServerName>,
        counts: Counts,
    ) -> Result<(), LimitReached> {
        let now = Instant::now();
        let mut state = self.shared.state();
        state.make_room(now);
        let plan = Arc::clone(&state.plan);
        let own = plan.principals.of(principal);
        let own = counts.limited(ServerLimit {
            calls_per_minute: own.calls_per_minute,
            max_concurrent: own.max_concurrent,
        });
        let servers = server.and_then(|server| plan.servers.get(server)).copied();
        let servers = counts.limited(servers.unwrap_or(plan.other_servers));
        let everybody = counts.limited(plan.all);
        let State {
            all,
            principals: by_principal,
            servers: by_server,
            plan: _,
        } = &mut *state;
        let is_new = |server: &ServerName| !by_server.contains_key(server);
        let full = by_principal.len() >= MAX_COUNTED && !by_principal.contains_key(principal)
            || by_server.len() >= MAX_COUNTED && server.is_some_and(is_new);
        if full {
            return Err(LimitReached {
                whose: Whose::Gateway,
                what: Limit::Counted(MAX_COUNTED),
                retry_after: BUSY_RETRY,
            });
        }
        refuses(Some(all), everybody, now, || Whose::Gateway)?;
        let by = by_principal.get(principal);
        refuses(by, own, now, || Whose::Principal(principal.clone()))?;
        if let Some(server) = server {
            let with = by_server.get(server);
            refuses(with, servers, now, || Whose::Server(server.clone()))?;
        }
        all.begin(everybody, counts, now);
        if counts.matters_to(own) {
            let by = by_principal.entry(principal.clone()).or_default();
            by.begin(own, counts, now);
        }
        if let Some(server) = server.filter(|_| counts.matters_to(servers)) {
            let with = by_server.entry(server.clone()).or_default();
            with.begin(servers, counts, now);
        }
        Ok(())
    }

    /// How many calls are going on.
    pub fn running(&self) -> u64 {
        u64::from(self.shared.state().all.running)
    }
}

/// Whether a limit forbids one more call.
fn refuses(
    count: Option<&Count>,
    limit: ServerLimit,
    now: Instant,
    whose: impl Fn() -> Whose,
) -> Result<(), LimitReached> {
    let running = count.map_or(0, |count| count.running);
    if let Some(most) = limit.max_concurrent
        && running >= most.get()
    {
        return Err(LimitReached {
            whose: whose(),
            what: Limit::Concurrent(most.get()),
            retry_after: BUSY_RETRY,
        });
    }
    let bucket = count.map(|count| count.bucket).unwrap_or_default();
    if let Some(rate) = limit.calls_per_minute
        && let Err(wait) = bucket.check(rate, now)
    {
        return Err(LimitReached {
            whose: whose(),
            what: Limit::CallsPerMinute(rate.get()),
            retry_after: whole_seconds(wait),
        });
    }
    Ok(())
}

/// Rounded up: who comes again then may begin.
fn whole_seconds(wait: Duration) -> Duration {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Duration::from_secs(seconds.max(1))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Forgets those who have done nothing for long, when there are many.
    fn make_room(&mut self, now: Instant) {
        if self.principals.len() >= MAX_COUNTED {
            self.principals.retain(|_, count| count.matters(now));
        }
        if self.servers.len() >= MAX_COUNTED {
            self.servers.retain(|_, count| count.matters(now));
        }
    }
}

impl Counts {
    /// What of a limit is about it.
    fn limited(self, limit: ServerLimit) -> ServerLimit {
        match self {
            Self::UntilItsEnd => limit,
            Self::Once => ServerLimit {
                max_concurrent: None,
                ..limit
            },
        }
    }

    /// Whether there is anything to be remembered of it.
    fn matters_to(self, limit: ServerLimit) -> bool {
        self == Self::UntilItsEnd || limit.calls_per_minute.is_some()
    }
}

impl Count {
    fn begin(&mut self, limit: ServerLimit, counts: Counts, now: Instant) {
        if counts == Counts::UntilItsEnd {
            self.running = self.running.saturating_add(1);
        }
        if let Some(rate) = limit.calls_per_minute {
            self.bucket.take(rate, now);
        }
    }

    fn matters(&self, now: Instant) -> bool {
        self.running > 0 || !self.bucket.is_full(now)
    }
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        let now = Instant::now();
        let mut state = self.shared.state();
        let State {
            all,
            principals,
            servers,
            plan: _,
        } = &mut *state;
        all.running = all.running.saturating_sub(1);
        if let Some(count) = principals.get_mut(&self.principal) {
            count.running = count.running.saturating_sub(1);
            if !count.matters(now) {
                principals.remove(&self.principal);
            }
        }
        if let Some(server) = &self.server
            && let Some(count) = servers.get_mut(server)
        {
            count.running = count.running.saturating_sub(1);
            if !count.matters(now) {
                servers.remove(server);
            }
        }
    }
}

impl fmt::Display for Whose {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal(name) => write!(formatter, "`{name}` may make"),
            Self::Server(name) => write!(formatter, "the server `{name}` takes"),
            Self::Gateway => formatter.write_str("the gateway takes"),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CallsPerMinute(calls) => write!(formatter, "{} per minute", counted(*calls)),
            Self::Concurrent(calls) => write!(formatter, "{} at once", counted(*calls)),
            Self::Counted(most) => write!(formatter, "no more than {most} principals and servers"),
        }
    }
}

fn counted(calls: u32) -> String {
    match calls {
        1 => "1 call".to_owned(),
        calls => format!("{calls} calls"),
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
