//! `start`: from nothing to a session, and what the guard of its process costs.

use cocode_client::{Era, SessionOptions};

use super::Runtime;
use crate::Failure;
use crate::load::{Round, Stopwatch};
use crate::ours::Ours;
use crate::raw::direct::Direct;
use crate::report::{Better, Case, Findings, Series};
use crate::usage;

const ROUNDS: usize = 7;
const STARTS: usize = 20;

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

async fn measure() -> Result<Findings, Failure> {
    let new = Series::new;
    let mut raw = new("raw, no guard");
    let mut raw_whole = new("raw, no guard");
    let (mut known, mut unknown) = (new("cocode"), new("cocode"));
    let (mut known_whole, mut unknown_whole) = (new("cocode"), new("cocode"));
    // The first round warms up and is not counted.
    for round in 0..=ROUNDS {
        let plain = raw_starts().await?;
        let legacy = our_starts(Some(Era::Legacy)).await?;
        let auto = our_starts(None).await?;
        if round == 0 {
            continue;
        }
        raw.push(milliseconds(plain.0));
        raw_whole.push(milliseconds(plain.1));
        known.push(milliseconds(legacy.0));
        known_whole.push(milliseconds(legacy.1));
        unknown.push(milliseconds(auto.0));
        unknown_whole.push(milliseconds(auto.1));
    }
    let case = |name: &str, ours, raw: &Series| Case {
        name: format!("start: {name}"),
        unit: "ms",
        better: Better::Lower,
        ours,
        against: vec![raw.clone()],
        sdk: None,
        target: None,
    };
    Ok(Findings {
        cases: vec![
            case("spawn and handshake, era known", known, &raw),
            case("spawn and handshake, era unknown", unknown, &raw),
            case("the same and end, era known", known_whole, &raw_whole),
            case("the same and end, era unknown", unknown_whole, &raw_whole),
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

fn milliseconds(round: Round) -> f64 {
    round.median.as_secs_f64() * 1e3
}
