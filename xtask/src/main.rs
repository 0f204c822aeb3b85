//! The project's own automation: `cargo xtask help` lists what it can do.
//!
//! Standard library and `serde_json` only, so that it builds in seconds.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "automation starts programs, reads the environment and talks to a terminal"
)]

mod agents;
mod conformance;
mod counts;
mod failure;
mod macos;
mod peers;
mod shell;
mod system;
mod test;
mod tools;
mod workspace;

use std::process::ExitCode;

use crate::failure::Failure;

/// One thing `cargo xtask` can do.
struct Task {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<(), Failure>,
}

const TASKS: &[Task] = &[
    Task {
        name: "test",
        usage: "test [--system]",
        about: "check everything; --system adds what needs Debian packages, installed when root",
        run: test::run,
    },
    Task {
        name: "tidy",
        usage: "tidy",
        about: "check the rules of the source tree",
        run: tools::tidy,
    },
    Task {
        name: "peers",
        usage: "peers",
        about: "install Node 24 and the public servers that tests talk to, under target/peers",
        run: peers::run,
    },
    Task {
        name: "agents",
        usage: "agents",
        about: "start a gateway, and let Claude Code and OpenCode say whether they can use it",
        run: agents::run,
    },
    Task {
        name: "conformance",
        usage: "conformance client|gateway|upstream [--scenario NAME] [--leg NAME]",
        about: "run the official conformance suites against our client session, our gateway, or others",
        run: conformance::run,
    },
    Task {
        name: "deny",
        usage: "deny [--advisories]",
        about: "check bans, licenses and sources of the dependencies; --advisories needs a network",
        run: tools::deny,
    },
    Task {
        name: "package",
        usage: "package",
        about: "pack the published crates as an upload would, without one",
        run: tools::package,
    },
    Task {
        name: "bench",
        usage: "bench [NAME] [--json]",
        about: "run the benchmarks in release mode",
        run: tools::bench,
    },
    Task {
        name: "soak",
        usage: "soak [--gateway] [--seconds 60] [--calls 10000] [--servers 50] [--seed N]",
        about: "call many servers at once while they are killed, directly or through a gateway",
        run: tools::soak,
    },
    Task {
        name: "macos",
        usage: "macos",
        about: "check that everything compiles for macOS; needs the Rust target, no Mac",
        run: macos::run_check,
    },
    Task {
        name: "help",
        usage: "help",
        about: "print this list",
        run: help,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (name, rest) = match arguments.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("help", [].as_slice()),
    };
    let name = if matches!(name, "-h" | "--help") {
        "help"
    } else {
        name
    };
    let outcome = match TASKS.iter().find(|task| task.name == name) {
        Some(task) => (task.run)(rest),
        None => Err(Failure::new(format!(
            "no task named `{name}`: see `cargo xtask help`"
        ))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            // Tests and scenarios are counted on the last line, also when they failed.
            if let Some(counts) = failure.counts() {
                println!("{counts}");
            }
            ExitCode::FAILURE
        }
    }
}

fn help(arguments: &[String]) -> Result<(), Failure> {
    if !arguments.is_empty() {
        return Err(Failure::new("usage: cargo xtask help"));
    }
    println!("Usage: cargo xtask TASK\n");
    let width = TASKS.iter().map(|task| task.usage.len()).max().unwrap_or(0);
    for task in TASKS {
        println!("  {:width$}  {}", task.usage, task.about);
    }
    Ok(())
}
