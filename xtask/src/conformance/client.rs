//! `cargo xtask conformance client`: the suites' mock servers against our client session.

mod runner;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use self::runner::Driver;
use super::listing;
use super::table::{CLIENT_SUITES, Run, Scenario, Suite};
use super::verdict::{Verdict, place_of, summarize};
use crate::counts::Counts;
use crate::failure::Failure;
use crate::shell::built;
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
        for suite in CLIENT_SUITES {
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

/// Runs what the command line asks for.
pub(super) fn run(arguments: &[String]) -> Result<Counts, Failure> {
    let selection = Selection::parse(arguments)?;
    peers::ensure()?;
    client(&selection)
}

/// Runs the selected scenarios. The peers must be installed.
pub(crate) fn client(selection: &Selection) -> Result<Counts, Failure> {
    listing::compare_all(CLIENT_SUITES)?;
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

    listing::say_what_is_not_run(CLIENT_SUITES);
    let places = CLIENT_SUITES
        .iter()
        .flat_map(|suite| suite.runs.iter().map(|run| place_of(suite, run)));
    summarize(places, &verdicts);
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
    built("cocode", &["--example", "conformance_client"])
}
