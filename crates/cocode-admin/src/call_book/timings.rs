//! How long the calls of one server took: all of them in a few numbers, and the last ones each.

use std::collections::VecDeque;
use std::time::Duration;

use crate::call_book::milliseconds;
use crate::model::{CallState, Latency, Timing};
use crate::moment::Moment;

/// Upper bounds in seconds, as Prometheus wants them; there is one more, which is infinite.
pub(crate) const BUCKETS: [f64; 14] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
/// Calls of a server that percentiles are made from.
pub(crate) const MAX_RECENT: usize = 256;

/// The calls of one server that have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timings {
    ok: u64,
    tool_error: u64,
    error: u64,
    cancelled: u64,
    denied: u64,
    /// Calls that took at most so long, and longer than the bound before.
    buckets: [u64; BUCKETS.len() + 1],
    /// How long all of them took.
    sum: Duration,
    recent: VecDeque<Timing>,
}

impl Timings {
    /// Counts a call. How long it took says something about the server only if the server was asked and
    /// its answer waited for.
    pub(crate) fn add(&mut self, state: CallState, took: Duration) {
        let counter = match state {
            CallState::Ok | CallState::Running => &mut self.ok,
            CallState::ToolError => &mut self.tool_error,
            CallState::Error => &mut self.error,
            CallState::Cancelled => &mut self.cancelled,
            CallState::Denied => &mut self.denied,
        };
        *counter += 1;
        if matches!(state, CallState::Cancelled | CallState::Denied) {
            return;
        }
        let seconds = took.as_secs_f64();
        let place = BUCKETS.partition_point(|bound| *bound < seconds);
        if let Some(bucket) = self.buckets.get_mut(place) {
            *bucket += 1;
        }
        self.sum = self.sum.saturating_add(took);
        if self.recent.len() >= MAX_RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Timing {
            at: Moment::now(),
            milliseconds: milliseconds(took),
            ok: state == CallState::Ok,
        });
    }

    /// How many calls ended in which way.
    pub(crate) fn outcomes(&self) -> [(CallState, u64); 5] {
        [
            (CallState::Ok, self.ok),
            (CallState::ToolError, self.tool_error),
            (CallState::Error, self.error),
            (CallState::Cancelled, self.cancelled),
            (CallState::Denied, self.denied),
        ]
    }

    /// How many calls took at most as long as each bound says, and then how many there were.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = u64> + '_ {
        self.buckets.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        })
    }

    /// How long all of them took, in seconds.
    pub(crate) fn sum_seconds(&self) -> f64 {
        self.sum.as_secs_f64()
    }

    /// As the API tells it.
    pub(crate) fn latency(&self, name: &str) -> Latency {
        let mut sorted: Vec<f64> = self.recent.iter().map(|call| call.milliseconds).collect();
        sorted.sort_by(f64::total_cmp);
        Latency {
            name: name.to_owned(),
            count: self.outcomes().iter().map(|(_, count)| count).sum(),
            errors: self.tool_error + self.error,
            p50: percentile(&sorted, 50),
            p95: percentile(&sorted, 95),
            p99: percentile(&sorted, 99),
            recent: self.recent.iter().cloned().collect(),
        }
    }
}

/// The least value that so many of a hundred do not exceed.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BUCKETS, MAX_RECENT, Timings, percentile};
    use crate::model::CallState;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let all: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(percentile(&all, 50), Some(100.0));
        assert_eq!(percentile(&all, 95), Some(190.0));
        assert_eq!(percentile(&all, 99), Some(198.0));
        assert_eq!(percentile(&[7.0], 50), Some(7.0));
        assert_eq!(percentile(&[7.0], 99), Some(7.0));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn calls_fall_into_the_bucket_that_just_holds_them() {
        let mut timings = Timings::default();
        for milliseconds in [1, 2, 5, 61_000] {
            timings.add(CallState::Ok, Duration::from_millis(milliseconds));
        }
        timings.add(CallState::Denied, Duration::from_millis(1));
        let counts: Vec<_> = timings.cumulative().collect();
        assert_eq!(counts.len(), BUCKETS.len() + 1);
        assert_eq!(counts[..3], [1, 3, 3]);
        assert_eq!(counts[BUCKETS.len() - 1..], [3, 4]);
        assert!((timings.sum_seconds() - 61.008).abs() < 1e-9);
    }

    #[test]
    fn only_the_last_calls_are_kept_each() {
        let mut timings = Timings::default();
        for number in 0..MAX_RECENT + 10 {
            let took = if number < 10 { 1000 } else { 1 };
            timings.add(CallState::Error, Duration::from_millis(took));
        }
        let latency = timings.latency("files");
        assert_eq!(latency.recent.len(), MAX_RECENT);
        assert_eq!(latency.count, 266);
        assert_eq!(latency.errors, 266);
        assert_eq!(latency.p99, Some(1.0));
        assert!(latency.recent.iter().all(|call| !call.ok));
    }
}
