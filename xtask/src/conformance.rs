//! `cargo xtask conformance client`: the official suites against our client session, judged by
//! our own oracle.
//!
//! The suites let some clients pass that never connected, and run whatever scenarios they happen
//! to contain. Here the scenarios and the checks that must succeed are pinned in [`table`], what
//! the suite lists is compared with that in [`listing`], and [`oracle`] judges the checks that a
//! scenario wrote. [`runner`] starts one scenario.

mod listing;
mod oracle;
mod runner;
mod table;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use self::runner::{Driver, Verdict};
use self::table::{Run, SUITES, Scenario, Suite};
use crate::counts::Counts;
use crate::failure::Failure;
use crate::shell::{cargo, output};
use crate::{peers, workspace};

const USAGE: &str = "usage: cargo xtask conformance client [--scenario NAME]";

/// Scenarios at the same time: each is a Node process and a client, mostly waiting.
const WORKERS: usize = 3;

/// What to run, and with which client.
pub(crate) struct Selection {
    scenario: Option<String>,
    /// Another program in place of our client, to see that the oracle turns it down.
    command: Option<PathBuf>,
}

/// One scenario of one run, waiting for a worker.
struct Job {
    suite: &'static Suite,
    run: &'static Run,
    scenario: &'static Scenario,
}

impl Selection {
    pub(crate) fn everything() -> Self {
        Self {
            scenario: None,
            command: None,
        }
    }

    fn parse(arguments: &[String]) -> Result<Self, Failure> {
        let mut selection = Self::everything();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let value = arguments.next().ok_or_else(|| Failure::new(USAGE))?;
            match argument.as_str() {
                "--scenario" => selection.scenario = Some(value.clone()),
                "--command" => selection.command = Some(PathBuf::from(value)),
                _ => return Err(Failure::new(USAGE)),
            }
        }
        Ok(selection)
    }

    fn jobs(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for suite in SUITES {
            for run in suite.runs {
                for scenario in run.scenarios() {
                    if self
                        .scenario
                        .as_ref()
                        .is_none_or(|name| name == scenario.name)
                    {
                        jobs.push(Job {
                            suite,
                            run,
                            scenario,
                        });
                    }
                }
            }
        }
        jobs
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let Some((side, rest)) = arguments
        .split_first()
        .filter(|(side, _)| *side == "client")
    else {
        return Err(Failure::new(USAGE));
    };
    let selection = Selection::parse(rest)?;
    peers::ensure()?;
    let counts = client(&selection).map_err(|failure| {
        Failure::because(side, &failure).with_counts(failure.counts().unwrap_or(Counts {
            passed: 0,
            failed: 1,
        }))
    })?;
    println!("{counts}");
    Ok(())
}

/// Runs the selected scenarios. The peers must be installed.
pub(crate) fn client(selection: &Selection) -> Result<Counts, Failure> {
    listing::compare_all(SUITES)?;
    let driver = Driver::new(match &selection.command {
        Some(command) => command.clone(),
        None => build_driver()?,
    });
    let results = workspace::conformance_results();
    if results.exists() {
        fs::remove_dir_all(&results).map_err(|error| Failure::because(results.display(), error))?;
    }
    let jobs = selection.jobs();
    if jobs.is_empty() {
        return Err(Failure::new(
            "no scenario of that name is run: see xtask/src/conformance/table.rs",
        ));
    }
    let expected = jobs.len();
    // A scenario with a timing window gets the machine for itself, first.
    let (alone, together): (Vec<Job>, Vec<Job>) =
        jobs.into_iter().partition(|job| job.scenario.alone);
    let mut verdicts = work(&driver, alone, 1)?;
    verdicts.extend(work(&driver, together, WORKERS)?);

    say_what_is_not_run();
    summarize(&verdicts);
    let passed = verdicts.iter().filter(|verdict| verdict.passed()).count();
    let counts = Counts {
        passed,
        failed: expected - passed,
    };
    if counts.failed > 0 {
        let message = format!("{} of {expected} scenarios failed", counts.failed);
        return Err(Failure::new(message).with_counts(counts));
    }
    Ok(counts)
}

/// Runs jobs on some threads, printing each verdict as it comes.
fn work(driver: &Driver, jobs: Vec<Job>, workers: usize) -> Result<Vec<Verdict>, Failure> {
    let queue = Mutex::new(VecDeque::from(jobs));
    let next = || queue.lock().ok().and_then(|mut queue| queue.pop_front());
    let worker = || {
        let mut verdicts = Vec::new();
        while let Some(Job {
            suite,
            run,
            scenario,
        }) = next()
        {
            let verdict = runner::run(driver, suite, run, scenario)?;
            println!("{verdict}");
            verdicts.push(verdict);
        }
        Ok(verdicts)
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let mut verdicts = Vec::new();
        for thread in threads {
            let joined = thread
                .join()
                .map_err(|_panic| Failure::new("a worker panicked"))?;
            verdicts.extend(joined?);
        }
        Ok(verdicts)
    })
}

fn build_driver() -> Result<PathBuf, Failure> {
    let messages = output(
        cargo()
            .args(["build", "--quiet", "--locked", "--package", "cocode"])
            .args([
                "--example",
                "conformance_client",
                "--message-format",
                "json-render-diagnostics",
            ]),
    )?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "conformance_client")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .ok_or_else(|| Failure::new("cargo built no example `conformance_client`"))
}

/// Names the scenarios that exist and are not run, with the reason.
fn say_what_is_not_run() {
    for suite in SUITES {
        for not_run in suite.not_run {
            println!(
                "not run: {} ({}): {}",
                not_run.names.join(" "),
                suite.label,
                not_run.reason
            );
        }
    }
}

/// Says for each run that had scenarios how many of them passed.
fn summarize(verdicts: &[Verdict]) {
    for suite in SUITES {
        for run in suite.runs {
            let place = runner::place_of(suite, run);
            let of_run = || verdicts.iter().filter(|verdict| verdict.place() == place);
            let passed = of_run().filter(|verdict| verdict.passed()).count();
            match of_run().count() {
                0 => {}
                all => println!("{place}: {passed}/{all} scenarios"),
            }
        }
    }
}
