//! Approvals: has what waits approved, lists what was decided, and approves what we write ourselves.

mod asking;
mod revoke;

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cocode_config::{
    Approval, Candidate, Config, Entry, PendingSettings, Server, State, Trust, TrustContent,
    TrustItem, TrustStore, visible,
};
use serde::Serialize;

pub(crate) use self::asking::{Answer, asked, can_ask, entry_lines};
use super::report::EntryReport;
use crate::args::manage::TrustArgs;
use crate::error::{CliError, Code, Exit};
use crate::naming;
use crate::printer::print_json;
use crate::table::{Cell, table};
use crate::workspace::Workspace;

pub(crate) fn run(args: &TrustArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    workspace.warn_of_files(config);
    if args.list {
        return list(config, workspace);
    }
    if args.revoke {
        return revoke::run(args, config, workspace);
    }
    for name in &args.names {
        if !config.servers.contains_key(name) && !is_settings(name) {
            let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
            return Err(naming::unknown(name, &names));
        }
    }
    approve(args, config, workspace)
}

/// The entries of servers that wait, with the names of their servers.
pub(crate) fn waiting(config: &Config) -> Vec<(&str, &Candidate)> {
    let all = config.servers.iter().flat_map(|(name, server)| {
        let others = server.others.iter().map(|(other, _)| other);
        std::iter::once(&server.winner)
            .chain(others)
            .map(move |candidate| (name.as_str(), candidate))
    });
    all.filter(|(_, candidate)| {
        candidate.scope.needs_trust()
            && !candidate.trust.is_approved()
            && !candidate.found.is_broken()
    })
    .collect()
}

fn is_settings(name: &str) -> bool {
    name == "config.toml" || name == "config.local.toml"
}

#[derive(Serialize)]
struct Listing<'a> {
    pending: Vec<PendingReport<'a>>,
    #[serde(rename = "pendingSettings")]
    settings: Vec<String>,
    decided: Vec<DecidedReport<'a>>,
}

#[derive(Serialize)]
struct PendingReport<'a> {
    name: &'a str,
    trust: &'static str,
    #[serde(flatten)]
    entry: EntryReport<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<String>,
}

#[derive(Serialize)]
struct DecidedReport<'a> {
    name: &'a str,
    file: String,
    decision: &'static str,
    hash: &'a str,
    when: u64,
}

/// A decision as scripts see it.
fn decision(approval: Option<Approval>) -> &'static str {
    match approval {
        Some(Approval::Approved) => "approved",
        Some(Approval::Written) => "written",
        None => "refused",
    }
}

fn list(config: &Config, workspace: &Workspace) -> Result<Exit, CliError> {
    let store = store(workspace)?;
    let printer = &workspace.printer;
    if printer.json() {
        let listing = Listing {
            pending: waiting(config)
                .into_iter()
                .map(|(name, candidate)| PendingReport {
                    name,
                    trust: candidate.trust.as_str(),
                    entry: EntryReport::of(candidate),
                    difference: match &candidate.trust {
                        Trust::Changed(difference) => Some(difference.to_string()),
                        _ => None,
                    },
                })
                .collect(),
            settings: config
                .pending_settings
                .iter()
                .map(|file| file.path.display().to_string())
                .collect(),
            decided: store
                .decisions()
                .map(|one| DecidedReport {
                    name: one.name,
                    file: one.file.display().to_string(),
                    decision: decision(one.approval),
                    hash: one.hash,
                    when: one.when,
                })
                .collect(),
        };
        return print_json(printer, &listing).map(|()| Exit::Ok);
    }
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (name, candidate) in waiting(config) {
        rows.push(vec![
            Cell::new(visible(name)),
            Cell::new(candidate.trust.as_str()),
            Cell::new(candidate.found.origin.to_string()),
        ]);
    }
    for file in &config.pending_settings {
        rows.push(vec![
            Cell::new("(settings)"),
            Cell::new(file.trust.as_str()),
            Cell::new(visible(&file.path.display().to_string())),
        ]);
    }
    for one in store.decisions() {
        rows.push(vec![
            Cell::new(visible(one.name)),
            Cell::new(decision(one.approval)),
            Cell::new(visible(&one.file.display().to_string())),
        ]);
    }
    if rows.is_empty() {
        printer.note("nothing waits for approval, and nothing was decided");
        return Ok(Exit::Ok);
    }
    printer.out(table(&["NAME", "TRUST", "FILE"], &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

fn approve(args: &TrustArgs, config: &Config, workspace: &Workspace) -> Result<Exit, CliError> {
    let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|one| one == name);
    let waiting: Vec<_> = waiting(config)
        .into_iter()
        .filter(|(name, _)| wanted(name))
        .collect();
    let settings: Vec<_> = config
        .pending_settings
        .iter()
        .filter(|file| {
            let name = file.path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| wanted(&name))
        })
        .collect();
    let printer = &workspace.printer;
    if waiting.is_empty() && settings.is_empty() {
        printer.note("nothing waits for approval");
        return Outcome::default().print(workspace);
    }
    if !args.yes && !can_ask(workspace) {
        return Err(nobody_to_ask(&waiting, &settings));
    }
    let mut outcome = Outcome::default();
    let of_servers = waiting.iter().map(|(name, candidate)| {
        let origin = &candidate.found.origin;
        ItemReport {
            name,
            kind: "server",
            file: origin.file.display().to_string(),
            line: origin.line,
        }
    });
    let of_settings = settings.iter().map(|file| ItemReport {
        name: file.name(),
        kind: "settings",
        file: file.path.display().to_string(),
        line: None,
    });
    if args.yes {
        // In one go: the store is written once, however many there are.
        let servers = waiting.iter().map(|(_, candidate)| item(candidate));
        let items: Vec<_> = servers
            .chain(settings.iter().map(|file| file.item()))
            .collect();
        let kept = store(workspace)?.approve_all(
            &workspace.edits().private(),
            &items,
            Approval::Approved,
            now(),
        );
        kept.map_err(|error| unusable(&error))?;
        for report in of_servers.chain(of_settings) {
            outcome.note(Answer::Yes, report, workspace);
        }
        return outcome.print(workspace);
    }
    for ((name, candidate), report) in waiting.iter().zip(of_servers) {
        let answer = asking::about_server(name, candidate, workspace)?;
        outcome.carry_out(answer, &item(candidate), report, workspace)?;
    }
    for (file, report) in settings.iter().zip(of_settings) {
        let answer = asking::about_settings(file, workspace)?;
        outcome.carry_out(answer, &file.item(), report, workspace)?;
    }
    outcome.print(workspace)
}

fn nobody_to_ask(waiting: &[(&str, &Candidate)], settings: &[&PendingSettings]) -> CliError {
    let mut names: Vec<String> = waiting.iter().map(|(name, _)| visible(name)).collect();
    let paths = settings.iter().map(|file| file.path.display());
    names.extend(paths.map(|path| format!("the settings of {path}")));
    let wait = if names.len() == 1 && settings.is_empty() {
        "waits"
    } else {
        "wait"
    };
    let message = format!(
        "{} {wait} for approval, and nobody can be asked",
        names.join(", ")
    );
    CliError::new(Code::PendingTrust, message)
        .hint("`--yes` approves without asking; `--list` shows what waits")
}

/// What came of everything that waited, for scripts.
#[derive(Default, Serialize)]
struct Outcome<'a> {
    approved: Vec<ItemReport<'a>>,
    refused: Vec<ItemReport<'a>>,
    waiting: Vec<ItemReport<'a>>,
}

#[derive(Serialize)]
struct ItemReport<'a> {
    name: &'a str,
    kind: &'static str,
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl<'a> Outcome<'a> {
    /// Keeps what was decided. What was not is asked about again.
    fn carry_out(
        &mut self,
        answer: Answer,
        item: &TrustItem<'_>,
        report: ItemReport<'a>,
        workspace: &Workspace,
    ) -> Result<(), CliError> {
        remember(answer, item, workspace)?;
        self.note(answer, report, workspace);
        Ok(())
    }

    fn note(&mut self, answer: Answer, report: ItemReport<'a>, workspace: &Workspace) {
        let (done, reports) = match answer {
            Answer::Yes => ("approved", &mut self.approved),
            Answer::No => ("refused", &mut self.refused),
            Answer::NotNow => ("still waits:", &mut self.waiting),
        };
        let (name, file) = (visible(report.name), visible(&report.file));
        workspace
            .printer
            .note(&format!("{done} `{name}` of {file}"));
        reports.push(report);
    }

    fn print(&self, workspace: &Workspace) -> Result<Exit, CliError> {
        if workspace.printer.json() {
            print_json(&workspace.printer, self)?;
        }
        Ok(Exit::Ok)
    }
}

fn remember(answer: Answer, item: &TrustItem<'_>, workspace: &Workspace) -> Result<(), CliError> {
    match answer {
        Answer::Yes => decide(item, Some(Approval::Approved), workspace),
        Answer::No => decide(item, None, workspace),
        Answer::NotNow => Ok(()),
    }
}

/// Asks about a server that is wanted now, unless that was refused. Whether it was approved.
pub(crate) fn ask_about(
    name: &str,
    server: &Server,
    workspace: &Workspace,
) -> Result<bool, CliError> {
    debug_assert!(matches!(server.state, State::Pending));
    if server.winner.trust == Trust::Refused {
        return Ok(false);
    }
    let answer = asking::about_server(name, &server.winner, workspace)?;
    remember(answer, &item(&server.winner), workspace)?;
    Ok(answer == Answer::Yes)
}

/// What is to be approved of an entry.
pub(crate) fn item(candidate: &Candidate) -> TrustItem<'_> {
    TrustItem {
        file: &candidate.found.origin.file,
        name: &candidate.found.name,
        content: TrustContent::Server(&candidate.found.entry),
    }
}

/// Approves an entry that we wrote ourselves.
pub(crate) fn approve_written(
    file: &Path,
    name: &str,
    entry: &Entry,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let content = TrustContent::Server(entry);
    let item = TrustItem {
        file,
        name,
        content,
    };
    decide(&item, Some(Approval::Written), workspace)
}

/// Forgets what was decided about an entry that is gone.
pub(crate) fn forget(file: &Path, name: &str, workspace: &Workspace) -> Result<(), CliError> {
    let mut store = store(workspace)?;
    let revoked = store.revoke(&workspace.edits().private(), file, name);
    revoked.map_err(|error| unusable(&error))?;
    Ok(())
}

/// Approves, or refuses, for good.
pub(crate) fn decide(
    item: &TrustItem<'_>,
    approval: Option<Approval>,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let mut store = store(workspace)?;
    let edits = workspace.edits().private();
    let decided = match approval {
        Some(approval) => store.approve(&edits, item, approval, now()),
        None => store.refuse(&edits, item, now()),
    };
    decided.map_err(|error| unusable(&error))
}

/// Seconds since 1970; a clock before that says nothing worth keeping.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map(|since| since.as_secs()).unwrap_or_default()
}

pub(crate) fn store(workspace: &Workspace) -> Result<TrustStore, CliError> {
    TrustStore::load(workspace.places.approvals()).map_err(|error| unusable(&error))
}

pub(crate) fn unusable(error: &cocode_config::TrustError) -> CliError {
    CliError::new(Code::FileError, "approvals cannot be kept").because(error)
}
