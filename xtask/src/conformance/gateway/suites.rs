//! Runs the suites against a URL: each requirement set in one go, or one scenario alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::exceptions::{applied, place_of};
use super::legs::Leg;
use crate::conformance::oracle;
use crate::conformance::results::checks;
use crate::conformance::table::{Part, Run, SERVER_SUITES, Scenario, Suite};
use crate::conformance::verdict::Verdict;
use crate::failure::Failure;
use crate::peers;
use crate::shell::{program, run_logged};

/// The limit for a whole set, whose scenarios have their own.
const SET_TIMEOUT: Duration = Duration::from_mins(5);

/// Runs what the leg drives, or one scenario of it, and prints each verdict.
pub(super) fn run(
    leg: &Leg,
    url: &str,
    scenario: Option<&str>,
    directory: &Path,
) -> Result<Vec<Verdict>, Failure> {
    let mut verdicts = Vec::new();
    for suite in SERVER_SUITES {
        let mut done: Vec<Option<&str>> = Vec::new();
        for run in suite.runs.iter().filter(|run| leg.drives(run)) {
            let results = directory
                .join(suite.label)
                .join(run.revision.unwrap_or("active"));
            fs::create_dir_all(&results)
                .map_err(|error| Failure::because(results.display(), error))?;
            let wanted = |candidate: &&Scenario| {
                leg.offers(candidate) && scenario.is_none_or(|name| name == candidate.name)
            };
            // A requirement set brings its unscored scenarios along.
            if scenario.is_none() && !done.contains(&run.revision) {
                let mut command = suite_on(suite, url, &results);
                match run.revision {
                    Some(revision) => command.args(["--requirements", revision]),
                    None => command.args(["--suite", "active"]),
                };
                log(&mut command, &results)?;
                done.push(run.revision);
            }
            for pinned in run.scenarios().filter(wanted) {
                if scenario.is_some() {
                    let mut command = suite_on(suite, url, &results);
                    command.args(["--scenario", pinned.name]);
                    if let Some(revision) = run.revision {
                        command.args(["--spec-version", revision]);
                    }
                    if run.part == Part::Unscored {
                        command.arg("--force");
                    }
                    log(&mut command, &results)?;
                }
                let verdict = judge(leg, suite, run, pinned, &results)?;
                println!("{verdict}");
                verdicts.push(verdict);
            }
        }
    }
    Ok(verdicts)
}

pub(super) fn suite_on(suite: &Suite, url: &str, results: &Path) -> Command {
    let mut command = program(peers::node());
    command
        .arg("--no-deprecation")
        .arg(peers::npm_package(suite.package).join("dist/index.js"))
        .args(["server", "--url", url, "--output-dir"])
        .arg(results);
    command
}

/// The suite's own opinion is in its exit status, which says nothing about single checks.
pub(super) fn log(command: &mut Command, results: &Path) -> Result<(), Failure> {
    let log = results.join("suite.log");
    match run_logged(command, &log, Instant::now() + SET_TIMEOUT)? {
        Some(_) => Ok(()),
        None => Err(Failure::new(format!(
            "the suite had no end after {SET_TIMEOUT:?}: see {}",
            log.display()
        ))),
    }
}

fn judge(
    leg: &Leg,
    suite: &Suite,
    run: &Run,
    scenario: &Scenario,
    results: &Path,
) -> Result<Verdict, Failure> {
    let directory = result_of(scenario.name, results)?;
    let checks = checks(&directory.unwrap_or_else(|| results.join(scenario.name)))?;
    let judgment = oracle::judge(&applied(leg, scenario), &checks);
    let log = if judgment.complaints.is_empty() {
        String::new()
    } else {
        format!("details are in {}", results.display())
    };
    Ok(Verdict {
        place: place_of(leg, suite.label, run),
        scenario: scenario.name,
        judgment,
        log,
    })
}

/// The directory that the suite made for a scenario: `server-NAME-` and the time.
pub(super) fn result_of(scenario: &str, results: &Path) -> Result<Option<PathBuf>, Failure> {
    let because = |error: std::io::Error| Failure::because(results.display(), error);
    let prefix = format!("server-{scenario}-");
    for entry in fs::read_dir(results).map_err(because)? {
        let path = entry.map_err(because)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.strip_prefix(&prefix).is_some_and(is_time) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Whether this is a time such as `2026-11-16T10-33-11-144Z`, and not the rest of a longer name.
fn is_time(rest: &str) -> bool {
    rest.ends_with('Z')
        && rest.split('T').count() == 2
        && rest.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::is_time;

    #[test]
    fn a_longer_name_is_no_time() {
        assert!(is_time("2026-11-16T10-33-11-144Z"));
        assert!(!is_time("with-args-2026-11-16T10-33-11-144Z"));
        assert!(!is_time("2020-12-preservation"));
    }
}
