//! Runs one scenario: the suite's mock server in Node, our client as its child, and what both
//! left behind.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::oracle::{self, Judgment};
use super::table::{Part, Run, Scenario, Suite};
use crate::failure::Failure;
use crate::shell::{program, run_logged};
use crate::{peers, workspace};

/// The suite's own limit for the client.
const CLIENT_TIMEOUT_MS: &str = "30000";

/// The limit for the suite, which waits forever for a client that holds its pipes open.
const SUITE_TIMEOUT: Duration = Duration::from_mins(1);

/// Lines of the suite's output that a failed scenario shows.
const SHOWN_LINES: usize = 40;

/// What stands for the file of a suite that wrote none.
const NO_CHECKS: &str = "[]";

/// The client under test.
pub(super) struct Driver {
    path: PathBuf,
}

/// How one scenario ended.
pub(super) struct Verdict {
    /// The run it belongs to, as [`place_of`] names it.
    place: String,
    scenario: &'static str,
    judgment: Judgment,
    /// The end of the suite's output; only for a failed scenario.
    log: String,
}

impl Driver {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl Verdict {
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn passed(&self) -> bool {
        self.judgment.complaints.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            place,
            scenario,
            judgment,
            log,
        } = self;
        if self.passed() {
            let successes = judgment.successes;
            return write!(formatter, "pass {place}: {scenario} ({successes} checks)");
        }
        write!(formatter, "FAIL {place}: {scenario}")?;
        for complaint in &judgment.complaints {
            write!(formatter, "\n     {complaint}")?;
        }
        for line in log.lines() {
            write!(formatter, "\n     | {line}")?;
        }
        Ok(())
    }
}

/// How a run is called, for people.
pub(super) fn place_of(suite: &Suite, run: &Run) -> String {
    format!("{} at {run}", suite.label)
}

pub(super) fn run(
    driver: &Driver,
    suite: &Suite,
    run: &Run,
    scenario: &Scenario,
) -> Result<Verdict, Failure> {
    let revision = run.revision.unwrap_or("any");
    let directory = workspace::conformance_results()
        .join(suite.label)
        .join(revision)
        .join(scenario.name);
    fs::create_dir_all(&directory).map_err(|error| Failure::because(directory.display(), error))?;
    let log_path = directory.join("suite.log");
    let status_path = directory.join("client.status");
    let said_path = directory.join("client.log");
    let scripts = workspace::peers_source().join("npm");

    let mut command = program(peers::node());
    command
        .arg("--no-deprecation")
        .arg("--require")
        .arg(scripts.join("loopback.cjs"))
        .arg(peers::npm_package(suite.package).join("dist/index.js"))
        // The suite hands this to a shell and appends the URL: variables keep paths whole.
        .args(["client", "--command", r#"sh "$COCODE_CONFORMANCE_WRAPPER""#])
        .args([
            "--scenario",
            scenario.name,
            "--timeout",
            CLIENT_TIMEOUT_MS,
            "--output-dir",
        ])
        .arg(directory.join("results"))
        .env("COCODE_CONFORMANCE_WRAPPER", scripts.join("run-client.sh"))
        .env("COCODE_CONFORMANCE_DRIVER", &driver.path)
        .env("COCODE_CONFORMANCE_STATUS", &status_path)
        .env("COCODE_CONFORMANCE_LOG", &said_path);
    if let Some(revision) = run.revision {
        command.args(["--spec-version", revision]);
    }
    if run.part == Part::Unscored {
        // As the suite itself runs them with a requirement set: extensions are of no revision.
        command.arg("--force");
    }
    let ended = run_logged(&mut command, &log_path, Instant::now() + SUITE_TIMEOUT)?;

    let mut judgment = oracle::judge(scenario, &checks(&directory.join("results"))?);
    match ended {
        Some(status) if status.success() => {}
        Some(status) => judgment
            .complaints
            .push(format!("the suite ended with {status}")),
        None => judgment
            .complaints
            .push(format!("no end after {SUITE_TIMEOUT:?}")),
    }
    // A file that is not there was not written: the client did not come that far.
    let status = fs::read_to_string(&status_path).ok();
    let said = fs::read(&said_path).unwrap_or_default();
    judgment.complaints.extend(oracle::judge_end(
        scenario,
        status.as_deref().map(str::trim),
        &String::from_utf8_lossy(&said),
    ));
    let log = if judgment.complaints.is_empty() {
        String::new()
    } else {
        end_of(&log_path)?
    };
    Ok(Verdict {
        place: place_of(suite, run),
        scenario: scenario.name,
        judgment,
        log,
    })
}

/// The `checks.json` of the only result; an empty list where the suite wrote none.
fn checks(results: &Path) -> Result<String, Failure> {
    let path = results.join("checks.json");
    if path.exists() {
        return fs::read_to_string(&path).map_err(|error| Failure::because(path.display(), error));
    }
    // A scenario called `auth/x` has its result one directory deeper than one called `x`.
    let Ok(entries) = fs::read_dir(results) else {
        return Ok(NO_CHECKS.to_owned());
    };
    for entry in entries {
        let entry = entry.map_err(|error| Failure::because(results.display(), error))?;
        let found = checks(&entry.path())?;
        if found != NO_CHECKS {
            return Ok(found);
        }
    }
    Ok(NO_CHECKS.to_owned())
}

fn end_of(log: &Path) -> Result<String, Failure> {
    let bytes = fs::read(log).map_err(|error| Failure::because(log.display(), error))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines
        .get(lines.len().saturating_sub(SHOWN_LINES)..)
        .unwrap_or_default()
        .join("\n"))
}
