//! How long to wait before the next attempt.

use std::time::Duration;

/// The longest time that a server's `Retry-After` is obeyed.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(1);

/// Waits between attempts: each twice as long as the one before, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait before the first attempt.
    pub first: Duration,
    /// The longest wait.
    pub longest: Duration,
    /// How many attempts are made.
    pub attempts: u32,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(100),
            longest: Duration::from_secs(10),
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
        let doublings = attempt.saturating_sub(1).min(20);
        let plain = self.first.saturating_mul(1 << doublings).min(self.longest);
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
