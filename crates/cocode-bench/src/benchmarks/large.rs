//! `large`: results of one mebibyte, with and without characters that need escapes.

use super::Runtime;
use crate::Failure;
use crate::caller::Echo;
use crate::load::{Round, one_by_one};
use crate::ours::Ours;
use crate::raw::direct::Direct;
use crate::raw::shared::{Shared, Writing};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::sdk::Sdk;

const RESULT_BYTES: usize = 1024 * 1024;
const ROUNDS: usize = 7;
const CALLS: usize = 30;

/// The same share as for small results.
const LATENCY: Target = Target::AtMost(1.5);

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

async fn measure() -> Result<Findings, Failure> {
    let mut ours = Ours::start(1).await?;
    let mut direct = Direct::start(1).await?;
    let mut shared = Shared::start(1, Writing::BySender).await?;
    let sdk_session = Sdk::start(1).await?;
    let mut sdk = sdk_session.caller();
    let mut findings = Findings::default();
    for (name, echo) in [
        ("plain", Echo::plain(RESULT_BYTES)?),
        ("escapes", Echo::with_escapes(RESULT_BYTES)?),
    ] {
        let new = Series::new;
        let mut case = Case {
            name: format!("large: p50, 1 MiB, {name}"),
            unit: "ms",
            better: Better::Lower,
            ours: new("cocode"),
            against: vec![],
            sdk: None,
            target: Some(LATENCY),
        };
        let (mut by_loop, mut by_task, mut by_sdk) =
            (new("raw loop"), new("raw, sender writes"), new("SDK"));
        // The first round warms up and is not counted.
        for round in 0..=ROUNDS {
            let rounds = [
                one_by_one(&mut ours, &echo, CALLS).await?,
                one_by_one(&mut direct, &echo, CALLS).await?,
                one_by_one(&mut shared, &echo, CALLS).await?,
                one_by_one(&mut sdk, &echo, CALLS).await?,
            ];
            if round == 0 {
                continue;
            }
            let all = [&mut case.ours, &mut by_loop, &mut by_task, &mut by_sdk];
            for (series, round) in all.into_iter().zip(rounds) {
                series.push(milliseconds(round));
            }
        }
        case.against = vec![by_loop, by_task];
        case.sdk = Some(by_sdk);
        findings.cases.push(case);
    }
    Ok(findings)
}

fn milliseconds(round: Round) -> f64 {
    round.median.as_secs_f64() * 1e3
}
