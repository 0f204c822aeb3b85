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
use crate::turns::schedule;

const RESULT_BYTES: usize = 1024;
const IN_FLIGHT: usize = 64;
const CALLS_ONE_BY_ONE: usize = 4_000;
const CALLS_AT_ONCE: usize = 30_000;
/// The SDK's client gets fewer, so that its rounds are no longer than those of the others.
const SLOWER: usize = 4;
/// Cycles of four rounds, see [`crate::turns`], where they decide something and where they do not.
/// Many short rounds find a quiet moment on a busy machine sooner than few long ones.
const CYCLES: usize = 4;
const CYCLES_TO_READ: usize = 2;

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

fn cycles_for(target: Option<Target>) -> usize {
    target.map_or(CYCLES_TO_READ, |_| CYCLES)
}

async fn alone(place: &'static str, target: Option<Target>) -> Result<Vec<Case>, Failure> {
    let echo = Echo::plain(RESULT_BYTES)?;
    let mut clients = Clients::start().await?;
    let yardsticks = [Client::Loop, Client::BySender];
    let mut rounds = Vec::new();
    for turn in schedule(&against(yardsticks), cycles_for(target)) {
        let round = clients.one_by_one(turn.client, &echo).await?;
        if turn.is_counted {
            rounds.push((turn.client, round));
        }
    }
    let median = |round: &Round| round.median.as_secs_f64() * 1e6;
    let mut latency = case(Better::Lower, &rounds, yardsticks, median);
    latency.name = format!("call: p50, 1 in flight{place}");
    latency.unit = "µs";
    latency.target = target;
    let mut processor = case(Better::Lower, &rounds, yardsticks, |round| round.processor);
    processor.name = format!("call: processor time, 1 in flight{place}");
    processor.unit = "µs/call";
    Ok(vec![latency, processor])
}

async fn crowded(place: &'static str, target: Option<Target>) -> Result<Vec<Case>, Failure> {
    let echo = Arc::new(Echo::plain(RESULT_BYTES)?);
    let clients = Clients::start().await?;
    let yardsticks = [Client::BySender, Client::Gathered];
    let mut rounds = Vec::new();
    for turn in schedule(&against(yardsticks), cycles_for(target)) {
        let round = clients.at_once(turn.client, &echo).await?;
        if turn.is_counted {
            rounds.push((turn.client, round));
        }
    }
    let mut throughput = case(Better::Higher, &rounds, yardsticks, |round| {
        round.per_second
    });
    throughput.name = format!("call: {IN_FLIGHT} in flight{place}");
    throughput.unit = "calls/s";
    throughput.target = target;
    let mut processor = case(Better::Lower, &rounds, yardsticks, |round| round.processor);
    processor.name = format!("call: processor time, {IN_FLIGHT} in flight{place}");
    processor.unit = "µs/call";
    Ok(vec![throughput, processor])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Ours,
    Loop,
    BySender,
    Gathered,
    Sdk,
}

impl Client {
    fn name(self) -> &'static str {
        match self {
            Self::Ours => "cocode",
            Self::Loop => "raw loop",
            Self::BySender => "raw, sender writes",
            Self::Gathered => "raw, gathered writes",
            Self::Sdk => "SDK",
        }
    }
}

/// All that take turns in a case with these yardsticks.
fn against([one, other]: [Client; 2]) -> [Client; 4] {
    [Client::Ours, one, other, Client::Sdk]
}

/// All clients, each with a server of its own.
struct Clients {
    ours: Ours,
    direct: Direct,
    by_sender: Shared,
    gathered: Shared,
    sdk: Sdk,
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

    async fn one_by_one(&mut self, client: Client, echo: &Echo) -> Result<Round, Failure> {
        let n_calls = CALLS_ONE_BY_ONE;
        match client {
            Client::Ours => one_by_one(&mut self.ours, echo, n_calls).await,
            Client::Loop => one_by_one(&mut self.direct, echo, n_calls).await,
            Client::BySender => one_by_one(&mut self.by_sender, echo, n_calls).await,
            Client::Gathered => one_by_one(&mut self.gathered, echo, n_calls).await,
            Client::Sdk => one_by_one(&mut self.sdk.caller(), echo, n_calls / SLOWER).await,
        }
    }

    async fn at_once(&self, client: Client, echo: &Arc<Echo>) -> Result<Round, Failure> {
        let n_calls = CALLS_AT_ONCE;
        match client {
            Client::Ours => crowd(&self.ours, echo, n_calls).await,
            Client::Loop => Err("the raw loop has one call in flight at most".into()),
            Client::BySender => crowd(&self.by_sender, echo, n_calls).await,
            Client::Gathered => crowd(&self.gathered, echo, n_calls).await,
            Client::Sdk => crowd(&self.sdk.caller(), echo, n_calls / SLOWER).await,
        }
    }
}

async fn crowd<C: Caller + Clone>(
    caller: &C,
    echo: &Arc<Echo>,
    n_calls: usize,
) -> Result<Round, Failure> {
    at_once(caller, echo, IN_FLIGHT, n_calls).await
}

fn case(
    better: Better,
    rounds: &[(Client, Round)],
    yardsticks: [Client; 2],
    value: impl Fn(&Round) -> f64,
) -> Case {
    let series = |client: Client| Series::among(rounds, &client, client.name(), &value);
    Case {
        name: String::new(),
        unit: "",
        better,
        ours: series(Client::Ours),
        against: yardsticks.map(series).into(),
        sdk: Some(series(Client::Sdk)),
        target: None,
    }
}
