//! Switches a server on or off: in its own entry where that is the user's, else by an override in
//! the user's own scope.

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
    let Some(server) = config.servers.get(name) else {
        workspace.warn_of_files(config);
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        return Err(naming::unknown(name, &names));
    };
    let (file, changed) = match server.winner.scope {
        Scope::Enterprise => {
            let message = format!("server `{name}` is fixed by your organization");
            return Err(CliError::new(Code::BlockedByPolicy, message));
        }
        Scope::Project | Scope::Plugin => overridden(name, server, enabled, workspace)?,
        Scope::Local | Scope::User | Scope::Explicit => in_place(name, server, enabled, workspace)?,
    };
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

type Done = (std::path::PathBuf, bool);

fn in_place(
    name: &str,
    server: &Server,
    enabled: bool,
    workspace: &Workspace,
) -> Result<Done, CliError> {
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
    Ok((file, changed))
}

fn overridden(
    name: &str,
    server: &Server,
    enabled: bool,
    workspace: &Workspace,
) -> Result<Done, CliError> {
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
    Ok((file, changed))
}
