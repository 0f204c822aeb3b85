//! When to look: a bell that anybody may ring, and how long to wait for it to be silent again.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long to wait after the bell rang.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// After the last time.
    pub(super) quiet: Duration,
    /// After the first time, however often it rings.
    pub(super) most: Duration,
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wake {
    /// The bell rang, and is silent.
    Rung,
    /// It did not ring for as long as was to be waited.
    Idle,
    /// Nobody wants to know any more.
    Stop,
}

/// Between the threads. However often it rings, it holds no more than this.
#[derive(Debug, Default)]
pub(super) struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: Option<Rung>,
    is_stopped: bool,
    failure: Option<String>,
}

/// When the bell rang.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rung {
    pub(super) first: Instant,
    pub(super) last: Instant,
}

impl Rung {
    /// When it has been silent for long enough.
    pub(super) fn due(self, pace: Pace) -> Instant {
        let Self { first, last } = self;
        (last + pace.quiet).min(first + pace.most)
    }
}

impl Bell {
    pub(super) fn ring(&self) {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(rung) = &mut state.rung {
            // Whoever waits finds this out by itself.
            rung.last = now;
        } else {
            let (first, last) = (now, now);
            state.rung = Some(Rung { first, last });
            self.changed.notify_all();
        }
    }

    pub(super) fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    pub(super) fn fails(&self, why: String) {
        self.state().failure = Some(why);
    }

    pub(super) fn works(&self) {
        self.state().failure = None;
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// Waits until the bell is silent after it rang, or for as long as it does not ring.
    pub(super) fn wait(&self, pace: Pace, idle: Duration) -> Wake {
        let idle = Instant::now() + idle;
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return Wake::Stop;
            }
            let due = state.rung.map_or(idle, |rung| rung.due(pace));
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return match state.rung.take() {
                    Some(_) => Wake::Rung,
                    None => Wake::Idle,
                };
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing in here is ever half done.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
