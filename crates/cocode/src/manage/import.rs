//! Takes over servers of other tools. Shows what would be done, and does it when told to.

use std::collections::BTreeMap;
use std::path::Path;

use cocode_config::{IfExists, Scope, add_server, format_of};
use serde::Serialize;

use super::exchange::gather::{Action, Gathered, Row, gather};
use super::exchange::{n_servers, provenance};
use super::report::{ProblemReport, transport};
use super::trust;
use super::writing::{edits_of, not_written};
use crate::args::manage::ImportArgs;
use crate::error::{CliError, Exit};
use crate::naming;
use crate::printer::{Style, print_json};
use crate::table::{Cell, table};
use crate::workspace::Workspace;

pub(crate) fn run(args: &ImportArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    workspace.warn_of_files(config);
    let mut gathered = gather(args, config, workspace)?;
    let names: Vec<&str> = gathered.rows.iter().map(|row| row.name.as_str()).collect();
    for name in &args.only {
        if !names.contains(&name.as_str()) {
            return Err(not_found(name, args, workspace));
        }
    }
    let n_written = if args.write {
        write(&mut gathered, workspace)?
    } else {
        0
    };
    show(args, &gathered, n_written, workspace)?;
    Ok(exit(args, &gathered))
}

/// Blocked servers and servers that were not written are failures of a run that should write.
fn exit(args: &ImportArgs, gathered: &Gathered) -> Exit {
    let has = |wanted: &[Action]| gathered.rows.iter().any(|row| wanted.contains(&row.action));
    if !args.write {
        Exit::Ok
    } else if has(&[Action::Blocked]) {
        Exit::Blocked
    } else if has(&[Action::Differs, Action::Unnamed, Action::Failed]) {
        Exit::Usage
    } else {
        Exit::Ok
    }
}

fn not_found(name: &str, args: &ImportArgs, workspace: &Workspace) -> CliError {
    let all = ImportArgs {
        from: args.from.clone(),
        file: args.file.clone(),
        only: Vec::new(),
        scope: args.scope,
        write: false,
        force: false,
    };
    let config = workspace.config();
    match config.and_then(|config| gather(&all, config, workspace)) {
        Ok(gathered) => {
            let names: Vec<&str> = gathered.rows.iter().map(|row| row.name.as_str()).collect();
            naming::unknown(name, &names)
        }
        Err(error) => error,
    }
}

/// Writes what can be written, one by one: what fails does not stop the rest.
fn write(gathered: &mut Gathered, workspace: &Workspace) -> Result<usize, CliError> {
    for row in &mut gathered.rows {
        if let (true, Some((scope, file))) = (row.action.writes(), row.target.clone())
            && let Err(error) = write_one(row, scope, &file, workspace)
        {
            let causes = error.causes.iter().map(|cause| format!(": {cause}"));
            let reason = std::iter::once(error.message.clone()).chain(causes);
            row.reason = Some(reason.collect());
            row.action = Action::Failed;
        }
    }
    let mut by_file: BTreeMap<(&Path, Scope), Vec<(&str, String)>> = BTreeMap::new();
    let mut n_written = 0;
    for row in gathered.rows.iter().filter(|row| row.action.writes()) {
        if let Some((scope, file)) = &row.target {
            n_written += 1;
            let from = format!("{}, {}", row.tool, row.origin.file.display());
            let servers = by_file.entry((file, *scope)).or_default();
            servers.push((&row.name, from));
        }
    }
    for ((file, scope), servers) in by_file {
        provenance::keep(file, &servers, &edits_of(scope, workspace), workspace)?;
    }
    Ok(n_written)
}

fn write_one(row: &Row, scope: Scope, file: &Path, workspace: &Workspace) -> Result<(), CliError> {
    let if_exists = if row.action == Action::Replace {
        IfExists::Replace
    } else {
        IfExists::Fail
    };
    let Row { name, entry, .. } = row;
    let edits = edits_of(scope, workspace);
    let written = add_server(&edits, file, format_of(file), name, entry, if_exists);
    written.map_err(|error| not_written(&error))?;
    // What came with the work tree has yet to be approved, in whatever file it is.
    if scope.needs_trust() && row.is_own {
        trust::approve_written(file, name, entry, workspace)?;
    }
    Ok(())
}

#[derive(Serialize)]
struct Report<'a> {
    written: bool,
    servers: Vec<RowReport<'a>>,
    files: Vec<FileReport>,
    problems: Vec<ProblemReport<'a>>,
}

#[derive(Serialize)]
struct FileReport {
    tool: &'static str,
    file: String,
}

#[derive(Serialize)]
struct RowReport<'a> {
    name: &'a str,
    action: &'static str,
    written: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    tool: &'static str,
    file: String,
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    transport: &'static str,
    server: String,
    notes: &'a [String],
}

fn show(
    args: &ImportArgs,
    gathered: &Gathered,
    n_written: usize,
    workspace: &Workspace,
) -> Result<(), CliError> {
    let printer = &workspace.printer;
    let Gathered {
        rows,
        problems,
        files,
    } = gathered;
    if printer.json() {
        let report = Report {
            written: args.write,
            servers: rows.iter().map(|row| row_report(row, args.write)).collect(),
            files: files
                .iter()
                .map(|(tool, file)| FileReport {
                    tool: tool.id(),
                    file: file.display().to_string(),
                })
                .collect(),
            problems: problems.iter().map(ProblemReport::of).collect(),
        };
        return print_json(printer, &report);
    }
    for problem in problems {
        workspace.warn(problem);
    }
    for row in rows {
        for note in &row.notes {
            printer.warn(&format!("`{}` of {}: {note}", row.name, row.origin));
        }
    }
    if rows.is_empty() {
        printer.note("no servers of other tools were found");
        return Ok(());
    }
    let cells: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    let head = ["WHAT", "NAME", "FROM", "TO", "SERVER"];
    printer.out(table(&head, &cells, printer.paint()))?;
    let n_waiting = rows.iter().filter(|row| row.action.writes()).count();
    let message = if args.write {
        let pending = rows.iter().any(|row| {
            let needs_trust = |(scope, _): &(Scope, _)| scope.needs_trust();
            row.action.writes() && !row.is_own && row.target.as_ref().is_some_and(needs_trust)
        });
        let hint = if pending {
            "; those of the work tree wait for `cocode mcp trust`"
        } else {
            ""
        };
        format!("written: {}{hint}", n_servers(n_written))
    } else if n_waiting == 0 {
        "nothing would be written".to_owned()
    } else {
        format!(
            "nothing was written yet: `--write` writes {}",
            n_servers(n_waiting)
        )
    };
    printer.note(&message);
    Ok(())
}

fn row_report(row: &Row, is_written: bool) -> RowReport<'_> {
    RowReport {
        name: &row.name,
        action: row.action.as_str(),
        written: is_written && row.action.writes(),
        reason: row.reason.as_deref(),
        tool: row.tool.id(),
        file: row.origin.file.display().to_string(),
        line: row.origin.line,
        scope: row.target.as_ref().map(|(scope, _)| scope.as_str()),
        target: row
            .target
            .as_ref()
            .map(|(_, file)| file.display().to_string()),
        transport: transport(&row.entry),
        server: row.entry.summary(),
        notes: &row.notes,
    }
}

fn cells(row: &Row) -> Vec<Cell> {
    let action = Cell::new(row.action.as_str());
    let action = match row.action {
        Action::Add | Action::Replace => action.styled(Style::Bold),
        Action::Same | Action::Duplicate | Action::InUse | Action::Itself => {
            action.styled(Style::Dim)
        }
        Action::Differs | Action::Unnamed => action.styled(Style::Yellow),
        Action::Blocked | Action::Broken | Action::Failed => action.styled(Style::Red),
    };
    let target = match &row.target {
        Some((scope, file)) => format!("{scope}, {}", file.display()),
        None => String::new(),
    };
    let summary = row.entry.summary();
    let server = match &row.reason {
        Some(reason) if summary.is_empty() => reason.clone(),
        Some(reason) => format!("{summary}  ({reason})"),
        None => summary,
    };
    vec![
        action,
        Cell::new(&row.name),
        Cell::new(format!("{} {}", row.tool, row.origin)),
        Cell::new(target),
        Cell::new(server),
    ]
}
