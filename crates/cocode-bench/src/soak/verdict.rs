//! What the soak found, in words, and whether it holds.

use super::Storm;
use super::counts::Counts;
use super::found::{Found, shown};
use super::listener::Heard;
use super::plan::{Growth, Phase};

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    found: Found,
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
        self.found.line(format!(
            "{} callers: {} calls in {:.1} s, at most {} at once, the slowest {:.1} s; {} answered ({} of them repeated)",
            phase.callers,
            tally.begun,
            took.as_secs_f64(),
            tally.most_at_once,
            tally.slowest.as_secs_f64(),
            tally.answered,
            tally.repeated,
        ));
        self.found
            .line(format!("  errors: {}", shown(&tally.errors)));
        self.found.line(format!("  kills: {}", shown(kills)));
        self.found.line(format!("  afterward: {after}"));
        if tally.ended() != tally.begun {
            let (ended, begun) = (tally.ended(), tally.begun);
            self.found
                .violate(format!("{ended} of {begun} calls have ended"));
        }
        if tally.answered == 0 || kills.is_empty() {
            self.found
                .violate("nothing was answered, or nothing was killed".into());
        }
        // On a busy machine the first have ended before the last have begun.
        if tally.most_at_once < phase.callers * 9 / 10 {
            let most = tally.most_at_once;
            self.found
                .violate(format!("no more than {most} calls were under way at once"));
        }
        if tally.n_wrong > 0 {
            self.found
                .violate(format!("{} calls went wrong", tally.n_wrong));
            self.found.violations(tally.wrong.iter().cloned());
        }
        self.found.violations(lost.iter().cloned());
        let before = self.last.replace(after);
        if let (Some(before), Some(growth)) = (before, phase.growth) {
            self.judge_memory(&before, &after, growth);
        }
    }

    fn judge_memory(&mut self, before: &Counts, after: &Counts, growth: Growth) {
        let Growth { percent, mebibytes } = growth;
        let limit = growth.limit(before.resident_kib);
        let (before, after) = (before.resident_kib, after.resident_kib);
        self.found.line(format!(
            "  memory: {before} KiB before, {after} KiB after; at most {limit} KiB ({percent} % and {mebibytes} MiB more)"
        ));
        if after > limit {
            self.found.violate("memory has grown".into());
        }
    }

    /// Whether everything is back where it was, and no call ended but once.
    pub(crate) fn judge(&mut self, heard: &Heard, before: &Counts, settled: &Counts) {
        self.found.line(format!("before any server: {before}"));
        self.found.line(format!("after the end:     {settled}"));
        if !settled.is_back_at(before) {
            let text = format!("something was left behind: {settled}; before: {before}");
            self.found.violate(text);
        }
        self.found.line(format!(
            "a listener missed {} events; {} calls ended twice, {} never ended",
            heard.missed,
            heard.twice,
            heard.unfinished()
        ));
        if heard.twice > 0 || heard.unfinished() > 0 {
            self.found
                .violate("a listener heard of calls that did not end exactly once".into());
        }
    }

    /// All of it.
    pub(crate) fn found(self) -> Found {
        self.found
    }
}
