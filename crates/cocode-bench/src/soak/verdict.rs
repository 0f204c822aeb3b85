//! What the soak found, in words, and whether it holds.

use std::collections::BTreeMap;

use super::Storm;
use super::counts::Counts;
use super::listener::Heard;
use super::plan::{Growth, Phase};
use crate::report::say;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    lines: Vec<String>,
    violations: Vec<String>,
    /// At the end of the storm before.
    last: Option<Counts>,
}

impl Verdict {
    /// What a storm came to, and what was there after it.
    pub(crate) fn add(&mut self, phase: &Phase, storm: &Storm, after: Counts) {
        let Storm {
            tally,
            kills,
            farm: _,
            took,
            lost,
        } = storm;
        self.lines.push(format!(
            "{} callers: {} calls in {:.1} s, at most {} at once, the slowest {:.1} s; {} answered ({} of them repeated)",
            phase.callers,
            tally.begun,
            took.as_secs_f64(),
            tally.most_at_once,
            tally.slowest.as_secs_f64(),
            tally.answered,
            tally.repeated,
        ));
        self.lines
            .push(format!("  errors: {}", shown(&tally.errors)));
        self.lines.push(format!("  kills: {}", shown(kills)));
        self.lines.push(format!("  afterward: {after}"));
        if tally.ended() != tally.begun {
            let (ended, begun) = (tally.ended(), tally.begun);
            self.violate(format!("{ended} of {begun} calls have ended"));
        }
        if tally.answered == 0 || kills.is_empty() {
            self.violate("nothing was answered, or nothing was killed".into());
        }
        // On a busy machine the first have ended before the last have begun.
        if tally.most_at_once < phase.callers * 9 / 10 {
            let most = tally.most_at_once;
            self.violate(format!("no more than {most} calls were under way at once"));
        }
        if tally.n_wrong > 0 {
            self.violate(format!("{} calls went wrong", tally.n_wrong));
            self.violations.extend(tally.wrong.iter().cloned());
        }
        self.violations.extend(lost.iter().cloned());
        let before = self.last.replace(after);
        if let (Some(before), Some(growth)) = (before, phase.growth) {
            self.judge_memory(&before, &after, growth);
        }
    }

    fn judge_memory(&mut self, before: &Counts, after: &Counts, growth: Growth) {
        let Growth { percent, mebibytes } = growth;
        let limit = growth.limit(before.resident_kib);
        let (before, after) = (before.resident_kib, after.resident_kib);
        self.lines.push(format!(
            "  memory: {before} KiB before, {after} KiB after; at most {limit} KiB ({percent} % and {mebibytes} MiB more)"
        ));
        if after > limit {
            self.violate("memory has grown".into());
        }
    }

    /// Whether everything is back where it was, and no call ended but once.
    pub(crate) fn judge(&mut self, heard: &Heard, before: &Counts, settled: &Counts) {
        self.lines.push(format!("before any server: {before}"));
        self.lines.push(format!("after the end:     {settled}"));
        if !settled.is_back_at(before) {
            let text = format!("something was left behind: {settled}; before: {before}");
            self.violate(text);
        }
        self.lines.push(format!(
            "a listener missed {} events; {} calls ended twice, {} never ended",
            heard.missed,
            heard.twice,
            heard.unfinished()
        ));
        if heard.twice > 0 || heard.unfinished() > 0 {
            self.violate("a listener heard of calls that did not end exactly once".into());
        }
    }

    fn violate(&mut self, text: String) {
        self.violations.push(text);
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
