//! `cargo xtask test`: everything that must hold, in order of speed, stopping at the first step
//! that fails.

use std::fs;
use std::process::Command;
use std::time::Instant;

use crate::counts::{self, Counts};
use crate::failure::Failure;
use crate::shell::{self, cargo, output, run_and_keep};
use crate::{conformance, macos, peers, system, tools, workspace};

/// Whether the tests that need Debian packages run too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Plain,
    System,
}

/// What a step counted; nothing for a step that only checks.
type Step = fn(Scope) -> Result<Counts, Failure>;

const STEPS: &[(&str, Step)] = &[
    ("formatting", |_| {
        quiet(cargo().args(["fmt", "--all", "--check"]))
    }),
    ("tidy", |_| tools::tidy(&[]).map(|()| Counts::default())),
    ("clippy", |_| {
        quiet(
            cargo()
                .args(["clippy", "--workspace", "--all-targets", "--locked"])
                .args(["--", "-D", "warnings"]),
        )
    }),
    ("peers", |_| peers::ensure().map(|()| Counts::default())),
    ("build of the tests", |_| {
        quiet(tools::nextest()?.args(["run", "--workspace", "--locked", "--no-run"]))
    }),
    ("tests", tests),
    ("documentation tests", |_| documentation_tests()),
    ("documentation", |_| {
        quiet(cargo().env("RUSTDOCFLAGS", "-D warnings").args([
            "doc",
            "--no-deps",
            "--workspace",
            "--locked",
        ]))
    }),
    ("dependencies", |_| {
        tools::deny(&[]).map(|()| Counts::default())
    }),
    ("packaging", |_| {
        tools::package(&[]).map(|()| Counts::default())
    }),
    ("macOS", |scope| {
        match scope {
            Scope::Plain => println!("left out, because it needs --system"),
            Scope::System => macos::check_if_possible()?,
        }
        Ok(Counts::default())
    }),
    ("client conformance", |_| {
        conformance::client(&conformance::Selection::everything())
    }),
    ("gateway conformance", |_| conformance::gateway()),
];

fn run_all(scope: Scope) -> Result<Counts, Failure> {
    let mut total = Counts::default();
    let mut seconds = Vec::new();
    if scope == Scope::System {
        headline("Debian packages");
        system::install().map_err(|failure| stopped("Debian packages", &failure, total))?;
    }
    for (name, step) in STEPS {
        headline(name);
        let start = Instant::now();
        match step(scope) {
            Ok(counted) => total += counted,
            Err(failure) => {
                // A step that counts nothing is itself the one that failed.
                total += failure.counts().unwrap_or(Counts {
                    passed: 0,
                    failed: 1,
                });
                return Err(stopped(name, &failure, total));
            }
        }
        seconds.push((name, start.elapsed().as_secs_f32()));
    }
    headline("summary");
    for (name, seconds) in seconds {
        println!("{seconds:8.1} s  {name}");
    }
    Ok(total)
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let scope = match arguments {
        [] => Scope::Plain,
        [flag] if flag == "--system" => Scope::System,
        _ => return Err(Failure::new("usage: cargo xtask test [--system]")),
    };
    let total = run_all(scope)?;
    match scope {
        Scope::Plain => say_what_was_left_out()?,
        Scope::System if !macos::is_target_installed() => println!("{}", macos::NOT_CHECKED),
        Scope::System => {}
    }
    println!("{total}");
    Ok(())
}

fn headline(name: &str) {
    println!("\n=== {name}");
}

fn stopped(step: &str, failure: &Failure, total: Counts) -> Failure {
    Failure::because(format!("stopped at the step `{step}`"), failure).with_counts(total)
}

/// A step that only checks.
fn quiet(command: &mut Command) -> Result<Counts, Failure> {
    shell::run(command).map(|()| Counts::default())
}

fn tests(scope: Scope) -> Result<Counts, Failure> {
    let report = workspace::root().join("target/nextest/ci/junit.xml");
    if report.exists() {
        // A report of an earlier run must not be counted for this one.
        fs::remove_file(&report).map_err(|error| Failure::because(report.display(), error))?;
    }
    let mut nextest = tools::nextest()?;
    nextest.args(["run", "--workspace", "--locked", "--profile", "ci"]);
    nextest.env(peers::VARIABLE, workspace::peers());
    if scope == Scope::System {
        nextest
            .arg("--ignore-default-filter")
            .env("COCODE_TEST_SYSTEM", "1");
    }
    let outcome = shell::run(&mut nextest);
    let text = fs::read_to_string(&report);
    match (outcome, text) {
        (Ok(()), Ok(text)) => match counts::from_junit(&text) {
            Some(counts) if counts.passed > 0 && counts.failed == 0 => Ok(counts),
            Some(counts) => Err(Failure::new(format!(
                "nextest passed, but its report says {counts}"
            ))),
            None => Err(Failure::new(format!("no totals in {}", report.display()))),
        },
        (Ok(()), Err(error)) => Err(Failure::because(report.display(), error)),
        // Without a report no test was started; the step alone counts as failed then.
        (Err(failure), text) => Err(match text.ok().and_then(|text| counts::from_junit(&text)) {
            Some(counts) if counts.failed > 0 => failure.with_counts(counts),
            _ => failure,
        }),
    }
}

fn documentation_tests() -> Result<Counts, Failure> {
    let (status, output) = run_and_keep(
        cargo()
            .args(["test", "--doc", "--workspace", "--locked"])
            .env(peers::VARIABLE, workspace::peers()),
    )?;
    let counts = counts::from_test_results(&output);
    if status.success() && counts.failed == 0 {
        return Ok(counts);
    }
    let failure = Failure::because("documentation tests", status);
    Err(if counts.failed > 0 {
        failure.with_counts(counts)
    } else {
        failure
    })
}

/// Names the tests that only `--system` runs.
fn say_what_was_left_out() -> Result<(), Failure> {
    let list = output(
        tools::nextest()?
            .args([
                "list",
                "--workspace",
                "--locked",
                "--profile",
                "ci",
                "--ignore-default-filter",
            ])
            .args(["--message-format", "oneline", "-E", system::TESTS]),
    )?;
    let names: Vec<&str> = list
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    println!("not checked, because it needs --system: that everything compiles for macOS");
    if !names.is_empty() {
        println!("not run, because they need --system ({}):", names.len());
        for name in names {
            println!("  {name}");
        }
    }
    Ok(())
}
