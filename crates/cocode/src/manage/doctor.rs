//! Finds out what is wrong with servers: first what concerns all of them, then each one step by
//! step, side by side. Says for every failure where it happened, why, and what to do.

mod before;
mod check;
mod examine;
mod general;
mod program;
mod tools;

use std::collections::BTreeSet;

use cocode_config::{Server, State};
use cocode_core::ServerSpec;
use serde::Serialize;

use crate::args::manage::DoctorArgs;
use crate::configured;
use crate::error::{CliError, Exit};
use crate::fleet::{self, Fleet, Wishes};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::printer::{Style, print_json};
use crate::session::{interrupted, on_runtime};
use crate::text::plain;
use crate::workspace::Workspace;

use check::{Check, CheckReport, Outcome, more_serious};
use examine::{Diagnosis, Doctor};

#[derive(Serialize)]
struct Report<'a> {
    general: Vec<CheckReport<'a>>,
    servers: Vec<ServerReport<'a>>,
    /// How the program ends.
    exit: u8,
}

#[derive(Serialize)]
struct ServerReport<'a> {
    name: &'a str,
    state: &'static str,
    result: &'static str,
    stages: Vec<CheckReport<'a>>,
}

pub(crate) fn run(args: &DoctorArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let setup = Setup::new(Purpose::OneThing, workspace)?;
    let outcome = on_runtime(workspace, examine(args, &setup, workspace));
    setup.end();
    outcome
}

async fn examine(
    args: &DoctorArgs,
    setup: &Setup,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let servers = chosen(args, workspace)?;
    let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    let printer = &workspace.printer;
    let mut interrupts = Interrupts::catch()?;
    let general = tokio::select! {
        biased;
        exit = interrupts.next() => return Err(interrupted(printer, exit)),
        general = general::examine(config, workspace) => general,
    };
    let wishes = Wishes {
        request_timeout: None,
        more_time: "--timeout",
    };
    let patients = servers
        .iter()
        .filter_map(|(_, server)| match &server.state {
            State::Ready(spec) => Some(ServerSpec {
                connect_timeout: args.timeout.unwrap_or(spec.connect_timeout),
                ..(**spec).clone()
            }),
            _ => None,
        });
    let fleet = Fleet::new(patients.collect(), wishes, setup, workspace).await?;
    let doctor = Doctor {
        workspace,
        config,
        fleet: &fleet,
        offline: args.offline,
    };
    let diagnoses = fleet::visit(&names, printer, &mut interrupts, |index| {
        let server = servers.get(index).copied();
        async move {
            match server {
                Some((name, server)) => Some(Box::pin(doctor.examine(name, server)).await),
                None => None,
            }
        }
    })
    .await?;
    let diagnoses: Vec<&Diagnosis<'_>> = diagnoses.iter().flatten().collect();
    let exit = exit(&general, &diagnoses, !args.names.is_empty());
    let printed = print(&general, &diagnoses, exit, workspace);
    fleet.close(&mut interrupts).await;
    printed.map(|()| exit)
}

/// The servers to look at, each once.
fn chosen<'a>(
    args: &DoctorArgs,
    workspace: &'a Workspace,
) -> Result<Vec<(&'a str, &'a Server)>, CliError> {
    let config = workspace.config()?;
    let all = &config.servers;
    let wanted: BTreeSet<&str> = args.names.iter().map(String::as_str).collect();
    if let Some(unknown) = wanted.iter().find(|name| !all.contains_key(**name)) {
        return Err(configured::unknown(unknown, config)
            .hint("`cocode config files` lists the files that were looked for"));
    }
    let servers = all.iter().map(|(name, server)| (name.as_str(), server));
    Ok(servers
        .filter(|(name, _)| wanted.is_empty() || wanted.contains(name))
        .collect())
}

/// The most serious of everything. Servers that may not run count where they were asked for.
fn exit(general: &[Check], diagnoses: &[&Diagnosis<'_>], named: bool) -> Exit {
    let of_general = general.iter().map(Check::exit);
    let of_servers = diagnoses.iter().map(|diagnosis| diagnosis.exit());
    let held_back = diagnoses
        .iter()
        .any(|diagnosis| named && matches!(diagnosis.state, "pending" | "blocked"));
    of_general
        .chain(of_servers)
        .chain(held_back.then_some(Exit::Blocked))
        .fold(Exit::Ok, more_serious)
}

fn print(
    general: &[Check],
    diagnoses: &[&Diagnosis<'_>],
    exit: Exit,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let printer = &workspace.printer;
    if printer.json() {
        let report = Report {
            general: general.iter().map(Check::report).collect(),
            servers: diagnoses
                .iter()
                .map(|diagnosis| ServerReport {
                    name: diagnosis.name,
                    state: diagnosis.state,
                    result: diagnosis.result(),
                    stages: diagnosis.checks.iter().map(Check::report).collect(),
                })
                .collect(),
            exit: exit as u8,
        };
        return print_json(printer, &report);
    }
    let paint = printer.paint();
    let mut lines = vec![paint.paint(Style::Bold, "cocode")];
    lines.extend(general.iter().flat_map(|check| check.lines(paint)));
    for diagnosis in diagnoses {
        lines.push(String::new());
        lines.push(paint.paint(Style::Bold, &plain(diagnosis.name)));
        let checks = diagnosis.checks.iter();
        lines.extend(checks.flat_map(|check| check.lines(paint)));
    }
    lines.push(String::new());
    lines.push(summary(general, diagnoses));
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    printer.out(format!("{}\n", lines.join("\n")))
}

/// `3 servers: 1 ok, 1 failed, 1 pending`.
fn summary(general: &[Check], diagnoses: &[&Diagnosis<'_>]) -> String {
    let results = ["ok", "warning", "failed", "pending", "blocked", "disabled"];
    let counts: Vec<String> = results
        .iter()
        .filter_map(|result| {
            let of_it = |diagnosis: &&&Diagnosis<'_>| diagnosis.result() == *result;
            let count = diagnoses.iter().filter(of_it).count();
            (count > 0).then(|| format!("{count} {result}"))
        })
        .collect();
    let servers = match diagnoses.len() {
        0 => "no servers are configured".to_owned(),
        1 => format!("1 server: {}", counts.join(", ")),
        n_servers => format!("{n_servers} servers: {}", counts.join(", ")),
    };
    let failed = general.iter().any(|check| check.outcome == Outcome::Failed);
    if failed {
        format!("{servers}; cocode itself has trouble, see above")
    } else {
        servers
    }
}
