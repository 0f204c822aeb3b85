//! `search`: ten thousand tools indexed, searched, and changed; and, where data is given, how much is
//! found.
//!
//! `COCODE_SEARCH_DATA` names a directory with `catalog.json` (`[{server, name, description,
//! inputSchema}]`) and `queries.json` (`[{question, steps, tools}]`). Both rankings are judged by it in
//! the same run.

use std::path::PathBuf;
use std::time::Instant;

use crate::Failure;
use crate::report::{Better, Case, Findings, Series, Target};
use crate::search::bm25::Plain;
use crate::search::{by_server, indexed, judged, made_up};

const TOOLS: usize = 10_000;
const QUERIES: usize = 400;
const ROUNDS: usize = 5;
/// Servers whose tools are replaced in one round.
const UPDATES: usize = 20;
/// Tools that each of them has then, with words that nobody had before.
const TOOLS_OF_UPDATE: usize = 20;
const FOUND: usize = 5;

/// Milliseconds.
const SEARCH: Target = Target::AtMost(1.0);
const BUILD: Target = Target::AtMost(1_000.0);
const UPDATE: Target = Target::AtMost(20.0);
/// What has to be found more than by plain BM25.
const STEPS: Target = Target::AtLeast(0.04);
const QUESTION: Target = Target::AtLeast(0.09);

pub(super) fn run() -> Result<Findings, Failure> {
    let all = made_up::tools(TOOLS + UPDATES * TOOLS_OF_UPDATE)?;
    let (tools, others) = all.split_at(TOOLS);
    let servers = by_server(tools);
    let others = by_server(others);
    let queries = made_up::queries(QUERIES);
    let plain = Plain::of(tools);
    let [mut build, mut search, mut slow, mut update, mut theirs] =
        ["cocode", "cocode", "cocode", "cocode", "plain BM25"].map(Series::new);
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        let mut index = indexed(&servers);
        // Some of the work is left to the first search.
        std::hint::black_box(index.search("work", FOUND));
        build.push(milliseconds(begin));
        let mut times = timed(&queries, |query| index.search(query, FOUND).len());
        search.push(at(&mut times, 0.5));
        slow.push(at(&mut times, 0.99));
        theirs.push(at(
            &mut timed(&queries, |query| plain.search(query, FOUND).len()),
            0.5,
        ));
        let mut times = Vec::new();
        for (server, tools) in servers.keys().zip(others.values()) {
            let begin = Instant::now();
            index.set_server(server, None, tools.iter().copied());
            std::hint::black_box(index.search("work", FOUND));
            times.push(milliseconds(begin));
        }
        update.push(at(&mut times, 1.0));
    }
    let case = |name: &str, ours: Series, target: Option<Target>| Case {
        name: format!("search: {name}"),
        unit: "ms",
        better: Better::Lower,
        ours,
        against: Vec::new(),
        sdk: None,
        target,
    };
    let mut findings = Findings {
        cases: vec![
            case("p50 over 10,000 tools", search, Some(SEARCH)),
            case("p99 over 10,000 tools", slow, None),
            case("p50 of plain BM25, for comparison", theirs, None),
            case(
                "index of 10,000 tools, until one is found",
                build,
                Some(BUILD),
            ),
            case(
                "other tools of one server, until one is found, slowest of 20",
                update,
                Some(UPDATE),
            ),
        ],
        notes: Vec::new(),
    };
    found(&mut findings)?;
    Ok(findings)
}

/// How much is found, if there is data.
fn found(findings: &mut Findings) -> Result<(), Failure> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the caller says where the data is"
    )]
    let Some(directory) = std::env::var_os("COCODE_SEARCH_DATA").map(PathBuf::from) else {
        let note = "search: nothing is said of how much is found, without COCODE_SEARCH_DATA";
        findings.notes.push(note.to_owned());
        return Ok(());
    };
    let (ours, theirs) = judged::judge(&directory)?;
    let gains = [
        ("steps@5", ours.steps, theirs.steps, STEPS),
        ("question@10", ours.question, theirs.question, QUESTION),
    ];
    for (name, ours, theirs, target) in gains {
        findings
            .notes
            .push(format!("search: {name} {ours:.3}, plain BM25 {theirs:.3}"));
        findings.cases.push(Case {
            name: format!("search: {name} more than plain BM25"),
            unit: "share",
            better: Better::Higher,
            ours: Series::of("cocode", ours - theirs),
            against: Vec::new(),
            sdk: None,
            target: Some(target),
        });
    }
    Ok(())
}

/// How long each query takes.
fn timed(queries: &[String], search: impl Fn(&str) -> usize) -> Vec<f64> {
    let times = queries.iter().map(|query| {
        let begin = Instant::now();
        std::hint::black_box(search(query));
        milliseconds(begin)
    });
    times.collect()
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// The value below which this share of the times is.
fn at(times: &mut [f64], share: f64) -> f64 {
    times.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "some hundred times"
    )]
    let place = (share * times.len() as f64) as usize;
    times
        .get(place.min(times.len().saturating_sub(1)))
        .copied()
        .unwrap_or(f64::NAN)
}
