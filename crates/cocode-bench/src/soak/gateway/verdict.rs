//! What the soak of a gateway found, in words, and whether it holds.

use std::fmt;
use std::time::Duration;

use super::crowd::Tally;
use super::ledger::Ledger;
use super::plan::Plan;
use crate::gateway::Inside;
use crate::soak::found::{Found, shown};
use crate::soak::plan::Growth;

/// From the second fifth of the time to the last: the to and fro of an allocator, and no more.
const GROWTH: Growth = Growth {
    percent: 10,
    mebibytes: 4,
};

/// The most that a gateway may have a minute after the last session, in KiB: 1.5 times what it had before the first.
pub(crate) fn released_limit(before: u64) -> u64 {
    before + before / 2
}

/// What a gateway has at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holdings {
    pub(crate) inside: Inside,
    pub(crate) descriptors: usize,
    /// Processes of this soak.
    pub(crate) processes: usize,
}

impl fmt::Display for Holdings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            inside,
            descriptors,
            processes,
        } = self;
        let Inside {
            tasks,
            conversations,
            requests,
        } = inside;
        write!(
            formatter,
            "{tasks} tasks, {conversations} conversations, {requests} requests, {descriptors} descriptors, \
             {processes} processes"
        )
    }
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Verdict(Found);

impl Verdict {
    pub(crate) fn of_calls(&mut self, plan: &Plan, tally: &Tally, kills: u64, took: Duration) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let per_second = tally.begun as f64 / took.as_secs_f64();
        self.line("time", format!("{:.1} s", took.as_secs_f64()));
        self.line("servers killed", kills);
        self.line(
            "sessions opened",
            format!(
                "{} (refused while a server was down: {})",
                tally.sessions, tally.not_opened
            ),
        );
        self.line("calls", format!("{} ({per_second:.0}/s)", tally.begun));
        self.line("most at once", tally.most_at_once);
        self.line("answered, each with its own", tally.answered);
        self.line("cancelled, without an answer", tally.cancelled);
        self.line("left by their clients", tally.left);
        self.line("errors that name the server", shown(&tally.refused));
        self.line("slowest", format!("{:.1} s", tally.slowest.as_secs_f64()));
        self.line("wrong", tally.n_wrong);
        if tally.ended() + tally.n_wrong < tally.begun {
            let (ended, begun) = (tally.ended(), tally.begun);
            self.0
                .violate(format!("{ended} of {begun} calls have ended"));
        }
        if tally.answered == 0 || kills == 0 {
            self.0
                .violate("nothing was answered, or nothing was killed".into());
        }
        if tally.most_at_once < plan.in_flight * 9 / 10 {
            let most = tally.most_at_once;
            self.0
                .violate(format!("no more than {most} calls were under way at once"));
        }
        if tally.n_wrong > 0 {
            self.0
                .violate(format!("{} things went wrong", tally.n_wrong));
            self.0.violations(tally.wrong.iter().cloned());
        }
    }

    /// What the servers did, beside what clients were told.
    pub(crate) fn of_effects(&mut self, tally: &Tally, ledger: &Ledger) {
        self.line(
            "done by servers",
            format!("{} in {} processes", ledger.n_done, ledger.n_processes),
        );
        self.line("done twice", ledger.again.len());
        if !ledger.again.is_empty() {
            let some: Vec<String> = ledger.again.iter().take(10).map(u64::to_string).collect();
            self.0
                .violate(format!("calls were made twice: {}", some.join(", ")));
        }
        let undone = tally.numbers.not_in(&ledger.done);
        if undone > 0 {
            self.0.violate(format!(
                "{undone} calls were answered that no server has seen"
            ));
        }
    }

    /// Memory over time, in KiB.
    pub(crate) fn of_memory(&mut self, samples: &[u64]) {
        let fifth = samples.len() / 5;
        let mean = |samples: &[u64]| {
            let count = u64::try_from(samples.len()).unwrap_or(u64::MAX);
            samples.iter().sum::<u64>() / count.max(1)
        };
        let (early, late) = (
            mean(&samples[fifth..2 * fifth]),
            mean(&samples[samples.len() - fifth..]),
        );
        let limit = GROWTH.limit(early);
        let Growth { percent, mebibytes } = GROWTH;
        let peak = samples.iter().max().copied().unwrap_or_default();
        self.line(
            "memory",
            format!(
                "{early} KiB in the second fifth, {late} KiB in the last, {peak} KiB at most; allowed {limit} KiB \
                 ({percent} % and {mebibytes} MiB more)"
            ),
        );
        if fifth == 0 {
            self.0.violate("memory was looked at too seldom".into());
        }
        if late > limit {
            self.0.violate("memory has grown".into());
        }
    }

    /// Memory before the first session and after the last one, in KiB.
    pub(crate) fn of_released_memory(&mut self, before: u64, after: u64) {
        let limit = released_limit(before);
        self.line(
            "memory without sessions",
            format!("{before} KiB before, {after} KiB after; allowed {limit} KiB"),
        );
        if after > limit {
            self.0.violate("memory was not returned".into());
        }
    }

    pub(crate) fn of_holdings(&mut self, before: &Holdings, after: &Holdings) {
        self.line("before any client", before);
        self.line("after the last", after);
        if before != after {
            self.0
                .violate(format!("something was left: {after}; before: {before}"));
        }
    }

    /// Processes that are there when the gateway is not.
    pub(crate) fn of_the_end(&mut self, processes: usize) {
        self.line("processes after its end", processes);
        if processes > 0 {
            self.0
                .violate(format!("{processes} processes have outlived the gateway"));
        }
    }

    pub(crate) fn of_servers(&mut self, lost: Vec<String>) {
        self.0.violations(lost);
    }

    /// One row of the table.
    fn line(&mut self, name: &str, value: impl fmt::Display) {
        self.0.line(format!("| {name} | {value} |"));
    }

    /// All of it.
    pub(crate) fn found(self) -> Found {
        self.0
    }
}

impl Default for Verdict {
    fn default() -> Self {
        let mut found = Found::default();
        found.line("| | |\n|---|---|".into());
        Self(found)
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict;

    #[test]
    fn memory_that_was_not_returned_is_a_violation() {
        for (after, holds) in [(30_000, true), (30_001, false)] {
            let mut verdict = Verdict::default();
            verdict.of_released_memory(20_000, after);
            assert_eq!(verdict.found().holds(), holds, "{after}");
        }
    }
}
