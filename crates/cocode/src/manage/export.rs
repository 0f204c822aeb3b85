//! Writes servers into the file of another tool, and brings back what it was. Shows what would be
//! done, and does it when told to.

mod gateway;

use std::path::{Path, PathBuf};

use cocode_config::{
    Config, EditError, PRIVATE_MODE, Place, PlaceScope, Scope, Tool, with_lock, write_atomically,
};
use serde::Serialize;

use super::exchange::backup::{Backups, Kind, cannot_write};
use super::exchange::select::{Action, Plan, Row, plan, select};
use super::exchange::{homes, is_in_work_tree, n_servers, read_text, real_path, tool};
use super::writing::{edits_of, not_written};
use crate::args::manage::ExportArgs;
use crate::error::{CliError, Code, Exit};
use crate::naming;
use crate::printer::{Style, print_json};
use crate::table::{Cell, table};
use crate::workspace::{Workspace, with_problems};

pub(crate) fn run(args: &ExportArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let Some(word) = &args.to else {
        let url = args.gateway.as_deref().unwrap_or_default();
        return gateway::print_lines(url, &workspace.printer).map(|()| Exit::Ok);
    };
    let tool = tool(word)?;
    let place = place(args, tool, workspace)?;
    if let Some(url) = args.gateway.as_ref().filter(|_| !args.write) {
        return gateway::print(url, tool, &place, &workspace.printer).map(|()| Exit::Ok);
    }
    if args.undo {
        return locked(args, &place, workspace, || {
            undo(args, tool, &place, workspace)
        });
    }
    let config = workspace.config()?;
    workspace.warn_of_files(config);
    for name in &args.only {
        if !config.servers.contains_key(name) {
            let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
            return Err(naming::unknown(name, &names));
        }
    }
    let (rows, backup) = if args.write {
        locked(args, &place, workspace, || {
            write(args, tool, &place, config, workspace)
        })?
    } else {
        let text = text_of(&place.path)?;
        let rows = rows(args, config, &place)?;
        let planned = plan(tool, &place, text.as_deref(), rows, args.force)?;
        (planned.rows, None)
    };
    let shown = Shown {
        args,
        tool,
        place: &place,
        rows: &rows,
        backup,
    };
    shown.print(config, workspace)?;
    Ok(exit(args, &rows))
}

/// What goes to the tool: the gateway, or our servers.
fn rows(args: &ExportArgs, config: &Config, place: &Place) -> Result<Vec<Row>, CliError> {
    match &args.gateway {
        Some(url) => gateway::row(url).map(|row| vec![row]),
        None => Ok(select(config, &args.only, place)),
    }
}

/// Servers that were asked for by name and did not go along are a failure, as are those that the
/// tool has otherwise.
fn exit(args: &ExportArgs, rows: &[Row]) -> Exit {
    let has = |wanted: Action| rows.iter().any(|row| row.action == wanted);
    let is_named = !args.only.is_empty();
    if !args.write {
        Exit::Ok
    } else if is_named && has(Action::Withheld) {
        Exit::Blocked
    } else if has(Action::Differs) || (is_named && has(Action::LeftOut)) {
        Exit::Usage
    } else {
        Exit::Ok
    }
}

/// The file to write: the first of its kind that exists, or else the first.
fn place(args: &ExportArgs, tool: Tool, workspace: &Workspace) -> Result<Place, CliError> {
    if let Some(file) = &args.file {
        let directory = workspace.places.directory.as_deref();
        let path = directory.map_or_else(|| file.clone(), |directory| directory.join(file));
        return Ok(Place {
            path,
            scope: PlaceScope::User,
            project: workspace.places.work_tree(),
        });
    }
    let mut places = tool.places(&homes(workspace)?);
    let has_user = places.iter().any(|place| place.scope == PlaceScope::User);
    let wanted = if args.project || !has_user {
        PlaceScope::Project
    } else {
        PlaceScope::User
    };
    places.retain(|place| place.scope == wanted);
    let at = places.iter().position(|place| place.path.exists());
    let at = at.unwrap_or(0);
    if at < places.len() {
        return Ok(places.swap_remove(at));
    }
    let message = format!(
        "{} has no file for the {} scope here",
        tool.title(),
        wanted.as_str()
    );
    Err(CliError::new(Code::InvalidUsage, message).hint("name a file with --file"))
}

/// Does something while no other process of ours does it to the same file.
fn locked<T>(
    args: &ExportArgs,
    place: &Place,
    workspace: &Workspace,
    work: impl FnOnce() -> Result<T, CliError>,
) -> Result<T, CliError> {
    let file = &place.path;
    let is_named_in_tree = args.file.is_some() && is_in_work_tree(file, workspace);
    let scope = if place.scope == PlaceScope::Project || is_named_in_tree {
        Scope::Project
    } else {
        Scope::User
    };
    let edits = edits_of(scope, workspace);
    let done = with_lock(&edits, file, || Ok::<_, EditError>(work()));
    done.map_err(|error| not_written(&error))?
}

fn text_of(file: &Path) -> Result<Option<String>, CliError> {
    read_text(file).map_err(|problem| {
        let error = CliError::new(Code::FileError, "the file cannot be used");
        with_problems(error, &[&problem])
    })
}

type Written = (Vec<Row>, Option<PathBuf>);

fn write(
    args: &ExportArgs,
    tool: Tool,
    place: &Place,
    config: &Config,
    workspace: &Workspace,
) -> Result<Written, CliError> {
    let before = text_of(&place.path)?;
    let rows = rows(args, config, place)?;
    let Plan { rows, text } = plan(tool, place, before.as_deref(), rows, args.force)?;
    let Some(after) = text.filter(|after| before.as_ref() != Some(after)) else {
        return Ok((rows, None));
    };
    let backups = Backups::new(workspace.places.backups());
    let file = one_path(&place.path);
    let backup = backups.save(Kind::Export, tool, &file, before.as_deref(), Some(&after))?;
    // A file of one user may hold secrets; one of a project is for everybody.
    let mode = (place.scope == PlaceScope::User).then_some(PRIVATE_MODE);
    if let Err(error) = write_atomically(&place.path, after.as_bytes(), mode) {
        backup.discard()?;
        return Err(cannot_write(error));
    }
    Ok((rows, Some(backup.directory)))
}

/// One path for a file, whether it exists or not; its directory does.
fn one_path(file: &Path) -> PathBuf {
    match (file.exists(), file.parent(), file.file_name()) {
        (false, Some(directory), Some(name)) => real_path(directory).join(name),
        _ => real_path(file),
    }
}

#[derive(Serialize)]
struct UndoReport {
    tool: String,
    file: String,
    /// Whether the file is there again, or gone again.
    exists: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

fn undo(
    args: &ExportArgs,
    tool: Tool,
    place: &Place,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let backups = Backups::new(workspace.places.backups());
    let file = one_path(&place.path);
    let Some(backup) = backups.last(&file)? else {
        let message = format!("there is no export to {} to undo", file.display());
        return Err(CliError::new(Code::FileError, message)
            .hint("--file and --project choose another file"));
    };
    let (current, after, before) = (text_of(&file)?, backup.after()?, backup.before()?);
    let mut kept = None;
    if current != after {
        if !args.force {
            let message = format!("{} changed since the export", file.display());
            return Err(CliError::new(Code::FileError, message)
                .hint("`--force` brings back what was before, and keeps a copy of what is now"));
        }
        if current.is_some() {
            let saved = backups.save(Kind::Undo, tool, &file, current.as_deref(), None)?;
            kept = Some(saved.directory.join("before"));
        }
    }
    match &before {
        Some(before) => {
            write_atomically(&file, before.as_bytes(), Some(PRIVATE_MODE)).map_err(cannot_write)?;
        }
        None if current.is_some() => {
            let removed = std::fs::remove_file(&file);
            removed.map_err(|error| CliError::file("remove", &file, &error))?;
        }
        None => {}
    }
    let report = UndoReport {
        tool: backup.tool().to_owned(),
        file: file.display().to_string(),
        exists: before.is_some(),
        kept: kept.map(|kept| kept.display().to_string()),
    };
    backup.discard()?;
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &report).map(|()| Exit::Ok);
    }
    let what = if report.exists {
        "is as it was before the last export"
    } else {
        "is gone, as it was before the last export"
    };
    printer.out_line(&crate::text::plain(&format!("{} {what}", report.file)))?;
    if let Some(kept) = &report.kept {
        printer.note(&format!("what it was until now is in {kept}"));
    }
    Ok(Exit::Ok)
}

/// What there is to show about an export.
struct Shown<'a> {
    args: &'a ExportArgs,
    tool: Tool,
    place: &'a Place,
    rows: &'a [Row],
    backup: Option<PathBuf>,
}

#[derive(Serialize)]
struct Report<'a> {
    tool: &'static str,
    file: String,
    written: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    backup: Option<String>,
    servers: Vec<RowReport<'a>>,
}

#[derive(Serialize)]
struct RowReport<'a> {
    name: &'a str,
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    server: String,
    notes: &'a [String],
}

impl Shown<'_> {
    fn print(&self, config: &Config, workspace: &Workspace) -> Result<(), CliError> {
        let printer = &workspace.printer;
        if printer.json() {
            return print_json(printer, &self.report());
        }
        for row in self.rows {
            for note in &row.notes {
                printer.warn(&format!("`{}`: {note}", row.name));
            }
        }
        if self.rows.is_empty() {
            printer.note("no servers are configured, so there is nothing to export");
            return Ok(());
        }
        let file = self.place.path.display();
        printer.note(&format!("{}: {file}", self.tool.title()));
        let cells: Vec<Vec<Cell>> = self.rows.iter().map(cells).collect();
        printer.out(table(
            &["", "NAME", "WHAT", "SERVER"],
            &cells,
            printer.paint(),
        ))?;
        let n_waiting = self.rows.iter().filter(|row| row.action.writes()).count();
        printer.note(&match &self.backup {
            Some(_) => format!(
                "written: {}; `--undo` instead of `--write` takes it back",
                n_servers(n_waiting)
            ),
            None if n_waiting == 0 => "there is nothing to write".to_owned(),
            None => format!(
                "nothing was written yet: `--write` writes {}",
                n_servers(n_waiting)
            ),
        });
        let real = real_path(&self.place.path);
        let mut files = config.files.iter();
        if self.backup.is_some() && files.any(|file| real_path(&file.path) == real) {
            printer.note("cocode reads this file too: `cocode mcp trust` approves what is in it");
        }
        Ok(())
    }

    fn report(&self) -> Report<'_> {
        Report {
            tool: self.tool.id(),
            file: self.place.path.display().to_string(),
            written: self.args.write,
            backup: self.backup.as_ref().map(|path| path.display().to_string()),
            servers: self
                .rows
                .iter()
                .map(|row| RowReport {
                    name: &row.name,
                    action: row.action.as_str(),
                    reason: row.reason.as_deref(),
                    server: row.entry.summary(),
                    notes: &row.notes,
                })
                .collect(),
        }
    }
}

fn cells(row: &Row) -> Vec<Cell> {
    let style = match row.action {
        Action::Add | Action::Replace => Style::Bold,
        Action::Same => Style::Dim,
        Action::Differs | Action::Withheld | Action::LeftOut => Style::Yellow,
    };
    let summary = row.entry.summary();
    let server = match &row.reason {
        Some(reason) => format!("{summary}  ({reason})"),
        None => summary,
    };
    vec![
        Cell::new(row.action.sign()).styled(style),
        Cell::new(&row.name),
        Cell::new(row.action.as_str()).styled(style),
        Cell::new(server),
    ]
}
