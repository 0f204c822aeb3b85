//! Runs one scenario: the suite's mock server in Node, our client as its child, and what both
//! left behind.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::conformance::oracle;
use crate::conformance::results::{checks, end_of};
use crate::conformance::table::{Part, Run, Scenario, Suite};
use crate::conformance::verdict::{Verdict, place_of};
use crate::failure::Failure;
use crate::shell::{program, run_logged};
use crate::{peers, workspace};

/// The suite's own limit for the client.
const CLIENT_TIMEOUT_MS: &str = "30000";

/// The limit for the suite, which waits forever for a client that holds its pipes open.
const SUITE_TIMEOUT: Duration = Duration::from_mins(1);

/// The client under test.
pub(super) struct Driver {
    path: PathBuf,
}

impl Driver {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }
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
