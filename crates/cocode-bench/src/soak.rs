//! The soak: thousands of calls at once over many servers of every transport, while servers are
//! killed at random. Every call has to end once, with its own answer or an error, and nothing may
//! be left behind: `cargo xtask soak [--seconds 60] [--calls 10000] [--servers 50] [--seed N]`.
//!
//! The servers are processes of their own, those that are no programs together in one
//! ([`farm`]), so that whatever is counted in this process belongs to the client.
//!
//! [`gateway`] is the soak of a gateway.

mod bits;
mod callers;
mod counts;
pub(crate) mod farm;
mod found;
pub(crate) mod gateway;
mod killer;
mod listener;
mod plan;
mod servers;
mod verdict;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cocode_client::{Concurrency, Manager};
use fastrand::Rng;
use tokio::task::JoinSet;

use crate::Failure;
use crate::managed::manager;
use callers::{Callers, Tally};
use counts::Counts;
use farm::Farm;
use killer::Kills;
use listener::Heard;
use plan::{Phase, Plan};
use servers::Fleet;
use verdict::Verdict;

/// How long callers and servers may take to come to rest.
const REST_WITHIN: Duration = Duration::from_secs(30);

/// What the soak says, and whether everything held.
pub(crate) fn run(arguments: &[String]) -> Result<bool, Failure> {
    if let Some(rest) = arguments.strip_prefix(&["--gateway".to_owned()]) {
        return gateway::run(rest);
    }
    let plan = Plan::parse(arguments)?;
    found::print_of(soak(plan))
}

async fn soak(plan: Plan) -> Result<found::Found, Failure> {
    crate::report::say(&plan.to_string());
    let mut rng = Rng::with_seed(plan.seed);
    let mark = format!("cocode-soak-{}-{}", std::process::id(), plan.seed);
    let (farm, fleet) = Fleet::start(plan.servers, &mark)?;
    let fleet = Arc::new(fleet);
    let mut verdict = Verdict::default();

    // Once around, so that what is made only once is there before anything is counted.
    let first = start(&fleet).await?;
    end(first).await;
    let before = Counts::when_settled(&mark, None, REST_WITHIN).await?;

    let manager = start(&fleet).await?;
    let mut listening = JoinSet::new();
    listening.spawn(listener::listen(manager.events()));
    let mut farm = farm;
    for phase in plan.phases() {
        let storm = storm(&phase, &manager, &fleet, farm, &mut rng).await?;
        verdict.add(&phase, &storm, Counts::now(&mark)?);
        farm = storm.farm;
    }

    end(manager).await;
    let heard: Heard = listening.join_all().await.into_iter().collect();
    let settled = Counts::when_settled(&mark, Some(&before), REST_WITHIN).await?;
    verdict.judge(&heard, &before, &settled);
    farm.end()?;
    Ok(verdict.found())
}

/// What one storm came to.
struct Storm {
    tally: Tally,
    kills: Kills,
    farm: Farm,
    took: Duration,
    /// Servers that did not come back.
    lost: Vec<String>,
}

async fn storm(
    phase: &Phase,
    manager: &Manager,
    fleet: &Arc<Fleet>,
    farm: Farm,
    rng: &mut Rng,
) -> Result<Storm, Failure> {
    let begun = Instant::now();
    let callers = Callers::start(phase.callers, manager, fleet, rng);
    let (farm, kills) = killer::rage(phase.time, manager, fleet, farm, rng).await?;
    let tally = callers.stop(REST_WITHIN).await?;
    let lost = callers::all_answer(manager, fleet, REST_WITHIN).await;
    Ok(Storm {
        tally,
        kills,
        farm,
        took: begun.elapsed(),
        lost,
    })
}

async fn start(fleet: &Fleet) -> Result<Manager, Failure> {
    let manager = manager(Concurrency::All);
    manager.apply(fleet.specs()).await;
    let startup = manager.wait_for_startup().await;
    if startup.ready.len() == fleet.len() {
        return Ok(manager);
    }
    manager.shutdown().await;
    Err(format!("not all servers came up: {startup:?}").into())
}

async fn end(manager: Manager) {
    manager.shutdown().await;
    drop(manager);
}

/// Every call over HTTP has a connection of its own, more than many systems allow at first.
fn raise_descriptor_limit() -> Result<(), Failure> {
    use rustix::process::{Resource, getrlimit, setrlimit};

    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}
