//! The keys of one issuer as they are known: fetched when they are needed, kept while the issuer cannot be
//! reached, and fetched anew, but not more often than is good, when a token names one that is not known.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use url::Url;

use super::fetch::{FETCH_LIMIT, Fetch, Fetched};
use super::key_set::KeySet;

/// After this, keys are fetched again while the known ones are used: those that were withdrawn must not
/// count for ever.
const FRESH_FOR: Duration = Duration::from_mins(10);
/// How long known keys are used while the issuer cannot be reached.
const USABLE_FOR: Duration = Duration::from_hours(24);
/// How long to wait after a fetch, so that nobody can let us knock at an issuer all the time by naming
/// keys that are not there.
const FETCH_PAUSE: Duration = Duration::from_secs(30);
/// The same while there are no keys at all, so that nobody can come.
const FIRST_FETCH_PAUSE: Duration = Duration::from_secs(5);
/// What a fetch takes at most, and a little.
const WAIT_LIMIT: Duration = FETCH_LIMIT.saturating_add(Duration::from_secs(1));

/// The keys of one issuer.
#[derive(Debug)]
pub(super) struct IssuerKeys {
    shared: Arc<Shared>,
    /// The fetch that is under way. No client that goes away ends it: others wait for it, too.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Shared {
    issuer: String,
    source: Box<dyn Fetch>,
    state: Mutex<State>,
    /// Fetches that are over.
    n_done: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    keys: Option<Arc<KeySet>>,
    place: Option<Url>,
    n_changes: u64,
    fetched: Option<Instant>,
    attempted: Option<Instant>,
    is_fetching: bool,
    is_well: bool,
}

/// What is known at this moment.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The keys, if there are any that may be used.
    pub(super) keys: Option<Arc<KeySet>>,
    /// How often they have changed: what was verified before counts no more.
    pub(super) n_changes: u64,
    /// Whether the issuer could be reached the last time.
    pub(super) is_well: bool,
    /// Whether it is time for newer ones.
    pub(super) is_old: bool,
}

/// A fetch that is under way.
#[derive(Debug)]
pub(super) struct Waiting {
    n_done: watch::Receiver<u64>,
    before: u64,
}

impl IssuerKeys {
    pub(super) fn new(issuer: String, source: impl Fetch) -> Self {
        let shared = Shared {
            issuer,
            source: Box::new(source),
            state: Mutex::default(),
            n_done: watch::Sender::new(0),
        };
        Self {
            shared: Arc::new(shared),
            tasks: Mutex::default(),
        }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    pub(super) fn look(&self) -> Look {
        let state = self.shared.state();
        let age = state.fetched.map(|fetched| fetched.elapsed());
        let is_usable = age.is_some_and(|age| age < USABLE_FOR);
        Look {
            keys: state.keys.clone().filter(|_| is_usable),
            n_changes: state.n_changes,
            is_well: state.is_well,
            is_old: age.is_none_or(|age| age >= FRESH_FOR),
        }
    }

    /// Lets the keys be fetched, or joins those who wait for that. There is nothing to wait for if they
    /// were fetched a short time ago.
    pub(super) fn want(&self) -> Option<Waiting> {
        let waiting = Waiting {
            n_done: self.shared.n_done.subscribe(),
            before: *self.shared.n_done.borrow(),
        };
        let mut state = self.shared.state();
        if state.is_fetching {
            return Some(waiting);
        }
        let pause = match &state.keys {
            Some(_) => FETCH_PAUSE,
            None => FIRST_FETCH_PAUSE,
        };
        if state.attempted.is_some_and(|last| last.elapsed() < pause) {
            return None;
        }
        // Without a runtime there is no network.
        tokio::runtime::Handle::try_current().ok()?;
        state.is_fetching = true;
        state.attempted = Some(Instant::now());
        drop(state);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(Arc::clone(&self.shared).fetch());
        Some(waiting)
    }

    /// How long until keys may be fetched again.
    pub(super) fn pause(&self) -> Duration {
        match &self.shared.state().keys {
            Some(_) => FETCH_PAUSE,
            None => FIRST_FETCH_PAUSE,
        }
    }
}

impl Waiting {
    /// Comes back when the fetch is over, however it went.
    pub(super) async fn over(mut self) {
        let done = self.n_done.wait_for(|done| *done > self.before);
        if timeout(WAIT_LIMIT, done).await.is_err() {
            tracing::warn!("the keys of an issuer take longer than they may");
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn fetch(self: Arc<Self>) {
        // Whatever happens, the next one may fetch again.
        let over = FetchIsOver(&self);
        let known = self.state().place.clone();
        let fetched = self.source.keys(known.as_ref()).await;
        self.take_over(fetched);
        drop(over);
    }

    fn take_over(&self, fetched: Fetched) {
        let mut state = self.state();
        match fetched {
            Ok((keys, place)) => {
                if state.keys.as_deref() != Some(&keys) {
                    state.keys = Some(Arc::new(keys));
                    state.n_changes += 1;
                }
                state.place = Some(place);
                state.fetched = Some(Instant::now());
                state.is_well = true;
            }
            Err(error) => {
                let (issuer, has_keys) = (&self.issuer, state.keys.is_some());
                tracing::warn!(issuer, has_keys, %error, "cannot fetch the keys of an issuer");
                state.is_well = false;
            }
        }
    }
}

struct FetchIsOver<'a>(&'a Shared);

impl Drop for FetchIsOver<'_> {
    fn drop(&mut self) {
        self.0.state().is_fetching = false;
        self.0.n_done.send_modify(|done| *done += 1);
    }
}

#[cfg(test)]
#[path = "issuer_keys_tests.rs"]
mod tests;
