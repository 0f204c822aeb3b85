//! `startup`: twenty servers at once, from nothing to all of them ready.
//!
//! The manager is timed from [`Manager::apply`] to the moment at which every server is ready, which
//! includes the guard of each process, the question for its era, and the list of its tools. Beside
//! it, the same twenty are started in parallel without a manager: by hand (a plain spawn and the
//! `initialize` exchange, which is all that a bare start can be), and as single sessions
//! ([`Session::connect`]: guard, era and handshake, no list). The better of the two counts.
//!
//! Servers that only sleep show what waiting costs where no processor is needed: the slowest of
//! them is the yardstick.

use std::time::{Duration, Instant};

use cocode_client::{Concurrency, Manager, Session, SessionOptions, stdio};
use cocode_core::{Reach, ServerSpec, Template};
use futures_util::future::{join_all, try_join_all};

use super::Runtime;
use crate::Failure;
use crate::managed::{manager, ourselves};
use crate::peers::{Peer, Peers};
use crate::raw::child::Pipes;
use crate::raw::direct::Direct;
use crate::report::{Better, Case, Findings, Series, Target};

const SERVERS: usize = 20;
/// One of these servers sleeps this long before it hears anything, the next twice as long, ….
const SLEEP_STEP: Duration = Duration::from_millis(100);
const ROUNDS_OF_SLEEP: usize = 3;
/// As long as nobody gives up on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(5);

/// The best rounds of both decide, as everywhere.
const LIMIT: Target = Target::AtMost(1.2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starter {
    Raw,
    Sessions,
    Manager,
}

/// Each takes every place once. A round is long, so that what ran before hardly matters.
const ORDERS: [[Starter; 3]; 3] = [
    [Starter::Raw, Starter::Sessions, Starter::Manager],
    [Starter::Sessions, Starter::Manager, Starter::Raw],
    [Starter::Manager, Starter::Raw, Starter::Sessions],
];

pub(super) fn run() -> Result<Findings, Failure> {
    let mut cases = Runtime::TwoWorkers.run(sleepers())?;
    let real = Runtime::TwoWorkers.run(real_servers())?;
    cases.extend(real.cases);
    Ok(Findings {
        cases,
        notes: real.notes,
    })
}

async fn sleepers() -> Result<Vec<Case>, Failure> {
    let mut specs = Vec::new();
    let mut slowest = Duration::ZERO;
    for _ in 0..SERVERS {
        slowest += SLEEP_STEP;
        let time = slowest.as_millis().to_string();
        let spec = ourselves(&format!("sleeper-{time}"), &["sleep", &time])?;
        specs.push(patient(spec));
    }
    let mut cases = Vec::new();
    for (name, concurrency, target) in [
        ("all at once", Concurrency::All, Some(LIMIT)),
        ("3 at once", Concurrency::default(), None),
    ] {
        let mut case = empty(&format!("{SERVERS} that sleep up to 2 s, {name}"));
        case.against = vec![Series::of("the slowest", slowest.as_secs_f64())];
        case.target = target;
        for _ in 0..ROUNDS_OF_SLEEP {
            let took = managed(concurrency, specs.clone()).await?;
            case.ours.push(took.as_secs_f64());
        }
        cases.push(case);
    }
    Ok(cases)
}

async fn real_servers() -> Result<Findings, Failure> {
    let peers = Peers::find()?;
    let twenty = peers.twenty()?;
    let mut specs = Vec::new();
    for peer in &twenty {
        specs.push(peer.spec()?);
    }
    let (mut raw, mut sessions) = (
        Series::new("raw spawn and handshake"),
        Series::new("single sessions"),
    );
    let mut case = empty(&format!("{SERVERS} real servers, all at once"));
    // The first start reads everything from the disk, and counts for nobody.
    start_raw(&twenty).await?;
    for starter in ORDERS.into_iter().flatten() {
        match starter {
            Starter::Raw => raw.push(start_raw(&twenty).await?.as_secs_f64()),
            Starter::Sessions => sessions.push(start_sessions(&twenty).await?.as_secs_f64()),
            Starter::Manager => {
                let took = managed(Concurrency::All, specs.clone()).await?;
                case.ours.push(took.as_secs_f64());
            }
        }
    }
    let mut few = empty(&format!("{SERVERS} real servers, 3 at once"));
    for _ in 0..ORDERS.len() - 1 {
        let took = managed(Concurrency::default(), specs.clone()).await?;
        few.ours.push(took.as_secs_f64());
    }
    case.against = vec![raw, sessions];
    few.against = case.against.clone();
    case.target = Some(LIMIT);
    let names: Vec<&str> = twenty.iter().map(|peer| peer.name.as_str()).collect();
    Ok(Findings {
        cases: vec![case, few],
        notes: vec![format!(
            "startup: the real servers are {}",
            names.join(", ")
        )],
    })
}

fn empty(what: &str) -> Case {
    Case {
        name: format!("startup: {what}"),
        unit: "s",
        better: Better::Lower,
        ours: Series::new("manager"),
        against: Vec::new(),
        sdk: None,
        target: None,
    }
}

impl Peer {
    fn spec(&self) -> Result<ServerSpec, Failure> {
        let program = self.program.to_str().ok_or("the path of a peer")?;
        let mut spec = ServerSpec::program(self.name.parse()?, program, self.args.iter());
        if let Reach::Program(program) = &mut spec.reach {
            for (name, value) in &self.environment {
                if let (Some(name), Some(value)) = (name.to_str(), value.to_str()) {
                    program.env.insert(name.into(), Template::literal(value));
                }
            }
        }
        Ok(patient(spec))
    }
}

fn patient(mut spec: ServerSpec) -> ServerSpec {
    spec.startup_timeout = PATIENCE;
    spec.connect_timeout = PATIENCE;
    spec
}

async fn managed(concurrency: Concurrency, specs: Vec<ServerSpec>) -> Result<Duration, Failure> {
    let manager: Manager = manager(concurrency);
    let begun = Instant::now();
    manager.apply(specs).await;
    let startup = manager.wait_for_startup().await;
    let took = begun.elapsed();
    if startup.ready.len() != SERVERS {
        return Err(format!("not all servers came up: {startup:?}").into());
    }
    manager.shutdown().await;
    Ok(took)
}

async fn start_raw(twenty: &[Peer]) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let starts = twenty.iter().map(|peer| async {
        let pipes = Pipes::run(&peer.program, &peer.args, &peer.environment)?;
        Direct::greet(pipes).await
    });
    let started = try_join_all(starts).await?;
    let took = begun.elapsed();
    try_join_all(started.into_iter().map(Direct::kill)).await?;
    Ok(took)
}

async fn start_sessions(twenty: &[Peer]) -> Result<Duration, Failure> {
    let mut options = SessionOptions::default();
    options.timeouts.connect = PATIENCE;
    let begun = Instant::now();
    let starts = twenty.iter().map(|peer| {
        let target = stdio(&peer.program, &peer.args, peer.environment.clone());
        Box::pin(Session::connect(target, options.clone()))
    });
    let started = try_join_all(starts).await?;
    let took = begun.elapsed();
    join_all(started.into_iter().map(Session::close)).await;
    Ok(took)
}
