//! `agent`: our agent as a server beside those of others, and how soon a model hears from it.

mod asking;
mod serving;

use std::time::Duration;

use super::Runtime;
use crate::Failure;
use crate::agents::Stage;
use crate::report::{Findings, Series};

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

async fn measure() -> Result<Findings, Failure> {
    let stage = Stage::set()?;
    let mut findings = serving::measure(&stage).await?;
    let asking = asking::measure(&stage).await?;
    findings.cases.extend(asking.cases);
    findings.notes.extend(asking.notes);
    Ok(findings)
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// A line with the spread of all series, for people.
fn spreads(what: &str, all: &[&Series]) -> String {
    let spreads = all.iter().map(|series| {
        let (median, p90) = (series.percentile(50), series.percentile(90));
        format!("{} {median:.1} / {p90:.1}", series.name)
    });
    let spreads: Vec<String> = spreads.collect();
    format!("agent: {what}, median / p90: {}", spreads.join(", "))
}
