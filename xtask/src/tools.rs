//! Cargo tools at pinned versions, installed under `target/tools` where the machine has no such
//! version, and the small tasks that only call one of them.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::failure::Failure;
use crate::shell::{cargo, output, program, run};
use crate::{peers, workspace};

/// A cargo subcommand at the version the project is checked with.
struct Tool {
    name: &'static str,
    version: &'static str,
}

const NEXTEST: Tool = Tool {
    name: "cargo-nextest",
    version: "0.9.143",
};
const DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};

/// `cargo nextest`, ready for its arguments.
pub(crate) fn nextest() -> Result<Command, Failure> {
    let mut command = program(NEXTEST.ready("nextest")?);
    command.arg("nextest");
    Ok(command)
}

pub(crate) fn deny(arguments: &[String]) -> Result<(), Failure> {
    let mut checks = vec!["bans", "licenses", "sources"];
    match arguments {
        [] => {}
        [flag] if flag == "--advisories" => checks.push("advisories"),
        _ => return Err(Failure::new("usage: cargo xtask deny [--advisories]")),
    }
    let deny = DENY.ready("deny")?;
    run(program(deny)
        .args(["--locked", "--workspace", "check"])
        .args(checks))
}

/// The rules of the source tree are tests of this crate.
pub(crate) fn tidy(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask tidy"));
    }
    run(cargo().args([
        "test",
        "--quiet",
        "--locked",
        "--package",
        "xtask",
        "--test",
        "tidy",
    ]))
}

/// Packs every crate that is published, as an upload would, without one. Nothing is built: the
/// packed files are those that the other steps have built.
pub(crate) fn package(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask package"));
    }
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
    let because = |error| Failure::because("cargo metadata", error);
    let metadata: Value = serde_json::from_str(&metadata).map_err(because)?;
    let mut names = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        // An empty list of registries: never published.
        let published = package["publish"] != serde_json::json!([]);
        if let (true, Some(name)) = (published, package["name"].as_str()) {
            names.extend(["--package", name]);
        }
    }
    run(cargo()
        .args(["package", "--no-verify", "--locked", "--offline"])
        .args(["--allow-dirty", "--quiet"])
        .args(names))
}

pub(crate) fn bench(arguments: &[String]) -> Result<(), Failure> {
    let is_named = |name: &str| arguments.iter().any(|argument| argument == name);
    let is_any_named = arguments.iter().any(|argument| !argument.starts_with('-'));
    if !is_any_named || is_named("startup") || is_named("persistent") {
        peers::ensure()?;
    }
    if !is_any_named || is_named("agent") {
        peers::ensure_agent_servers()?;
    }
    if !is_any_named || ["configured", "watched", "agent"].into_iter().any(is_named) {
        // The program itself is timed as well, and found beside the benchmarks.
        run(cargo().args(["build", "--release", "--locked", "--package", "cocode"]))?;
    }
    run_bench(&[], arguments)
}

pub(crate) fn soak(arguments: &[String]) -> Result<(), Failure> {
    run_bench(&["soak"], arguments)
}

fn run_bench(first: &[&str], arguments: &[String]) -> Result<(), Failure> {
    run(cargo()
        .args([
            "run",
            "--release",
            "--locked",
            "--package",
            "cocode-bench",
            "--",
        ])
        .args(first)
        .args(arguments)
        .env(peers::VARIABLE, workspace::peers()))
}

impl Tool {
    /// The path of the tool, installed first if need be.
    fn ready(&self, subcommand: &str) -> Result<PathBuf, Failure> {
        let ours = workspace::tools().join("bin").join(self.name);
        for candidate in [PathBuf::from(self.name), ours.clone()] {
            if self.is_version_of(&candidate, subcommand) {
                return Ok(candidate);
            }
        }
        println!(
            "installing {} {} under target/tools (some minutes)",
            self.name, self.version
        );
        run(cargo()
            .args([
                "install",
                self.name,
                "--locked",
                "--version",
                self.version,
                "--root",
            ])
            .arg(workspace::tools()))?;
        if self.is_version_of(&ours, subcommand) {
            Ok(ours)
        } else {
            Err(Failure::new(format!(
                "{} is not version {}",
                ours.display(),
                self.version
            )))
        }
    }

    fn is_version_of(&self, candidate: &PathBuf, subcommand: &str) -> bool {
        output(program(candidate).args([subcommand, "--version"])).is_ok_and(|text| {
            text.split_whitespace()
                .nth(1)
                .is_some_and(|version| version == self.version)
        })
    }
}
