//! `cargo xtask conformance upstream`: the conformance server of another project, alone and behind
//! `cocode gateway`. Whatever the suite demands and the server passes alone must pass behind it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::processes::{NAME, Running, create, free_port, start_gateway};
use super::suites::{log, result_of, suite_on};
use crate::conformance::results::checks;
use crate::conformance::table::{Part, Run, SERVER_SUITES, Suite};
use crate::counts::Counts;
use crate::failure::Failure;
use crate::shell::{built, program, run as run_command};
use crate::{peers, workspace};

const USAGE: &str =
    "usage: cargo xtask conformance upstream --rust-sdk CHECKOUT | --suite CHECKOUT | --url URL";

/// A conformance server, and how it is started in a checkout. The variable `PORT` says where.
struct Project {
    option: &'static str,
    directory: &'static str,
    prepare: &'static [&'static str],
    start: &'static [&'static str],
}

const PROJECTS: &[Project] = &[
    Project {
        option: "--rust-sdk",
        directory: "",
        prepare: &[
            "cargo",
            "build",
            "--package=mcp-conformance",
            "--bin=conformance-server",
        ],
        start: &[
            "cargo",
            "run",
            "--quiet",
            "--package=mcp-conformance",
            "--bin=conformance-server",
        ],
    },
    Project {
        option: "--suite",
        directory: "examples/servers/typescript",
        prepare: &["npm", "ci"],
        start: &["npx", "tsx", "everything-server.ts"],
    },
];

/// Runs what the command line asks for.
pub(in crate::conformance) fn run(arguments: &[String]) -> Result<Counts, Failure> {
    let [option, value] = arguments else {
        return Err(Failure::new(USAGE));
    };
    let project = PROJECTS.iter().find(|project| project.option == option);
    if project.is_none() && option != "--url" {
        return Err(Failure::new(USAGE));
    }
    peers::ensure()?;
    let cocode = built("cocode", &["--bin", "cocode"])?;
    let results = workspace::conformance_results().join("upstream");
    let directory = results.join(option.trim_start_matches('-'));
    if directory.exists() {
        fs::remove_dir_all(&directory)
            .map_err(|error| Failure::because(directory.display(), error))?;
    }
    fs::create_dir_all(&directory).map_err(|error| Failure::because(directory.display(), error))?;
    let (_server, url) = match project {
        Some(project) => {
            let (server, url) = project.serve(&PathBuf::from(value), &directory)?;
            (Some(server), url)
        }
        None => (None, value.clone()),
    };
    let entry = format!("url = {url:?}\n");
    let (_gateway, port) = start_gateway(&cocode, &entry, &directory)?;
    let mut counts = Counts::default();
    for suite in SERVER_SUITES {
        for run in suite.runs.iter().filter(|run| run.part == Part::Scored) {
            let revision = run.revision.unwrap_or_default();
            let results = |place: &str| directory.join(place).join(revision);
            let alone = passed(suite, run, &url, &results("alone"))?;
            for (place, path) in [("one", format!("mcp/{NAME}")), ("all", "mcp".to_owned())] {
                // The suite's check of Host headers wants this name.
                let url = format!("http://localhost:{port}/{path}");
                let behind = passed(suite, run, &url, &results(place))?;
                counts += compare(run, &path, &alone, &behind);
            }
        }
    }
    if counts.failed > 0 {
        let message = format!("the gateway loses scenarios: see {}", directory.display());
        return Err(Failure::new(message).with_counts(counts));
    }
    Ok(counts)
}

impl Project {
    fn serve(&self, checkout: &Path, directory: &Path) -> Result<(Running, String), Failure> {
        let checkout = checkout.join(self.directory);
        run_command(&mut command(self.prepare, &checkout)?)?;
        let port = free_port()?;
        let mut command = command(self.start, &checkout)?;
        command.env("PORT", port.to_string());
        let log = directory.join("server.log");
        let mut running = Running::start(&mut command, Stdio::from(create(&log)?), &log)?;
        running.wait_for(port, &log)?;
        Ok((running, format!("http://localhost:{port}/mcp")))
    }
}

fn command(words: &[&str], directory: &Path) -> Result<Command, Failure> {
    let (name, arguments) = words.split_first().ok_or_else(|| Failure::new(USAGE))?;
    let mut command = program(name);
    command.args(arguments).current_dir(directory);
    Ok(command)
}

/// The scored scenarios of a run without a failed check, and with one that succeeded.
fn passed(
    suite: &Suite,
    run: &Run,
    url: &str,
    results: &Path,
) -> Result<BTreeSet<&'static str>, Failure> {
    fs::create_dir_all(results).map_err(|error| Failure::because(results.display(), error))?;
    let mut command = suite_on(suite, url, results);
    command.args(["--requirements", run.revision.unwrap_or_default()]);
    log(&mut command, results)?;
    let mut passed = BTreeSet::new();
    for scenario in run.scenarios() {
        let Some(directory) = result_of(scenario.name, results)? else {
            continue;
        };
        let checks: Value = serde_json::from_str(&checks(&directory)?)
            .map_err(|error| Failure::because(directory.display(), error))?;
        let has = |status: &str| {
            let mut all = checks.as_array().into_iter().flatten();
            all.any(|check| check["status"] == status)
        };
        if has("SUCCESS") && !has("FAILURE") {
            passed.insert(scenario.name);
        }
    }
    Ok(passed)
}

/// Tells what passes alone and not behind the gateway, and counts.
fn compare(run: &Run, path: &str, alone: &BTreeSet<&str>, behind: &BTreeSet<&str>) -> Counts {
    let lost: Vec<&str> = alone.difference(behind).copied().collect();
    println!(
        "{run}, /{path}: {} of {} scenarios pass, alone {}{}{}",
        behind.len(),
        run.scenarios().count(),
        alone.len(),
        if lost.is_empty() { "" } else { ", LOST " },
        lost.join(" ")
    );
    Counts {
        passed: alone.len() - lost.len(),
        failed: lost.len(),
    }
}
