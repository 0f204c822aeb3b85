//! How long to wait before the next attempt.

use std::time::Duration;

/// The longest time that a server's `Retry-After` is obeyed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

/// Exponential backoff between attempts, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    /// The wait before the first attempt.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// Factor from one wait to the next; less than 1 counts as 1.
    pub multiplier: f64,
    /// How many attempts are made.
    pub attempts: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(10),
            multiplier: 2.0,
            attempts: 5,
        }
    }
}

impl Backoff {
    /// The wait before an attempt, counted from one. `chance`, from 0 to 1, spreads those who lost
    /// their connections at the same moment: by a quarter to either side.
    pub(crate) fn wait(
        &self,
        attempt: u32,
        retry_after: Option<Duration>,
        chance: f64,
    ) -> Duration {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        // An overflow is infinite, which means the longest wait as well.
        let plain = Duration::try_from_secs_f64(seconds)
            .map_or(self.longest, |wait| wait.min(self.longest));
        let spread = plain.mul_f64(0.75 + 0.5 * chance.clamp(0.0, 1.0));
        let asked = retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        spread.min(self.longest).max(asked)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;

    #[test]
    fn waits_double_up_to_the_longest() {
        let backoff = Backoff::default();
        let waits: Vec<_> = (1..=9)
            .map(|attempt| backoff.wait(attempt, None, 0.5).as_millis())
            .collect();
        assert_eq!(
            waits,
            [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
        );
    }

    #[test]
    fn waits_grow_by_the_multiplier() {
        let waits = |multiplier| {
            let backoff = Backoff {
                multiplier,
                ..Backoff::default()
            };
            [1, 2, 3, u32::MAX].map(|attempt| backoff.wait(attempt, None, 0.5).as_millis())
        };
        assert_eq!(waits(1.0), [100, 100, 100, 100]);
        assert_eq!(waits(3.0), [100, 300, 900, 10_000]);
        assert_eq!(waits(f64::MAX), [100, 10_000, 10_000, 10_000]);
        assert_eq!(waits(-1.0), waits(1.0));
    }

    #[test]
    fn chance_spreads_by_a_quarter_and_never_over_the_longest() {
        let backoff = Backoff::default();
        assert_eq!(backoff.wait(1, None, 0.0), Duration::from_millis(75));
        assert_eq!(backoff.wait(1, None, 1.0), Duration::from_millis(125));
        assert_eq!(backoff.wait(30, None, 1.0), Duration::from_secs(10));
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it_within_reason() {
        let backoff = Backoff::default();
        let asked = |seconds| backoff.wait(1, Some(Duration::from_secs(seconds)), 0.5);
        assert_eq!(asked(3), Duration::from_secs(3));
        assert_eq!(asked(3600), Duration::from_mins(1));
    }
}
