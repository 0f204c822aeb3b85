//! Switches a server on or off: in its own entry where that is the user's, else by an override in
//! the user's own scope.

use std::path::PathBuf;

use cocode_config::{OverrideKey, Scope, Server, format_of, set_enabled, set_override};
use serde::Serialize;

use super::writing::{edits_of, not_written};
use super::{report, trust};
use crate::args::manage::EnableArgs;
use crate::error::{CliError, Code, Exit};
use crate::naming;
use crate::printer::print_json;
use crate::text::plain;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    enabled: bool,
    changed: bool,
    file: String,
}

pub(crate) fn run(
    args: &EnableArgs,
    enabled: bool,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let name = args.name.as_str();
    if !config.servers.contains_key(name) {
        workspace.warn_of_files(config);
    }
    let Switched { file, changed } = switch(name, enabled, workspace)?;
    let printer = &workspace.printer;
    if printer.json() {
        let report = Report {
            name,
            enabled,
            changed,
            file: file.display().to_string(),
        };
        print_json(printer, &report)?;
    } else {
        let what = if enabled { "on" } else { "off" };
        let file = file.display();
        let message = if changed {
            format!("switched `{name}` {what}, in {file}")
        } else {
            format!("`{name}` was {what} already")
        };
        printer.out_line(&plain(&message))?;
    }
    let config = workspace.reloaded();
    if let (true, Some(server)) = (enabled, config.servers.get(name))
        && let Some(reason) = report::reason(name, server)
    {
        let state = server.state.as_str();
        printer.warn(&format!("`{name}` is still {state}: {reason}"));
    }
    Ok(Exit::Ok)
}

/// What came of switching a server on or off.
#[derive(Debug)]
pub(crate) struct Switched {
    /// The file that says it.
    pub(crate) file: PathBuf,
    /// Whether it was the other way before.
    pub(crate) changed: bool,
}

/// Switches a server on or off, in the file where that belongs.
pub(crate) fn switch(
    name: &str,
    enabled: bool,
    workspace: &Workspace,
) -> Result<Switched, CliError> {
    let config = workspace.config()?;
    let Some(server) = config.servers.get(name) else {
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        return Err(naming::unknown(name, &names));
    };
    match server.winner.scope {
        Scope::Enterprise => {
            let message = format!("server `{name}` is fixed by your organization");
            Err(CliError::new(Code::BlockedByPolicy, message))
        }
        Scope::Project | Scope::Plugin => overridden(name, server, enabled, workspace),
        Scope::Local | Scope::User | Scope::Explicit => in_place(name, server, enabled, workspace),
    }
}

fn in_place(
    name: &str,
    server: &Server,
    enabled: bool,
    workspace: &Workspace,
) -> Result<Switched, CliError> {
    let found = &server.winner.found;
    let file = found.origin.file.to_path_buf();
    let format = format_of(&file);
    let edits = edits_of(server.winner.scope, workspace);
    let changed = set_enabled(&edits, &file, format, name, enabled);
    let changed = changed.map_err(|error| not_written(&error))?;
    // What was approved before stays approved with the one thing that we changed.
    if changed && server.winner.scope.needs_trust() && server.winner.trust.is_approved() {
        let mut entry = found.entry.clone();
        entry.enabled = (!enabled).then_some(false);
        trust::approve_written(&file, name, &entry, workspace)?;
    }
    Ok(Switched { file, changed })
}

fn overridden(
    name: &str,
    server: &Server,
    enabled: bool,
    workspace: &Workspace,
) -> Result<Switched, CliError> {
    let file = workspace.places.user_servers();
    let plugin = server.winner.plugin.as_ref();
    let key = OverrideKey {
        server: name.to_owned(),
        project: match plugin {
            Some(_) => None,
            None => workspace.config()?.work_tree.clone(),
        },
        plugin: plugin.map(|plugin| plugin.name.clone()),
    };
    // What the entry says anyway needs no override.
    let by_itself = server.winner.found.entry.enabled.unwrap_or(true);
    let wanted = (by_itself != enabled).then_some(enabled);
    let changed = set_override(&workspace.edits(), &file, &key, wanted);
    let changed = changed.map_err(|error| not_written(&error))?;
    Ok(Switched { file, changed })
}
