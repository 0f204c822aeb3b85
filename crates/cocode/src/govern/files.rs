//! The files of configuration themselves: which ones are looked for, what is wrong with them, what
//! they come to, and their schemas for editors.

mod show;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cocode_config::{Config, Problem, SchemaKind, Scope, schema};
use serde::Serialize;

use crate::args::govern::{ConfigVerb, SchemaFile};
use crate::error::{CliError, Exit};
use crate::manage::report::ProblemReport;
use crate::printer::{Style, print_json};
use crate::table::{Cell, table};
use crate::workspace::{Workspace, told};

pub(crate) fn run(verb: &ConfigVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    match verb {
        ConfigVerb::Files => files(workspace),
        ConfigVerb::Check => check(workspace),
        ConfigVerb::Show => show::run(workspace),
        ConfigVerb::Schema { kind } => {
            let kind = match kind {
                SchemaFile::Mcp => SchemaKind::Mcp,
                SchemaFile::Config => SchemaKind::Config,
                SchemaFile::Policy => SchemaKind::Policy,
            };
            let text = schema(kind);
            workspace.printer.out_line(text.trim_end())?;
            Ok(Exit::Ok)
        }
    }
}

#[derive(Serialize)]
struct Listing {
    files: Vec<FileReport>,
}

#[derive(Serialize)]
struct FileReport {
    scope: &'static str,
    /// What is kept in it.
    kind: &'static str,
    path: PathBuf,
    exists: bool,
    /// missing, broken, pending, approved, or used.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<usize>,
    /// How many of the servers wait for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<usize>,
}

fn files(workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let reports = reports(config, workspace);
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &Listing { files: reports }).map(|()| Exit::Ok);
    }
    if let Some(file) = &config.managed_by {
        let message = format!(
            "no other file with servers is looked for: all are fixed in {}",
            file.display()
        );
        printer.note(&message);
    }
    let rows: Vec<Vec<Cell>> = reports.iter().map(row).collect();
    let head = ["SCOPE", "KIND", "STATE", "SERVERS", "FILE"];
    printer.out(table(&head, &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

fn row(report: &FileReport) -> Vec<Cell> {
    let state = Cell::new(report.state);
    let state = match report.state {
        "missing" => state.styled(Style::Dim),
        "pending" => state.styled(Style::Yellow),
        "broken" => state.styled(Style::Red),
        _ => state,
    };
    let servers = match (report.servers, report.pending) {
        (None | Some(0), _) => "-".to_owned(),
        (Some(servers), None | Some(0)) => servers.to_string(),
        (Some(servers), Some(pending)) => format!("{servers}, {pending} pending"),
    };
    vec![
        Cell::new(report.scope),
        Cell::new(report.kind),
        state,
        Cell::new(servers),
        Cell::new(report.path.display().to_string()),
    ]
}

fn reports(config: &Config, workspace: &Workspace) -> Vec<FileReport> {
    let places = &workspace.places;
    let broken: BTreeSet<&Path> = config
        .problems
        .iter()
        .chain(config.policy.problems())
        .filter(|problem| problem.is_error() && problem.server.is_none())
        .map(|problem| &*problem.origin.file)
        .collect();
    let state = |path: &Path, exists: bool, scope: Scope, is_pending: bool| match exists {
        false => "missing",
        true if broken.contains(path) => "broken",
        true if is_pending => "pending",
        true if scope.needs_trust() => "approved",
        true => "used",
    };
    let plain = |scope: Scope, kind, path: PathBuf| {
        let exists = exists(&path);
        FileReport {
            scope: scope.as_str(),
            kind,
            state: state(&path, exists, scope, false),
            exists,
            path,
            servers: None,
            pending: None,
        }
    };
    let mut reports = vec![plain(Scope::Enterprise, "policy", places.policy())];
    if config.managed_by.is_none() {
        let managed = places.managed().into_iter();
        reports.extend(managed.map(|path| plain(Scope::Enterprise, "servers", path)));
    }
    for file in &config.files {
        let pending = n_pending(config, &file.path, file.scope);
        let kind = match file.scope {
            Scope::Plugin => "plugin",
            _ => "servers",
        };
        reports.push(FileReport {
            scope: file.scope.as_str(),
            kind,
            path: file.path.clone(),
            exists: file.exists,
            state: state(&file.path, file.exists, file.scope, pending > 0),
            servers: Some(file.servers),
            pending: file.scope.needs_trust().then_some(pending),
        });
    }
    if config.managed_by.is_none() && places.explicit.is_empty() {
        reports.push(plain(Scope::User, "plugins", places.plugins()));
    }
    for (scope, path) in places.settings_paths() {
        let is_pending = config.pending_settings.iter().any(|one| one.path == path);
        let exists = exists(&path);
        reports.push(FileReport {
            scope: scope.as_str(),
            kind: "settings",
            state: state(&path, exists, scope, is_pending),
            exists,
            path,
            servers: None,
            pending: None,
        });
    }
    reports
}

/// Whether there is anything: even what cannot be read is there.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// How many servers of a file, or of the folder of a plugin, wait for approval.
fn n_pending(config: &Config, path: &Path, scope: Scope) -> usize {
    let all = config.servers.values().flat_map(|server| {
        let others = server.others.iter().map(|(other, _)| other);
        std::iter::once(&server.winner).chain(others)
    });
    all.filter(|candidate| {
        let is_here = match &candidate.plugin {
            Some(plugin) => plugin.path == path,
            None => *candidate.found.origin.file == *path,
        };
        is_here && candidate.scope == scope && !candidate.trust.is_approved()
    })
    .count()
}

#[derive(Serialize)]
struct Checked<'a> {
    errors: usize,
    warnings: usize,
    problems: Vec<ProblemReport<'a>>,
}

fn check(workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let problems: Vec<&Problem> = config.all_problems();
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    let warnings = problems.len() - errors;
    let exit = if errors > 0 { Exit::Usage } else { Exit::Ok };
    let printer = &workspace.printer;
    if printer.json() {
        let report = Checked {
            errors,
            warnings,
            problems: problems.into_iter().map(ProblemReport::of).collect(),
        };
        return print_json(printer, &report).map(|()| exit);
    }
    for problem in &problems {
        let (word, style) = if problem.is_error() {
            ("error:", Style::Red)
        } else {
            ("warning:", Style::Yellow)
        };
        let word = printer.paint().paint(style, word);
        let line = crate::text::plain(&told(problem));
        printer.out_line(&format!("{word} {line}"))?;
    }
    let n_files = reports(config, workspace)
        .iter()
        .filter(|report| report.exists)
        .count();
    let summary = format!("{n_files} files: {errors} errors, {warnings} warnings");
    printer.note(&summary);
    Ok(exit)
}
