//! What the soak found, in words, and whether it holds.

use std::collections::BTreeMap;

use super::Storm;
use super::counts::Counts;
use super::listener::Heard;
use super::plan::Plan;
use crate::report::say;

/// What memory may have grown by from the end of the warm-up to the end, in percent and MiB: the
/// to and fro of an allocator under load that is never twice the same.
const GROWTH_PERCENT: u64 = 15;
const GROWTH_MIB: u64 = 16;

#[derive(Debug)]
pub(crate) struct Verdict {
    plan: Plan,
    lines: Vec<String>,
    violations: Vec<String>,
}

impl Verdict {
    pub(crate) fn new(plan: Plan) -> Self {
        Self {
            plan,
            lines: Vec::new(),
            violations: Vec::new(),
        }
    }

    /// What a storm came to.
    pub(crate) fn add(&mut self, storm: &Storm) {
        let Storm {
            tally,
            kills,
            farm: _,
            took,
            lost,
        } = storm;
        let seconds = took.as_secs_f64();
        self.lines.push(format!(
            "{} calls in {seconds:.1} s, at most {} at once, the slowest {:.1} s: {} answered ({} of them repeated)",
            tally.begun,
            tally.most_at_once,
            tally.slowest.as_secs_f64(),
            tally.answered,
            tally.repeated,
        ));
        self.lines
            .push(format!("  errors: {}", shown(&tally.errors)));
        self.lines.push(format!("  kills: {}", shown(kills)));
        if tally.ended() != tally.begun {
            let (ended, begun) = (tally.ended(), tally.begun);
            self.violations
                .push(format!("{ended} of {begun} calls have ended"));
        }
        if tally.answered == 0 || kills.is_empty() {
            self.violations
                .push("nothing was answered, or nothing was killed".into());
        }
        if tally.most_at_once < self.plan.calls {
            let most = tally.most_at_once;
            self.violations
                .push(format!("no more than {most} calls were under way at once"));
        }
        if tally.n_wrong > 0 {
            self.violations
                .push(format!("{} calls went wrong", tally.n_wrong));
            self.violations.extend(tally.wrong.iter().cloned());
        }
        self.violations.extend(lost.iter().cloned());
    }

    /// Whether everything is back where it was, and memory did not grow from warm to after.
    pub(crate) fn judge(
        &mut self,
        heard: &Heard,
        before: &Counts,
        settled: &Counts,
        (warm, after): (&Counts, &Counts),
    ) {
        self.lines.push(format!("before any server: {before}"));
        self.lines.push(format!("after the warm-up: {warm}"));
        self.lines.push(format!("after the storm:   {after}"));
        self.lines.push(format!("after the end:     {settled}"));
        if !settled.is_back_at(before) {
            self.violations.push(format!(
                "something was left behind: {settled}; before: {before}"
            ));
        }
        let limit = warm.resident_kib * (100 + GROWTH_PERCENT) / 100 + GROWTH_MIB * 1024;
        self.lines.push(format!(
            "memory: {} KiB after the warm-up, {} KiB after the storm; the limit is {limit} KiB ({GROWTH_PERCENT} % and {GROWTH_MIB} MiB more)",
            warm.resident_kib, after.resident_kib
        ));
        if after.resident_kib > limit {
            self.violations.push("memory has grown".into());
        }
        self.lines.push(format!(
            "a listener missed {} events; {} calls ended twice, {} never ended",
            heard.missed,
            heard.twice,
            heard.unfinished()
        ));
        if heard.twice > 0 || heard.unfinished() > 0 {
            self.violations
                .push("a listener heard of calls that did not end exactly once".into());
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.violations.is_empty()
    }

    pub(crate) fn print(&self) {
        for line in &self.lines {
            say(line);
        }
        for violation in &self.violations {
            say(&format!("VIOLATION: {violation}"));
        }
        say(if self.holds() {
            "soak: everything holds"
        } else {
            "soak: FAILED"
        });
    }
}

fn shown(counts: &BTreeMap<&'static str, u64>) -> String {
    if counts.is_empty() {
        return "none".into();
    }
    let each = counts.iter().map(|(name, count)| format!("{name} {count}"));
    each.collect::<Vec<_>>().join(", ")
}
