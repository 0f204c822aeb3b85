//! `start`: from nothing to a session, and what the guard of its process costs.

use cocode_client::{Era, SessionOptions};

use super::Runtime;
use crate::Failure;
use crate::load::{Round, Stopwatch};
use crate::ours::Ours;
use crate::raw::direct::Direct;
use crate::report::{Better, Case, Findings, Series};
use crate::turns::schedule;
use crate::usage;

/// Cycles of six rounds, see [`crate::turns`].
const CYCLES: usize = 1;
const STARTS: usize = 20;

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Starter {
    Raw,
    EraKnown,
    EraUnknown,
}

const STARTERS: [Starter; 3] = [Starter::Raw, Starter::EraKnown, Starter::EraUnknown];

async fn measure() -> Result<Findings, Failure> {
    let (mut starts, mut wholes) = (Vec::new(), Vec::new());
    for turn in schedule(&STARTERS, CYCLES) {
        let (start, whole) = match turn.client {
            Starter::Raw => raw_starts().await?,
            Starter::EraKnown => our_starts(Some(Era::Legacy)).await?,
            Starter::EraUnknown => our_starts(None).await?,
        };
        if turn.is_counted {
            starts.push((turn.client, start));
            wholes.push((turn.client, whole));
        }
    }
    let case = |name: &str, rounds: &[(Starter, Round)], ours| Case {
        name: format!("start: {name}"),
        unit: "ms",
        better: Better::Lower,
        ours: Series::among(rounds, &ours, "cocode", milliseconds),
        against: vec![Series::among(
            rounds,
            &Starter::Raw,
            "raw, no guard",
            milliseconds,
        )],
        sdk: None,
        target: None,
    };
    let (known, unknown) = (Starter::EraKnown, Starter::EraUnknown);
    Ok(Findings {
        cases: vec![
            case("spawn and handshake, era known", &starts, known),
            case("spawn and handshake, era unknown", &starts, unknown),
            case("the same and end, era known", &wholes, known),
            case("the same and end, era unknown", &wholes, unknown),
        ],
        notes: guard_memory().await.into_iter().collect(),
    })
}

/// Starts alone, and starts with their ends.
type Starts = (Round, Round);

async fn raw_starts() -> Result<Starts, Failure> {
    let (mut starts, mut wholes) = (Stopwatch::start(STARTS), Stopwatch::start(STARTS));
    for _ in 0..STARTS {
        let whole = async {
            let client = starts.time(Direct::start(1)).await?;
            client.close().await
        };
        wholes.time(whole).await?;
    }
    Ok((starts.stop(), wholes.stop()))
}

async fn our_starts(known_era: Option<Era>) -> Result<Starts, Failure> {
    let options = SessionOptions {
        known_era,
        ..SessionOptions::default()
    };
    let (mut starts, mut wholes) = (Stopwatch::start(STARTS), Stopwatch::start(STARTS));
    for _ in 0..STARTS {
        let whole = async {
            let start = Box::pin(Ours::start_with(1, options.clone()));
            starts.time(start).await?.session.close().await;
            Ok(())
        };
        wholes.time(whole).await?;
    }
    Ok((starts.stop(), wholes.stop()))
}

/// What the guard process holds for itself, where the system tells.
async fn guard_memory() -> Option<String> {
    let ours = Ours::start(1).await.ok()?;
    let server = ours.session.pid()?;
    let guard = usage::field(&format!("/proc/{server}/status"), "PPid:").ok()?;
    if guard == u64::from(std::process::id()) {
        return Some("start: this system needs no guard process".into());
    }
    let rollup = format!("/proc/{guard}/smaps_rollup");
    let own = usage::field(&rollup, "Private_Dirty:").ok()?;
    let share = usage::field(&rollup, "Pss:").ok()?;
    ours.session.close().await;
    Some(format!(
        "start: the guard process holds {own} KiB of its own, {share} KiB with its share of common pages"
    ))
}

fn milliseconds(round: &Round) -> f64 {
    round.median.as_secs_f64() * 1e3
}
