//! Approvals: shows what waits and asks, lists and revokes what was decided, and approves what we
//! write ourselves.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use cocode_config::{
    Approval, Candidate, Config, Entry, Server, State, Trust, TrustContent, TrustItem, TrustStore,
};
use serde::Serialize;

use super::report::{EntryReport, HIDDEN};
use crate::args::manage::TrustArgs;
use crate::error::{CliError, Code, Exit};
use crate::naming;
use crate::printer::print_json;
use crate::table::{Cell, table};
use crate::text::plain;
use crate::workspace::Workspace;

pub(crate) fn run(args: &TrustArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    workspace.warn_of_files(config);
    if args.list {
        return list(config, workspace);
    }
    for name in &args.names {
        if !config.servers.contains_key(name) && !is_settings(name) {
            let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
            return Err(naming::unknown(name, &names));
        }
    }
    if args.revoke {
        return revoke(args, config, workspace);
    }
    approve(args, config, workspace)
}

/// The entries of a server that wait, with their server.
fn waiting(config: &Config) -> Vec<(&str, &Candidate)> {
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

fn list(config: &Config, workspace: &Workspace) -> Result<Exit, CliError> {
    let store = store(workspace)?;
    let printer = &workspace.printer;
    let decision = |approval: Option<Approval>| match approval {
        Some(Approval::Approved) => "approved",
        Some(Approval::Written) => "written",
        None => "refused",
    };
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
            Cell::new(name),
            Cell::new(candidate.trust.as_str()),
            Cell::new(candidate.found.origin.to_string()),
        ]);
    }
    for file in &config.pending_settings {
        rows.push(vec![
            Cell::new("(settings)"),
            Cell::new(file.trust.as_str()),
            Cell::new(file.path.display().to_string()),
        ]);
    }
    for one in store.decisions() {
        rows.push(vec![
            Cell::new(one.name),
            Cell::new(decision(one.approval)),
            Cell::new(one.file.display().to_string()),
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
        return Ok(Exit::Ok);
    }
    if !args.yes && !can_ask(workspace) {
        let names: Vec<&str> = waiting.iter().map(|(name, _)| *name).collect();
        let message = format!(
            "{} wait for approval, and nobody can be asked",
            names.join(", ")
        );
        return Err(CliError::new(Code::PendingTrust, message)
            .hint("`--yes` approves without asking; `--list` shows what waits"));
    }
    for (name, candidate) in waiting {
        if args.yes || ask(name, candidate, workspace)? {
            decide(&item(candidate), Some(Approval::Approved), workspace)?;
            printer.note(&format!("approved `{name}` of {}", candidate.found.origin));
        }
    }
    for file in settings {
        let shown = format!("settings of {}:\n{}", file.path.display(), file.text());
        if args.yes || asked(&shown, "Approve these settings? [y/N] ", workspace)? {
            decide(&file.item(), Some(Approval::Approved), workspace)?;
            printer.note(&format!("approved {}", file.path.display()));
        }
    }
    Ok(Exit::Ok)
}

fn revoke(args: &TrustArgs, config: &Config, workspace: &Workspace) -> Result<Exit, CliError> {
    let mut store = store(workspace)?;
    let edits = workspace.edits().private();
    let tree = config.work_tree.as_deref();
    let decided: Vec<(std::path::PathBuf, String)> = store
        .decisions()
        .filter(|one| {
            let named = args.names.iter().any(|name| name == one.name);
            let is_here = tree.is_some_and(|tree| one.file.starts_with(canonical(tree)));
            named || (args.names.is_empty() && is_here)
        })
        .map(|one| (one.file.to_owned(), one.name.to_owned()))
        .collect();
    let mut n_revoked = 0;
    for (file, name) in decided {
        let revoked = store.revoke(&edits, &file, &name);
        n_revoked += usize::from(revoked.map_err(|error| unusable(&error))?);
    }
    let message = format!("{n_revoked} approvals were taken back");
    workspace.printer.note(&message);
    Ok(Exit::Ok)
}

/// Asks about a server that is wanted now. Whether it was approved.
pub(crate) fn ask_about(
    name: &str,
    server: &Server,
    workspace: &Workspace,
) -> Result<bool, CliError> {
    debug_assert!(matches!(server.state, State::Pending));
    if server.winner.trust == Trust::Refused || !ask(name, &server.winner, workspace)? {
        return Ok(false);
    }
    decide(&item(&server.winner), Some(Approval::Approved), workspace)?;
    Ok(true)
}

/// Shows an entry, or what changed in it, and asks. A no is remembered.
fn ask(name: &str, candidate: &Candidate, workspace: &Workspace) -> Result<bool, CliError> {
    let mut shown = match &candidate.trust {
        Trust::Changed(difference) => format!(
            "Server `{name}` of {} changed since you approved it:\n{difference}",
            candidate.found.origin
        ),
        _ => format!("Server `{name}` of {} says:\n", candidate.found.origin),
    };
    if !matches!(candidate.trust, Trust::Changed(_)) {
        for line in candidate.found.entry.lines() {
            let value = if line.is_secret {
                HIDDEN
            } else {
                &line.value.0
            };
            shown.extend(["  ", &line.key, " = ", value, "\n"]);
        }
    }
    let approved = asked(
        &shown,
        "Approve it, so that it may be started? [y/N] ",
        workspace,
    )?;
    if !approved {
        decide(&item(candidate), None, workspace)?;
    }
    Ok(approved)
}

/// Whether there is a person to ask.
pub(crate) fn can_ask(workspace: &Workspace) -> bool {
    stdin().is_terminal() && workspace.printer.stderr_is_terminal()
}

/// Shows something and asks: only a clear yes is one.
pub(crate) fn asked(shown: &str, question: &str, workspace: &Workspace) -> Result<bool, CliError> {
    for line in crate::text::plain_lines(shown) {
        workspace.printer.err_line(&line);
    }
    let cannot =
        |error| CliError::new(Code::FileError, "cannot ask at the terminal").because(&error);
    let mut out = stderr().lock();
    write!(out, "{}", plain(question))
        .and_then(|()| out.flush())
        .map_err(cannot)?;
    drop(out);
    let mut line = String::new();
    stdin().lock().read_line(&mut line).map_err(cannot)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn item(candidate: &Candidate) -> TrustItem<'_> {
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
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map(|since| since.as_secs()).unwrap_or_default();
    let decided = match approval {
        Some(approval) => store.approve(&edits, item, approval, now),
        None => store.refuse(&edits, item, now),
    };
    decided.map_err(|error| unusable(&error))
}

pub(crate) fn store(workspace: &Workspace) -> Result<TrustStore, CliError> {
    TrustStore::load(workspace.places.approvals()).map_err(|error| unusable(&error))
}

pub(crate) fn unusable(error: &cocode_config::TrustError) -> CliError {
    CliError::new(Code::FileError, "approvals cannot be kept").because(error)
}

fn canonical(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_gone| path.to_owned())
}
