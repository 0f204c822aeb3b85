//! The clock of one request: restarts on progress, stands still while a person answers.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How long a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Since it was sent, or since its last sign of progress.
    pub idle: Duration,
    /// In total, whatever progress it makes.
    pub total: Duration,
}

impl Deadlines {
    /// What is left of them after some of the time was spent.
    pub(crate) fn after(self, spent: Duration) -> Self {
        let total = self.total.saturating_sub(spent);
        Self {
            idle: self.idle.min(total),
            total,
        }
    }

    /// For requests whose progress nobody reports.
    pub fn fixed(limit: Duration) -> Self {
        Self {
            idle: limit,
            total: limit,
        }
    }
}

/// As good as no deadline; keeps the arithmetic of moments finite.
const FOREVER: Duration = Duration::from_hours(10 * 365 * 24);

/// The moment so much later; as good as never where that is no moment.
pub(crate) fn later(from: Instant, after: Duration) -> Instant {
    from + after.min(FOREVER)
}

/// Nothing is checked more often than this, so that a paused clock costs no busy loop.
const GRAIN: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) struct CallClock {
    deadlines: Deadlines,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Moments at which the idle and the total time began, moved by every pause.
    active_since: Instant,
    begun: Instant,
    pauses: u32,
    paused_at: Instant,
}

/// What a clock says when it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Look again then.
    Until(Instant),
    /// This deadline has passed.
    Expired(Duration),
}

impl CallClock {
    pub(crate) fn start(deadlines: Deadlines) -> Self {
        let now = Instant::now();
        let state = State {
            active_since: now,
            begun: now,
            pauses: 0,
            paused_at: now,
        };
        let deadlines = Deadlines {
            idle: deadlines.idle.min(FOREVER),
            total: deadlines.total.min(FOREVER),
        };
        Self {
            deadlines,
            state: Mutex::new(state),
        }
    }

    /// The request shows a sign of life.
    pub(crate) fn progress(&self) {
        let mut state = self.lock();
        // A pause moves this on by its whole length, so its beginning becomes its end.
        state.active_since = if state.pauses > 0 {
            state.paused_at
        } else {
            Instant::now()
        };
    }

    /// Stands still until as many calls to `resume` have come.
    pub(crate) fn pause(&self) {
        let mut state = self.lock();
        if state.pauses == 0 {
            state.paused_at = Instant::now();
        }
        state.pauses += 1;
    }

    pub(crate) fn resume(&self) {
        let mut state = self.lock();
        state.pauses = state.pauses.saturating_sub(1);
        if state.pauses == 0 {
            let stood_still = state.paused_at.elapsed();
            state.begun += stood_still;
            state.active_since += stood_still;
        }
    }

    pub(crate) fn check(&self) -> Verdict {
        let state = self.lock();
        let now = Instant::now();
        let stood_still = if state.pauses > 0 {
            now - state.paused_at
        } else {
            Duration::ZERO
        };
        let idle_end = state.active_since + self.deadlines.idle + stood_still;
        let total_end = state.begun + self.deadlines.total + stood_still;
        let end = idle_end.min(total_end);
        if end > now {
            Verdict::Until(end.max(now + GRAIN))
        } else if state.pauses > 0 {
            Verdict::Until(now + GRAIN)
        } else if total_end <= idle_end {
            Verdict::Expired(self.deadlines.total)
        } else {
            Verdict::Expired(self.deadlines.idle)
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::{CallClock, Deadlines, Verdict};

    const SECOND: Duration = Duration::from_secs(1);

    fn clock() -> CallClock {
        CallClock::start(Deadlines {
            idle: 10 * SECOND,
            total: 25 * SECOND,
        })
    }

    #[tokio::test(start_paused = true)]
    async fn silence_expires_the_idle_deadline() {
        let clock = clock();
        assert_eq!(clock.check(), Verdict::Until(Instant::now() + 10 * SECOND));
        advance(10 * SECOND).await;
        assert_eq!(clock.check(), Verdict::Expired(10 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_restarts_idle_but_not_total() {
        let clock = clock();
        for _ in 0..3 {
            advance(8 * SECOND).await;
            clock.progress();
        }
        assert_eq!(clock.check(), Verdict::Until(Instant::now() + SECOND));
        advance(SECOND).await;
        assert_eq!(clock.check(), Verdict::Expired(25 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_counts_for_neither() {
        let clock = clock();
        advance(9 * SECOND).await;
        clock.pause();
        clock.pause();
        advance(600 * SECOND).await;
        clock.resume();
        assert_eq!(clock.check(), Verdict::Until(Instant::now() + SECOND));
        clock.resume();
        assert_eq!(clock.check(), Verdict::Until(Instant::now() + SECOND));
        advance(SECOND).await;
        assert_eq!(clock.check(), Verdict::Expired(10 * SECOND));
    }

    #[tokio::test(start_paused = true)]
    async fn progress_during_a_pause_counts_from_its_end() {
        let clock = clock();
        clock.pause();
        advance(540 * SECOND).await;
        clock.progress();
        advance(60 * SECOND).await;
        clock.resume();
        assert_eq!(clock.check(), Verdict::Until(Instant::now() + 10 * SECOND));
    }
}
