//! The soak of a gateway: very many clients of every kind before it, servers behind it that are
//! killed at random. Every call has to end once, with its own answer or an error that names the
//! server, no server may do anything twice, and nothing may be left behind:
//! `cargo xtask soak --gateway [--seconds 600] [--sessions 1000] [--in-flight 200] [--servers 10]
//! [--seed N]`.
//!
//! The gateway is a process of its own, so that whatever is counted there belongs to it.

mod answer;
mod client;
mod crowd;
mod killer;
mod ledger;
mod plan;
pub(crate) mod server;
mod verdict;
mod websocket;

use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::time::{MissedTickBehavior, interval};

use super::counts::Processes;
use crate::gateway::child::Listening;
use crate::gateway::{Front, Setup, Threads};
use crate::{Failure, usage};
use crowd::Crowd;
use killer::Killer;
use ledger::Ledger;
use plan::Plan;
use server::Counter;
use verdict::{Holdings, Verdict};

/// How long clients and servers may take to come to rest.
const REST_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked whether everything has come to rest.
const LOOK: Duration = Duration::from_millis(100);
/// As long as nothing has changed for so many looks, it has come to rest.
const LOOKS: usize = 10;
/// Time for the gateway to return memory after the last session.
const RELEASE_WITHIN: Duration = Duration::from_mins(1);
/// How often memory is looked at, all in all.
const SAMPLES: u32 = 300;

/// What the soak says, and whether everything held.
pub(crate) fn run(arguments: &[String]) -> Result<bool, Failure> {
    let plan = Plan::parse(arguments)?;
    super::found::print_of(soak(plan))
}

async fn soak(plan: Plan) -> Result<super::found::Found, Failure> {
    crate::report::say(&plan.to_string());
    let mut rng = Rng::with_seed(plan.seed);
    let mark = format!("cocode-soak-{}-{}", std::process::id(), plan.seed);
    let folder = tempfile::tempdir()?;
    let counters: Vec<Counter> = (0..plan.servers).map(Counter::numbered).collect();
    let mut servers = Vec::new();
    for counter in &counters {
        let words = counter.words(&mark, folder.path())?;
        servers.push((counter.name.clone(), words));
    }
    let names: Vec<String> = counters.into_iter().map(|counter| counter.name).collect();
    let setup = Setup {
        front: Front::CountedHttp,
        threads: Threads::Many,
        servers,
    };
    let mut gateway = Listening::gateway(&mark, &setup)?;
    let mut verdict = Verdict::default();

    // Once around, so that what is made only once is there before anything is counted.
    let missing = crowd::all_answer(gateway.address, &names, REST_WITHIN).await;
    if !missing.is_empty() {
        return Err(format!("not all servers came up: {}", missing.join("; ")).into());
    }
    let before = when_settled(&mut gateway, &mark, None).await?;
    let resident_before = gateway.resident_kib()?;

    let begun = Instant::now();
    let crowd = Crowd::start(&plan, gateway.address, &names, &mut rng);
    let killer = Killer::start(folder.path(), &mark, rng.fork());
    let samples = watch(&gateway, plan.time).await?;
    let kills = killer.stop()?;
    let tally = crowd.stop(REST_WITHIN).await?;
    verdict.of_calls(&plan, &tally, kills, begun.elapsed());
    verdict.of_memory(&samples);
    let lost = crowd::all_answer(gateway.address, &names, REST_WITHIN).await;
    verdict.of_servers(lost);
    let after = when_settled(&mut gateway, &mark, Some(&before)).await?;
    verdict.of_holdings(&before, &after);
    let resident_after = when_released(&gateway, resident_before).await?;
    verdict.of_released_memory(resident_before, resident_after);

    gateway.end()?;
    verdict.of_the_end(Processes::look(&mark)?.marked);
    verdict.of_effects(&tally, &Ledger::read(folder.path())?);
    Ok(verdict.found())
}

/// The memory of the gateway for so long, in KiB.
async fn watch(gateway: &Listening, time: Duration) -> Result<Vec<u64>, Failure> {
    let mut clock = interval(time / SAMPLES);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let until = Instant::now() + time;
    let mut samples = Vec::new();
    while Instant::now() < until {
        clock.tick().await;
        samples.push(gateway.resident_kib()?);
    }
    Ok(samples)
}

/// The memory of the gateway in KiB, once enough of it was returned or the time for that is over.
async fn when_released(gateway: &Listening, before: u64) -> Result<u64, Failure> {
    let until = Instant::now() + RELEASE_WITHIN;
    loop {
        let now = gateway.resident_kib()?;
        if now <= verdict::released_limit(before) || Instant::now() >= until {
            return Ok(now);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn holdings(gateway: &mut Listening, mark: &str) -> Result<Holdings, Failure> {
    Ok(Holdings {
        inside: gateway.inside()?,
        descriptors: usage::descriptors_of(gateway.pid())?,
        processes: Processes::look(mark)?.marked,
    })
}

/// Waits until everything is as it was before, or until nothing changes any more where nothing was.
async fn when_settled(
    gateway: &mut Listening,
    mark: &str,
    before: Option<&Holdings>,
) -> Result<Holdings, Failure> {
    let until = Instant::now() + REST_WITHIN;
    let mut last = holdings(gateway, mark)?;
    let mut same = 0;
    loop {
        let is_done = before.map_or(same >= LOOKS, |before| last == *before);
        if is_done || Instant::now() >= until {
            return Ok(last);
        }
        tokio::time::sleep(LOOK).await;
        let now = holdings(gateway, mark)?;
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
}
