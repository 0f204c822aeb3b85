//! `call`: small tool calls, one at a time and 64 at a time.

use std::sync::Arc;

use super::Runtime;
use crate::Failure;
use crate::caller::{Caller, Echo};
use crate::load::{Round, at_once, one_by_one};
use crate::ours::Ours;
use crate::raw::direct::Direct;
use crate::raw::shared::{Shared, Writing};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::sdk::Sdk;

const RESULT_BYTES: usize = 1024;
const IN_FLIGHT: usize = 64;
const CALLS_ONE_BY_ONE: usize = 4_000;
const CALLS_AT_ONCE: usize = 30_000;
/// The SDK's client gets fewer, so that its rounds are no longer than those of the others.
const SLOWER: usize = 4;
/// Rounds that decide something, and rounds that do not. Many short ones find a quiet moment on a
/// busy machine sooner than few long ones.
const ROUNDS: usize = 15;
const ROUNDS_TO_READ: usize = 5;

/// Half of the latency of a raw client on top of it, and no more.
const LATENCY: Target = Target::AtMost(1.5);
const THROUGHPUT: Target = Target::AtLeast(0.6);

/// Latency is judged where the kernel cannot choose the processor, see [`crate::processors`];
/// throughput where both processors are there to be used. The rest is there to be read.
pub(super) fn run() -> Result<Findings, Failure> {
    let mut cases = Runtime::OneProcessor.run(alone(", one processor", Some(LATENCY)))?;
    cases.extend(Runtime::TwoWorkers.run(crowded("", Some(THROUGHPUT)))?);
    cases.extend(Runtime::TwoWorkers.run(alone("", None))?);
    cases.extend(Runtime::OneThread.run(alone(", one thread", None))?);
    cases.extend(Runtime::OneThread.run(crowded(", one thread", None))?);
    Ok(Findings {
        cases,
        notes: Vec::new(),
    })
}

fn rounds_for(target: Option<Target>) -> usize {
    target.map_or(ROUNDS_TO_READ, |_| ROUNDS)
}

async fn alone(place: &'static str, target: Option<Target>) -> Result<Vec<Case>, Failure> {
    let echo = Echo::plain(RESULT_BYTES)?;
    let mut clients = Clients::start().await?;
    clients.one_by_one(&echo, CALLS_ONE_BY_ONE / 4).await?;
    let mut rounds = Vec::new();
    for _ in 0..rounds_for(target) {
        rounds.push(clients.one_by_one(&echo, CALLS_ONE_BY_ONE).await?);
    }
    let median = |round: &Round| round.median.as_secs_f64() * 1e6;
    let mut latency = case(Better::Lower, &rounds, median);
    latency.name = format!("call: p50, 1 in flight{place}");
    latency.unit = "µs";
    latency.target = target;
    let mut processor = case(Better::Lower, &rounds, |round| round.processor);
    processor.name = format!("call: processor time, 1 in flight{place}");
    processor.unit = "µs/call";
    Ok(vec![latency, processor])
}

async fn crowded(place: &'static str, target: Option<Target>) -> Result<Vec<Case>, Failure> {
    let echo = Arc::new(Echo::plain(RESULT_BYTES)?);
    let clients = Clients::start().await?;
    clients.at_once(&echo, CALLS_AT_ONCE / 4).await?;
    let mut rounds = Vec::new();
    for _ in 0..rounds_for(target) {
        rounds.push(clients.at_once(&echo, CALLS_AT_ONCE).await?);
    }
    let mut throughput = case(Better::Higher, &rounds, |round| round.per_second);
    throughput.name = format!("call: {IN_FLIGHT} in flight{place}");
    throughput.unit = "calls/s";
    throughput.target = target;
    let mut processor = case(Better::Lower, &rounds, |round| round.processor);
    processor.name = format!("call: processor time, {IN_FLIGHT} in flight{place}");
    processor.unit = "µs/call";
    Ok(vec![throughput, processor])
}

/// All clients, each with a server of its own.
struct Clients {
    ours: Ours,
    direct: Direct,
    by_sender: Shared,
    gathered: Shared,
    sdk: Sdk,
}

/// One round of all clients: ours, the SDK's, and the yardsticks with their names.
struct Rounds {
    ours: Round,
    sdk: Round,
    raw: Vec<(&'static str, Round)>,
}

impl Clients {
    async fn start() -> Result<Self, Failure> {
        Ok(Self {
            ours: Ours::start(1).await?,
            direct: Direct::start(1).await?,
            by_sender: Shared::start(1, Writing::BySender).await?,
            gathered: Shared::start(1, Writing::Gathered).await?,
            sdk: Sdk::start(1).await?,
        })
    }

    async fn one_by_one(&mut self, echo: &Echo, n_calls: usize) -> Result<Rounds, Failure> {
        Ok(Rounds {
            ours: one_by_one(&mut self.ours, echo, n_calls).await?,
            raw: vec![
                (
                    "raw loop",
                    one_by_one(&mut self.direct, echo, n_calls).await?,
                ),
                (
                    "raw, sender writes",
                    one_by_one(&mut self.by_sender, echo, n_calls).await?,
                ),
            ],
            sdk: one_by_one(&mut self.sdk.caller(), echo, n_calls / SLOWER).await?,
        })
    }

    async fn at_once(&self, echo: &Arc<Echo>, n_calls: usize) -> Result<Rounds, Failure> {
        Ok(Rounds {
            ours: crowd(&self.ours, echo, n_calls).await?,
            raw: vec![
                (
                    "raw, sender writes",
                    crowd(&self.by_sender, echo, n_calls).await?,
                ),
                (
                    "raw, gathered writes",
                    crowd(&self.gathered, echo, n_calls).await?,
                ),
            ],
            sdk: crowd(&self.sdk.caller(), echo, n_calls / SLOWER).await?,
        })
    }
}

async fn crowd<C: Caller + Clone>(
    caller: &C,
    echo: &Arc<Echo>,
    n_calls: usize,
) -> Result<Round, Failure> {
    at_once(caller, echo, IN_FLIGHT, n_calls).await
}

fn case(better: Better, rounds: &[Rounds], value: impl Fn(&Round) -> f64) -> Case {
    let mut ours = Series::new("cocode");
    let mut sdk = Series::new("SDK");
    let mut against: Vec<Series> = Vec::new();
    for round in rounds {
        ours.push(value(&round.ours));
        sdk.push(value(&round.sdk));
        for (index, (name, raw)) in round.raw.iter().enumerate() {
            if against.len() <= index {
                against.push(Series::new(name));
            }
            if let Some(series) = against.get_mut(index) {
                series.push(value(raw));
            }
        }
    }
    Case {
        name: String::new(),
        unit: "",
        better,
        ours,
        against,
        sdk: Some(sdk),
        target: None,
    }
}
