//! `memory`: a million calls, and what they leave behind.

use std::sync::Arc;

use super::Runtime;
use crate::Failure;
use crate::caller::Echo;
use crate::load::at_once;
use crate::ours::Ours;
use crate::report::{Better, Case, Findings, Series, Target};
use crate::usage;

const IN_FLIGHT: usize = 64;
const WARM_UP: usize = 50_000;
/// When memory is looked at, counted in calls after the warm-up.
const SAMPLES: [usize; 3] = [100_000, 500_000, 1_000_000];

/// MiB. Less is the usual to and fro of an allocator.
const GROWTH: Target = Target::AtMost(5.0);

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

async fn measure() -> Result<Findings, Failure> {
    let echo = Arc::new(Echo::plain(1024)?);
    let ours = Ours::start(1).await?;
    at_once(&ours, &echo, IN_FLIGHT, WARM_UP).await?;
    let before = mebibytes()?;
    let mut seen = vec![format!("{before:.1} MiB after the warm-up")];
    let mut called = 0;
    let mut last = before;
    for sample in SAMPLES {
        at_once(&ours, &echo, IN_FLIGHT, sample - called).await?;
        called = sample;
        last = mebibytes()?;
        seen.push(format!("{last:.1} after {sample} calls"));
    }
    ours.session.close().await;
    let case = Case {
        name: "memory: growth over 1,000,000 calls".into(),
        unit: "MiB",
        better: Better::Lower,
        ours: Series::of("cocode", last - before),
        against: Vec::new(),
        sdk: None,
        target: Some(GROWTH),
    };
    Ok(Findings {
        cases: vec![case],
        notes: vec![format!("memory: resident {}", seen.join(", "))],
    })
}

fn mebibytes() -> Result<f64, Failure> {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let kibibytes = usage::resident_kib()? as f64;
    Ok(kibibytes / 1024.0)
}
