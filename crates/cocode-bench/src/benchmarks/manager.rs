//! `manager`: a call through the manager, against the bare session that it makes the call with.
//!
//! Both use the same connection to the same server, so that nothing differs but what the manager
//! does: it finds the tool by its qualified name, checks the arguments against a schema, tells
//! listeners of the beginning and the end, and measures the size of the result.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::{
    CallContext, Check, Concurrency, Event, Manager, Output, RawJson, RequestOptions, Session,
};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Runtime;
use crate::Failure;
use crate::load::{Meter, Round, Stopwatch};
use crate::managed::{manager, ourselves};
use crate::report::{Better, Case, Findings, Series, Target};
use crate::turns::schedule;

const TOOL: &str = "search_issues";
const QUALIFIED: &str = "mcp__bench__search_issues";
const ARGUMENTS: &str = r#"{"query":"connection reset by peer","state":"all","labels":["bug","transport"],"range":{"from":"2026-01-01"},"limit":50,"size":1024}"#;
const RESULT_BYTES: usize = 1024;

const IN_FLIGHT: usize = 64;
const CALLS_ONE_BY_ONE: usize = 4_000;
const CALLS_AT_ONCE: usize = 20_000;
/// Cycles of four rounds, see [`crate::turns`].
const CYCLES: usize = 5;
const CYCLES_TO_READ: usize = 2;

/// How long a server or a listener may take for what should come at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a call through the manager may cost.
const OVERHEAD: Target = Target::AtMost(1.3);

pub(super) fn run() -> Result<Findings, Failure> {
    let mut cases = Runtime::OneProcessor.run(alone(", one processor", Some(OVERHEAD)))?;
    cases.extend(Runtime::TwoWorkers.run(alone("", None))?);
    cases.extend(Runtime::TwoWorkers.run(crowded())?);
    Ok(Findings {
        cases,
        notes: Vec::new(),
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Client {
    Bare,
    Managed,
    /// With somebody who hears all events.
    Heard,
    /// Without a look at the arguments.
    Unchecked,
}

const CLIENTS: [Client; 4] = [
    Client::Bare,
    Client::Managed,
    Client::Heard,
    Client::Unchecked,
];

/// Those that are held against the bare session.
const MANAGED: [(Client, &str); 3] = [
    (Client::Managed, ""),
    (Client::Heard, ", with a listener"),
    (Client::Unchecked, ", arguments unchecked"),
];

async fn alone(place: &'static str, target: Option<Target>) -> Result<Vec<Case>, Failure> {
    let user = User::start().await?;
    let cycles = target.map_or(CYCLES_TO_READ, |_| CYCLES);
    let mut rounds = Vec::new();
    for turn in schedule(&CLIENTS, cycles) {
        let ears = Ears::of(turn.client, &user.manager, CALLS_ONE_BY_ONE);
        let mut watch = Stopwatch::start(CALLS_ONE_BY_ONE);
        for _ in 0..CALLS_ONE_BY_ONE {
            watch.time(user.call(turn.client)).await?;
        }
        let round = watch.stop();
        ears.check().await?;
        if turn.is_counted {
            rounds.push((turn.client, round));
        }
    }
    user.manager.shutdown().await;
    let median = |round: &Round| round.median.as_secs_f64() * 1e6;
    let mut cases = Vec::new();
    for (client, who) in MANAGED {
        let mut latency = case(Better::Lower, &rounds, client, median);
        latency.name = format!("manager: p50, 1 in flight{who}{place}");
        latency.unit = "µs";
        latency.target = target.filter(|_| client != Client::Unchecked);
        let mut processor = case(Better::Lower, &rounds, client, |round| round.processor);
        processor.name = format!("manager: processor time, 1 in flight{who}{place}");
        processor.unit = "µs/call";
        cases.extend([latency, processor]);
    }
    Ok(cases)
}

async fn crowded() -> Result<Vec<Case>, Failure> {
    let user = Arc::new(User::start().await?);
    let mut rounds = Vec::new();
    for turn in schedule(&CLIENTS, CYCLES_TO_READ) {
        let ears = Ears::of(turn.client, &user.manager, usize::MAX);
        let round = crowd(&user, turn.client).await?;
        // Nobody has to keep up with 64 callers: what is missed is told, and nothing waits.
        drop(ears);
        if turn.is_counted {
            rounds.push((turn.client, round));
        }
    }
    user.manager.shutdown().await;
    let mut cases = Vec::new();
    for (client, who) in MANAGED {
        let mut median = case(Better::Lower, &rounds, client, |round| {
            round.median.as_secs_f64() * 1e6
        });
        median.name = format!("manager: p50, {IN_FLIGHT} in flight{who}");
        median.unit = "µs";
        let mut processor = case(Better::Lower, &rounds, client, |round| round.processor);
        processor.name = format!("manager: processor time, {IN_FLIGHT} in flight{who}");
        processor.unit = "µs/call";
        cases.extend([median, processor]);
    }
    Ok(cases)
}

/// At least [`CALLS_AT_ONCE`] calls, with [`IN_FLIGHT`] of them under way at any time.
async fn crowd(user: &Arc<User>, client: Client) -> Result<Round, Failure> {
    let each = CALLS_AT_ONCE.div_ceil(IN_FLIGHT);
    let meter = Meter::start();
    let mut users = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let user = Arc::clone(user);
        users.spawn(async move {
            let mut watch = Stopwatch::start(each);
            for _ in 0..each {
                watch.time(user.call(client)).await?;
            }
            Ok::<Vec<Duration>, Failure>(watch.times())
        });
    }
    let mut times = Vec::with_capacity(each * IN_FLIGHT);
    while let Some(user) = users.join_next().await {
        times.extend(user??);
    }
    Ok(Round::of(times, meter))
}

fn case(
    better: Better,
    rounds: &[(Client, Round)],
    client: Client,
    value: impl Fn(&Round) -> f64,
) -> Case {
    Case {
        name: String::new(),
        unit: "",
        better,
        ours: Series::among(rounds, &client, "manager", &value),
        against: vec![Series::among(
            rounds,
            &Client::Bare,
            "the same session",
            &value,
        )],
        sdk: None,
        target: None,
    }
}

/// Somebody with a manager, and the session that the manager has.
struct User {
    manager: Manager,
    session: Session,
    arguments: RawJson,
}

impl User {
    async fn start() -> Result<Self, Failure> {
        let manager = manager(Concurrency::All);
        let spec = ourselves("bench", &["serve", "search"])?;
        let name = spec.name.clone();
        manager.apply([spec]).await;
        let deadline = Instant::now() + PATIENCE;
        let session = manager.session(&name, deadline).await?;
        Ok(Self {
            manager,
            session,
            arguments: RawJson::parse(ARGUMENTS)?,
        })
    }

    async fn call(&self, client: Client) -> Result<(), Failure> {
        let arguments = Some(&self.arguments);
        let result = match client {
            Client::Bare => {
                let options = RequestOptions::default();
                self.session.call_tool(TOOL, arguments, options).await?
            }
            Client::Managed | Client::Heard | Client::Unchecked => {
                let context = CallContext {
                    check: match client {
                        Client::Unchecked => Check::Nothing,
                        _ => Check::Arguments,
                    },
                    ..CallContext::default()
                };
                let called = self.manager.call(QUALIFIED, arguments, context).await?;
                if called.output != Output::Fits || called.output_mismatch.is_some() {
                    return Err(format!("{called:?}").into());
                }
                called.result
            }
        };
        // Whoever loses bytes is not fast.
        if result.raw.as_bytes().len() < RESULT_BYTES {
            return Err(result.raw.to_string().into());
        }
        Ok(())
    }
}

/// Hears what a manager tells, where somebody is to hear it.
struct Ears(JoinSet<Result<(), Failure>>);

impl Ears {
    /// Listens until the end of so many calls was told.
    fn of(client: Client, manager: &Manager, n_calls: usize) -> Self {
        let mut listening = JoinSet::new();
        if client == Client::Heard {
            let mut events = manager.events();
            listening.spawn(async move {
                let mut finished = 0;
                while finished < n_calls {
                    match events.next().await {
                        Some(Event::ToolCallFinished { .. }) => finished += 1,
                        Some(Event::Missed(count)) => {
                            return Err(format!("{count} events were missed").into());
                        }
                        Some(_) => {}
                        None => return Err("the manager is gone".into()),
                    }
                }
                Ok(())
            });
        }
        Self(listening)
    }

    /// Every call was heard of.
    async fn check(mut self) -> Result<(), Failure> {
        while let Some(heard) = tokio::time::timeout(PATIENCE, self.0.join_next()).await? {
            heard??;
        }
        Ok(())
    }
}
