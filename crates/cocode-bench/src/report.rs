//! What was measured, beside its yardstick, and whether that meets the target.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its result is what it prints"
)]

use std::cmp::Ordering;

use serde_json::{Value, json};

use crate::load::Round;
use crate::{Failure, usage};

/// How the result is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Table,
    Json,
}

/// Which direction is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
}

/// What must hold: for the ratio to the yardstick, or for the value itself where there is none.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    AtMost(f64),
    AtLeast(f64),
}

/// The rounds of one client.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    values: Vec<f64>,
}

/// One thing that was measured with all clients.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) unit: &'static str,
    pub(crate) better: Better,
    pub(crate) ours: Series,
    /// The yardsticks. The one that did best is what counts.
    pub(crate) against: Vec<Series>,
    /// For comparison only.
    pub(crate) sdk: Option<Series>,
    pub(crate) target: Option<Target>,
}

/// What one benchmark found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    pub(crate) cases: Vec<Case>,
    pub(crate) notes: Vec<String>,
}

/// The whole run.
#[derive(Debug)]
pub(crate) struct Report {
    format: Format,
    load_before: Option<f64>,
    all: Findings,
}

impl Series {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            values: Vec::new(),
        }
    }

    /// The rounds of one client among those of all.
    pub(crate) fn among<C: PartialEq>(
        rounds: &[(C, Round)],
        client: &C,
        name: &'static str,
        value: impl Fn(&Round) -> f64,
    ) -> Self {
        let own = rounds.iter().filter(|(whose, _)| whose == client);
        Self {
            name,
            values: own.map(|(_, round)| value(round)).collect(),
        }
    }

    pub(crate) fn of(name: &'static str, value: f64) -> Self {
        Self {
            name,
            values: vec![value],
        }
    }

    pub(crate) fn push(&mut self, value: f64) {
        self.values.push(value);
    }

    /// The smallest value that so many percent of all do not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let sorted = self.sorted(Better::Lower);
        let place = (sorted.len() * percent).div_ceil(100);
        let found = sorted.get(place.saturating_sub(1));
        found.copied().unwrap_or(f64::NAN)
    }

    fn sorted(&self, better: Better) -> Vec<f64> {
        let mut values = self.values.clone();
        values.sort_by(f64::total_cmp);
        if better == Better::Higher {
            values.reverse();
        }
        values
    }

    fn best(&self, better: Better) -> f64 {
        self.sorted(better).first().copied().unwrap_or(f64::NAN)
    }

    fn median(&self, better: Better) -> f64 {
        let sorted = self.sorted(better);
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::AtMost(limit) => format!("<= {limit}"),
            Self::AtLeast(limit) => format!(">= {limit}"),
        }
    }
}

impl Case {
    /// The yardstick that did best.
    fn yardstick(&self) -> Option<&Series> {
        let compare = |a: &&Series, b: &&Series| -> Ordering {
            let order = a.best(self.better).total_cmp(&b.best(self.better));
            match self.better {
                Better::Lower => order,
                Better::Higher => order.reverse(),
            }
        };
        self.against.iter().min_by(compare)
    }

    /// Best to best and median to median.
    fn ratios(&self, series: &Series) -> Option<(f64, f64)> {
        let yardstick = self.yardstick()?;
        Some((
            series.best(self.better) / yardstick.best(self.better),
            series.median(self.better) / yardstick.median(self.better),
        ))
    }

    /// The best rounds decide: noise only ever makes a round worse.
    fn is_met(&self) -> bool {
        let judged = self
            .ratios(&self.ours)
            .map_or_else(|| self.ours.best(self.better), |(best, _median)| best);
        self.target.is_none_or(|target| target.is_met(judged))
    }

    fn row(&self) -> String {
        let show = |series: Option<&Series>| {
            series.map_or_else(
                || "-".to_owned(),
                |series| {
                    let (best, median) = (series.best(self.better), series.median(self.better));
                    format!("{} / {}", number(best), number(median))
                },
            )
        };
        let ratio = |ratios: Option<(f64, f64)>| {
            ratios.map_or_else(
                || "-".to_owned(),
                |(best, median)| format!("{best:.2} / {median:.2}"),
            )
        };
        let verdict = match (self.target, self.is_met()) {
            (None, _) => "",
            (Some(_), true) => "ok",
            (Some(_), false) => "MISSED",
        };
        format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {verdict} |",
            self.name,
            self.unit,
            show(Some(&self.ours)),
            show(self.yardstick()),
            self.yardstick().map_or("-", |series| series.name),
            ratio(self.ratios(&self.ours)),
            show(self.sdk.as_ref()),
            ratio(self.sdk.as_ref().and_then(|sdk| self.ratios(sdk))),
            self.target.map_or_else(|| "-".to_owned(), Target::shown),
        )
    }

    fn json(&self) -> Value {
        let series = |series: &Series| {
            json!({
                "name": series.name,
                "best": series.best(self.better),
                "median": series.median(self.better),
                "rounds": series.values,
                "ratio": self.ratios(series).map(|(best, median)| json!({ "best": best, "median": median })),
            })
        };
        let target = self.target.map(|target| match target {
            Target::AtMost(limit) => json!({ "at_most": limit }),
            Target::AtLeast(limit) => json!({ "at_least": limit }),
        });
        json!({
            "case": self.name,
            "unit": self.unit,
            "ours": series(&self.ours),
            "against": self.against.iter().map(series).collect::<Vec<_>>(),
            "yardstick": self.yardstick().map(|series| series.name),
            "sdk": self.sdk.as_ref().map(series),
            "target": target,
            "ok": self.is_met(),
        })
    }
}

impl Report {
    pub(crate) fn begin(format: Format) -> Self {
        if format == Format::Table {
            println!(
                "best / median of the rounds; ratios are to the yardstick, which is the best of \
                 its kind\n"
            );
            println!(
                "| case | unit | cocode | yardstick | which | ratio | SDK | SDK ratio | target | |"
            );
            println!("|---|---|---|---|---|---|---|---|---|---|");
        }
        Self {
            format,
            load_before: usage::load_average(),
            all: Findings::default(),
        }
    }

    /// Takes the findings of one benchmark in; a table grows while the rest is measured.
    pub(crate) fn add(&mut self, findings: Findings) {
        let Findings { cases, notes } = findings;
        if self.format == Format::Table {
            for case in &cases {
                println!("{}", case.row());
            }
        }
        self.all.cases.extend(cases);
        self.all.notes.extend(notes);
    }

    /// Whether all targets were met.
    pub(crate) fn finish(self) -> bool {
        let Findings { cases, notes } = &self.all;
        let ok = cases.iter().all(Case::is_met);
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        match self.format {
            Format::Table => {
                println!();
                for note in notes {
                    println!("{note}");
                }
                let shown = |load: Option<f64>| load.map_or("unknown".into(), |l| l.to_string());
                let (before, after) = (shown(self.load_before), shown(usage::load_average()));
                println!("{cores} cores, load average {before} before and {after} after");
                let n_targets = cases.iter().filter(|case| case.target.is_some()).count();
                let n_missed = cases.iter().filter(|case| !case.is_met()).count();
                println!("{n_targets} targets, {n_missed} missed");
            }
            Format::Json => {
                let whole = json!({
                    "cores": cores,
                    "load_average": [self.load_before, usage::load_average()],
                    "cases": cases.iter().map(Case::json).collect::<Vec<_>>(),
                    "notes": notes,
                    "ok": ok,
                });
                println!("{whole}");
            }
        }
        ok
    }
}

/// Says something that is no measurement.
pub(crate) fn say(text: &str) {
    println!("{text}");
}

/// Says what went wrong, with its causes.
pub(crate) fn complain(failure: &Failure) {
    eprintln!("cocode-bench: {failure}");
    let mut cause = failure.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
}

/// Three digits that mean something.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Better, Case, Series, Target};

    fn series(name: &'static str, values: &[f64]) -> Series {
        Series {
            name,
            values: values.to_vec(),
        }
    }

    fn case(better: Better, target: Target) -> Case {
        Case {
            name: "case".into(),
            unit: "",
            better,
            ours: series("ours", &[30.0, 10.0, 20.0]),
            against: vec![series("slow", &[90.0]), series("fast", &[8.0, 16.0, 40.0])],
            sdk: None,
            target: Some(target),
        }
    }

    #[test]
    fn the_best_yardstick_counts_and_the_best_rounds_decide() {
        let lower = case(Better::Lower, Target::AtMost(1.25));
        assert_eq!(lower.ratios(&lower.ours), Some((1.25, 1.25)));
        assert!(lower.is_met());
        assert!(!case(Better::Lower, Target::AtMost(1.2)).is_met());
        let higher = case(Better::Higher, Target::AtLeast(0.3));
        assert_eq!(higher.yardstick().map(|series| series.name), Some("slow"));
        assert_eq!(
            higher.ratios(&higher.ours).map(|(best, _)| best),
            Some(30.0 / 90.0)
        );
        assert!(higher.is_met());
        assert!(!case(Better::Higher, Target::AtLeast(0.4)).is_met());
    }

    #[test]
    fn a_percentile_is_a_value_that_was_seen() {
        let seen = series("seen", &[5.0, 1.0, 4.0, 2.0, 3.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
        let found = [1, 50, 90, 100].map(|percent| seen.percentile(percent).to_string());
        assert_eq!(found, ["1", "5", "9", "10"]);
        assert!(series("nothing", &[]).percentile(50).is_nan());
    }

    #[test]
    fn without_a_yardstick_the_value_itself_is_judged() {
        let mut growth = case(Better::Lower, Target::AtMost(5.0));
        growth.against.clear();
        growth.ours = Series::of("ours", 4.0);
        assert!(growth.is_met());
        growth.ours = Series::of("ours", 6.0);
        assert!(!growth.is_met());
    }
}
