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
use crate::turns::schedule;

const RESULT_BYTES: usize = 1024 * 1024;
/// Cycles of four rounds, see [`crate::turns`].
const CYCLES: usize = 2;
const CALLS: usize = 30;

/// The same share as for small results.
const LATENCY: Target = Target::AtMost(1.5);

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Ours,
    Loop,
    BySender,
    Sdk,
}

const CLIENTS: [Client; 4] = [Client::Ours, Client::Loop, Client::BySender, Client::Sdk];

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
        let mut rounds = Vec::new();
        for turn in schedule(&CLIENTS, CYCLES) {
            let round = match turn.client {
                Client::Ours => one_by_one(&mut ours, &echo, CALLS).await?,
                Client::Loop => one_by_one(&mut direct, &echo, CALLS).await?,
                Client::BySender => one_by_one(&mut shared, &echo, CALLS).await?,
                Client::Sdk => one_by_one(&mut sdk, &echo, CALLS).await?,
            };
            if turn.is_counted {
                rounds.push((turn.client, round));
            }
        }
        let series = |client, name| Series::among(&rounds, &client, name, milliseconds);
        findings.cases.push(Case {
            name: format!("large: p50, 1 MiB, {name}"),
            unit: "ms",
            better: Better::Lower,
            ours: series(Client::Ours, "cocode"),
            against: vec![
                series(Client::Loop, "raw loop"),
                series(Client::BySender, "raw, sender writes"),
            ],
            sdk: Some(series(Client::Sdk, "SDK")),
            target: Some(LATENCY),
        });
    }
    Ok(findings)
}

fn milliseconds(round: &Round) -> f64 {
    round.median.as_secs_f64() * 1e3
}
