//! A bucket of calls that fills up again within a minute, kept as one moment: when it will be full.

use std::num::NonZeroU32;
use std::time::Duration;

use tokio::time::Instant;

const MINUTE: Duration = Duration::from_mins(1);

/// How many calls are left. A full bucket holds the calls of a minute, and they come back one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// When it is full again; it is, if there is no such moment.
    full_at: Option<Instant>,
}

impl Bucket {
    /// Whether there is one call left; else how long until there is.
    pub(super) fn check(&self, calls_per_minute: NonZeroU32, now: Instant) -> Result<(), Duration> {
        // With one call less, it must not take longer than a minute to be full.
        let missing = self.missing(now) + MINUTE / calls_per_minute.get();
        match missing.checked_sub(MINUTE) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(too_much) => Err(too_much),
        }
    }

    /// Takes one call.
    pub(super) fn take(&mut self, calls_per_minute: NonZeroU32, now: Instant) {
        let missing = self.missing(now) + MINUTE / calls_per_minute.get();
        // It may have been taken from at a slower rate, before that was changed.
        self.full_at = Some(now + missing.min(MINUTE));
    }

    /// Whether nothing was taken, or all of it came back.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.missing(now).is_zero()
    }

    fn missing(&self, now: Instant) -> Duration {
        let until = |full_at: Instant| full_at.saturating_duration_since(now);
        self.full_at.map(until).unwrap_or_default()
    }
}
