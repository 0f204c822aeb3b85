//! How a scenario ended, for people.

use std::fmt;

use super::oracle::Judgment;
use super::table::{Run, Suite};

/// How one scenario ended.
pub(super) struct Verdict {
    /// The run it belongs to, as [`place_of`] names it.
    pub(super) place: String,
    pub(super) scenario: &'static str,
    pub(super) judgment: Judgment,
    /// The end of the suite's output; only for a failed scenario.
    pub(super) log: String,
}

impl Verdict {
    pub(super) fn passed(&self) -> bool {
        self.judgment.complaints.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            scenario,
            judgment,
            log,
        } = self;
        if self.passed() {
            let successes = judgment.successes;
            return write!(formatter, "pass {place}: {scenario} ({successes} checks)");
        }
        write!(formatter, "FAIL {place}: {scenario}")?;
        for complaint in &judgment.complaints {
            write!(formatter, "\n     {complaint}")?;
        }
        for line in log.lines() {
            write!(formatter, "\n     | {line}")?;
        }
        Ok(())
    }
}

/// How a run is called, for people.
pub(super) fn place_of(suite: &Suite, run: &Run) -> String {
    format!("{} at {run}", suite.label)
}

/// Says for each place that had scenarios how many of them passed.
pub(super) fn summarize(places: impl IntoIterator<Item = String>, verdicts: &[Verdict]) {
    for place in places {
        let of_place = || verdicts.iter().filter(|verdict| verdict.place == place);
        let passed = of_place().filter(|verdict| verdict.passed()).count();
        match of_place().count() {
            0 => {}
            all => println!("{place}: {passed}/{all} scenarios"),
        }
    }
}
