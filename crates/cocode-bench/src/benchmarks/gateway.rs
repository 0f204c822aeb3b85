//! `gateway`: what a gateway costs, beside the least that could stand in its place.
//!
//! Over HTTP the yardstick is a bare server that knows the answers itself: no gateway can be as fast,
//! as it has a server to ask. The targets come from the fastest other gateway that was found, which
//! was measured beside such a bare server: 2.5 times its calls, half of its time for one, and 0.3 of
//! its processor time, as ratios to the bare server (see `docs/benchmarks.md`).

pub(super) mod front;

use std::sync::Arc;
use std::time::Duration;

use super::Runtime;
use crate::Failure;
use crate::caller::Echo;
use crate::gateway::Threads;
use crate::gateway::child::Listening;
use crate::load::{Round, at_once, one_by_one, repeat};
use crate::raw::child::Pipes;
use crate::raw::direct::Direct;
use crate::raw::envelope::Message;
use crate::raw::shared::{Shared, Writing};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::turns::schedule;
use front::{Place, Pool, forwarder, gateway, gateway_on_pipes};

const RESULT_BYTES: usize = 1024;
const IN_FLIGHT: usize = 64;
const CALLS_ONE_BY_ONE: usize = 2_000;
const CALLS_AT_ONCE: usize = 20_000;
const TOOLS: usize = 1000;
const LISTS: usize = 20;
const STARTS: usize = 10;
/// Cycles, see [`crate::turns`].
const CYCLES: usize = 2;
/// How long a gateway has nothing to do before its memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

/// 154 µs, where the bare server took 52 µs.
const LATENCY: Target = Target::AtMost(2.96);
/// 28,250 calls a second, where the bare server answered 58,000.
const THROUGHPUT: Target = Target::AtLeast(0.49);
/// 38 µs, where the bare server needed 18 µs.
const PROCESSOR: Target = Target::AtMost(2.1);
const FORWARDING: Target = Target::AtLeast(0.6);
const LISTING: Target = Target::AtMost(1.5);
/// MiB.
const MEMORY: Target = Target::AtMost(20.0);
const START: Target = Target::AtMost(2.0);

pub(super) fn run() -> Result<Findings, Failure> {
    let mut cases = Runtime::TwoWorkers.run(over_http())?;
    cases.extend(Runtime::TwoWorkers.run(on_pipes())?);
    cases.extend(Runtime::TwoWorkers.run(lists())?);
    cases.extend(Runtime::TwoWorkers.run(starts())?);
    Ok(Findings {
        cases,
        notes: vec![
            "gateway: `/mcp/NAME` is one server by itself, `/mcp` all servers as one".into(),
        ],
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Alone,
    All,
    Bare,
    /// The server itself, on its pipes.
    Direct,
}

const WAYS: [Way; 4] = [Way::Alone, Way::All, Way::Bare, Way::Direct];

async fn over_http() -> Result<Vec<Case>, Failure> {
    let gateway = gateway(&["serve", "search"])?;
    let bare = Listening::start(&["bare-http", "echo"])?;
    let mut alone = Pool::open(gateway.address, Place::Alone, 1).await?;
    let mut all = Pool::open(gateway.address, Place::All, 1).await?;
    let mut ceiling = Pool::open(bare.address, Place::Alone, 1).await?;
    let mut direct = Direct::start(1).await?;
    let shared = Shared::start(1, Writing::Gathered).await?;
    let echo = Arc::new(Echo::plain(RESULT_BYTES)?);

    let (mut single, mut crowded) = (Vec::new(), Vec::new());
    for turn in schedule(&WAYS, CYCLES) {
        let round = match turn.client {
            Way::Alone => one_by_one(&mut alone, &echo, CALLS_ONE_BY_ONE).await?,
            Way::All => one_by_one(&mut all, &echo, CALLS_ONE_BY_ONE).await?,
            Way::Bare => one_by_one(&mut ceiling, &echo, CALLS_ONE_BY_ONE).await?,
            Way::Direct => one_by_one(&mut direct, &echo, CALLS_ONE_BY_ONE).await?,
        };
        if turn.is_counted {
            single.push((turn.client, round));
        }
    }
    // Connections on which nothing comes do not stay open for long.
    let alone = Pool::open(gateway.address, Place::Alone, IN_FLIGHT).await?;
    let all = Pool::open(gateway.address, Place::All, IN_FLIGHT).await?;
    let ceiling = Pool::open(bare.address, Place::Alone, IN_FLIGHT).await?;
    for turn in schedule(&WAYS, CYCLES) {
        let round = match turn.client {
            Way::Alone => crowd(&gateway, &alone, &echo).await?,
            Way::All => crowd(&gateway, &all, &echo).await?,
            Way::Bare => crowd(&bare, &ceiling, &echo).await?,
            Way::Direct => at_once(&shared, &echo, IN_FLIGHT, CALLS_AT_ONCE).await?,
        };
        if turn.is_counted {
            crowded.push((turn.client, round));
        }
    }
    gateway.end()?;
    bare.end()?;
    Ok(http_cases(&single, &crowded))
}

fn http_cases(single: &[(Way, Round)], crowded: &[(Way, Round)]) -> Vec<Case> {
    let median = |round: &Round| round.median.as_secs_f64() * 1e6;
    let per_second = |round: &Round| round.per_second;
    let processor = |round: &Round| round.processor;
    let mut cases = Vec::new();
    for (way, place) in [(Way::Alone, "/mcp/NAME"), (Way::All, "/mcp")] {
        for (other, name, is_judged) in [
            (Way::Bare, "bare HTTP, no server", true),
            (Way::Direct, "stdio direct", false),
        ] {
            let latency = Case {
                name: format!("gateway: HTTP {place}, p50, 1 in flight"),
                unit: "µs",
                better: Better::Lower,
                ours: Series::among(single, &way, "cocode", median),
                against: vec![Series::among(single, &other, name, median)],
                sdk: None,
                target: is_judged.then_some(LATENCY),
            };
            let throughput = Case {
                name: format!("gateway: HTTP {place}, {IN_FLIGHT} in flight"),
                unit: "calls/s",
                better: Better::Higher,
                ours: Series::among(crowded, &way, "cocode", per_second),
                against: vec![Series::among(crowded, &other, name, per_second)],
                sdk: None,
                target: is_judged.then_some(THROUGHPUT),
            };
            cases.extend([latency, throughput]);
        }
        cases.push(Case {
            name: format!("gateway: HTTP {place}, its processor time, {IN_FLIGHT} in flight"),
            unit: "µs/call",
            better: Better::Lower,
            ours: Series::among(crowded, &way, "cocode", processor),
            against: vec![Series::among(
                crowded,
                &Way::Bare,
                "bare HTTP, no server",
                processor,
            )],
            sdk: None,
            target: Some(PROCESSOR),
        });
    }
    cases
}

/// Many calls at once, with the processor time of the process that is called.
async fn crowd(process: &Listening, pool: &Pool, echo: &Arc<Echo>) -> Result<Round, Failure> {
    let before = process.processor_time()?;
    let round = at_once(pool, echo, IN_FLIGHT, CALLS_AT_ONCE).await?;
    let used = process.processor_time()?.saturating_sub(before);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let n_calls = CALLS_AT_ONCE.next_multiple_of(IN_FLIGHT) as f64;
    Ok(Round {
        processor: used.as_secs_f64() * 1e6 / n_calls,
        ..round
    })
}

/// What stands between a client and a server, both on pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Between {
    OneThread,
    ManyThreads,
    ForwardingThreads,
    ForwardingTasks,
}

const BETWEEN: [Between; 4] = [
    Between::OneThread,
    Between::ManyThreads,
    Between::ForwardingThreads,
    Between::ForwardingTasks,
];

impl Between {
    fn start(self, n_tools: usize) -> Result<Pipes, Failure> {
        match self {
            Self::OneThread => gateway_on_pipes(Threads::One, n_tools),
            Self::ManyThreads => gateway_on_pipes(Threads::Many, n_tools),
            Self::ForwardingThreads => forwarder("threads", n_tools),
            Self::ForwardingTasks => forwarder("tasks", n_tools),
        }
    }
}

async fn on_pipes() -> Result<Vec<Case>, Failure> {
    let echo = Arc::new(Echo::plain(RESULT_BYTES)?);
    let (mut singles, mut crowds) = (Vec::new(), Vec::new());
    for between in BETWEEN {
        singles.push((between, Direct::greet(between.start(1)?).await?));
        crowds.push((
            between,
            Shared::greet(between.start(1)?, Writing::Gathered).await?,
        ));
    }
    let (mut single, mut crowded) = (Vec::new(), Vec::new());
    for turn in schedule(&BETWEEN, CYCLES) {
        for (between, client) in &mut singles {
            if *between == turn.client {
                let round = one_by_one(client, &echo, CALLS_ONE_BY_ONE).await?;
                single.extend(turn.is_counted.then_some((turn.client, round)));
            }
        }
    }
    for turn in schedule(&BETWEEN, CYCLES) {
        for (between, client) in &crowds {
            if *between == turn.client {
                let round = at_once(client, &echo, IN_FLIGHT, CALLS_AT_ONCE).await?;
                crowded.extend(turn.is_counted.then_some((turn.client, round)));
            }
        }
    }
    let per_second = |round: &Round| round.per_second;
    let mut cases = Vec::new();
    for (rounds, in_flight) in [(&single, 1), (&crowded, IN_FLIGHT)] {
        for (ours, name, target) in [
            (Between::OneThread, "one thread", Some(FORWARDING)),
            (Between::ManyThreads, "many threads", None),
        ] {
            let series = |between, name| Series::among(rounds, &between, name, per_second);
            cases.push(Case {
                name: format!("gateway: stdio to stdio, {in_flight} in flight, {name}"),
                unit: "calls/s",
                better: Better::Higher,
                ours: series(ours, "cocode"),
                against: vec![
                    series(Between::ForwardingThreads, "raw forwarder, threads"),
                    series(Between::ForwardingTasks, "raw forwarder, tasks"),
                ],
                sdk: None,
                target,
            });
        }
    }
    Ok(cases)
}

/// Who lists the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lister {
    Alone,
    All,
    Bare,
    Pipes,
    Forwarder,
}

const LISTERS: [Lister; 5] = [
    Lister::Alone,
    Lister::All,
    Lister::Bare,
    Lister::Pipes,
    Lister::Forwarder,
];

async fn lists() -> Result<Vec<Case>, Failure> {
    let n_tools = TOOLS.to_string();
    let gateway = gateway(&["serve", &n_tools])?;
    let bare = Listening::start(&["bare-http", "forward", &n_tools])?;
    let alone = Pool::open(gateway.address, Place::Alone, 1).await?;
    let all = Pool::open(gateway.address, Place::All, 1).await?;
    let forwarded = Pool::open(bare.address, Place::Alone, 1).await?;
    let mut pipes = Direct::greet(Between::OneThread.start(TOOLS)?).await?;
    let mut forwarder = Direct::greet(Between::ForwardingTasks.start(TOOLS)?).await?;
    let least = direct_list(&mut forwarder).await?;
    let mut rounds = Vec::new();
    for turn in schedule(&LISTERS, CYCLES) {
        let round = match turn.client {
            Lister::Alone => repeat!(LISTS, whole(alone.list(), least)),
            Lister::All => repeat!(LISTS, whole(all.list(), least)),
            Lister::Bare => repeat!(LISTS, whole(forwarded.list(), least)),
            Lister::Pipes => repeat!(LISTS, whole(direct_list(&mut pipes), least)),
            Lister::Forwarder => repeat!(LISTS, whole(direct_list(&mut forwarder), least)),
        };
        if turn.is_counted {
            rounds.push((turn.client, round));
        }
    }
    gateway.end()?;
    bare.end()?;
    let milliseconds = |round: &Round| round.median.as_secs_f64() * 1e3;
    let case = |ours, place: &str, other, name| Case {
        name: format!("gateway: list of {TOOLS} tools, {place}"),
        unit: "ms",
        better: Better::Lower,
        ours: Series::among(&rounds, &ours, "cocode", milliseconds),
        against: vec![Series::among(&rounds, &other, name, milliseconds)],
        sdk: None,
        target: Some(LISTING),
    };
    let over_http = "bare HTTP forwarder";
    Ok(vec![
        case(Lister::Alone, "HTTP /mcp/NAME", Lister::Bare, over_http),
        case(Lister::All, "HTTP /mcp", Lister::Bare, over_http),
        case(
            Lister::Pipes,
            "stdio to stdio",
            Lister::Forwarder,
            "raw forwarder, tasks",
        ),
    ])
}

async fn direct_list(client: &mut Direct) -> Result<usize, Failure> {
    Ok(client.request(Message::List).await?.len())
}

/// What came back has to be whole.
async fn whole(
    list: impl Future<Output = Result<usize, Failure>>,
    least: usize,
) -> Result<(), Failure> {
    let received = list.await?;
    if received < least {
        return Err(format!("{received} bytes came back for {least}").into());
    }
    Ok(())
}

async fn starts() -> Result<Vec<Case>, Failure> {
    let (mut ours, mut bare) = (Series::new("cocode"), Series::new("bare HTTP"));
    for is_counted in std::iter::once(false).chain(std::iter::repeat_n(true, STARTS)) {
        let (one, other) = (
            gateway(&["serve", "search"])?,
            Listening::start(&["bare-http", "echo"])?,
        );
        if is_counted {
            ours.push(one.took.as_secs_f64() * 1e3);
            bare.push(other.took.as_secs_f64() * 1e3);
        }
        one.end()?;
        other.end()?;
    }
    let start = Case {
        name: "gateway: from start to listening".into(),
        unit: "ms",
        better: Better::Lower,
        ours,
        against: vec![bare],
        sdk: None,
        target: Some(START),
    };
    let idle = gateway(&["serve", "search"])?;
    let pool = Pool::open(idle.address, Place::Alone, 1).await?;
    pool.list().await?;
    tokio::time::sleep(IDLE).await;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let resident = idle.resident_kib()? as f64 / 1024.0;
    drop(pool);
    idle.end()?;
    let memory = Case {
        name: "gateway: resident memory, idle".into(),
        unit: "MiB",
        better: Better::Lower,
        ours: Series::of("cocode", resident),
        against: Vec::new(),
        sdk: None,
        target: Some(MEMORY),
    };
    Ok(vec![start, memory])
}
