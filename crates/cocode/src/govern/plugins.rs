//! Folders that bring servers: adds them after showing what they bring, lists, removes and switches
//! them.

use std::path::Path;

use cocode_config::{
    Approval, Config, EditError, Origin, Plugin, Problem, Server, TrustContent, TrustItem,
    add_plugin, plugin_files, read_plugin, remove_plugin, set_plugin_enabled, visible,
};
use serde::Serialize;

use crate::args::govern::PluginVerb;
use crate::configured::blocked;
use crate::error::{CliError, Code, Exit};
use crate::manage::report::{ProblemReport, reason};
use crate::manage::trust;
use crate::printer::{Style, print_json};
use crate::table::{Cell, table};
use crate::text::plain;
use crate::workspace::{Workspace, with_problems};

pub(crate) fn run(verb: &PluginVerb, workspace: &Workspace) -> Result<Exit, CliError> {
    match verb {
        PluginVerb::Add { path, yes } => add(path, *yes, workspace),
        PluginVerb::List => list(workspace),
        PluginVerb::Remove { name } => remove(name, workspace),
        PluginVerb::Enable { name } => switch(name, true, workspace),
        PluginVerb::Disable { name } => switch(name, false, workspace),
    }
}

#[derive(Serialize)]
struct PluginReport<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    path: String,
    enabled: bool,
    servers: Vec<BroughtReport<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<ProblemReport<'a>>,
}

/// A server that a plugin brings.
#[derive(Serialize)]
struct BroughtReport<'a> {
    name: &'a str,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl<'a> PluginReport<'a> {
    fn of(plugin: &'a Plugin, config: &Config) -> Self {
        Self {
            name: &plugin.name,
            version: plugin.version.as_deref(),
            description: plugin.description.as_deref(),
            path: plugin.path.display().to_string(),
            enabled: plugin.enabled,
            servers: plugin
                .servers
                .iter()
                .map(|found| brought(&found.name, plugin, config))
                .collect(),
            problems: plugin.problems.iter().map(ProblemReport::of).collect(),
        }
    }
}

/// What became of a server that a plugin brings.
fn brought<'a>(name: &'a str, plugin: &Plugin, config: &Config) -> BroughtReport<'a> {
    let is_of_plugin = |server: &Server| {
        let root = server.winner.plugin.as_ref();
        root.is_some_and(|root| root.path == plugin.path)
    };
    let (state, reason) = match config.servers.get(name) {
        _ if !plugin.enabled => ("off", None),
        Some(server) if is_of_plugin(server) => (server.state.as_str(), reason(name, server)),
        Some(server) => {
            let origin = &server.winner.found.origin;
            ("not used", Some(format!("{origin} counts instead")))
        }
        None => ("not used", None),
    };
    BroughtReport {
        name,
        state,
        reason,
    }
}

/// Plugins belong to the scopes, which neither an organization that fixes all servers nor a file
/// given by `--config` leaves in force.
fn may_change(workspace: &Workspace) -> Result<&Config, CliError> {
    let config = workspace.config()?;
    if let Some(file) = &config.managed_by {
        let reason = format!(
            "all servers are fixed by your organization, in {}",
            file.display()
        );
        return Err(blocked("the plugin", &reason));
    }
    if workspace.places.explicit.is_empty() {
        return Ok(config);
    }
    let message = "plugins do not count where `--config` names the files to use";
    Err(CliError::new(Code::InvalidUsage, message).hint("leave out `--config`"))
}

fn add(path: &Path, yes: bool, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = may_change(workspace)?;
    let folder = path
        .canonicalize()
        .map_err(|error| CliError::file("find the folder", path, &error))?;
    let list = workspace.places.plugins();
    let plugin = read_plugin(&folder, Origin::file(&*list));
    is_usable(&plugin)?;
    is_new(&plugin, config)?;
    if !yes {
        ask(&plugin, workspace)?;
    }
    add_plugin(&workspace.edits(), &list, &folder).map_err(|error| not_written(&error))?;
    // Approved is what was shown, not what may be there by now.
    for found in &plugin.servers {
        let item = TrustItem {
            file: &found.origin.file,
            name: &found.name,
            content: TrustContent::Server(&found.entry),
        };
        trust::decide(&item, Some(Approval::Approved), workspace)?;
    }
    let config = workspace.reloaded();
    let added = config.plugins.iter().find(|one| one.path == folder);
    let report = PluginReport::of(added.unwrap_or(&plugin), &config);
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &report).map(|()| Exit::Ok);
    }
    let name = &plugin.name;
    printer.out_line(&plain(&format!(
        "added the plugin `{name}` of {}",
        folder.display()
    )))?;
    for server in &report.servers {
        printer.out_line(&plain(&format!("  {}", told_server(server))))?;
    }
    Ok(Exit::Ok)
}

/// A plugin that brings nothing, or something broken, is not what the user thinks it is.
fn is_usable(plugin: &Plugin) -> Result<(), CliError> {
    let of_servers = plugin.servers.iter().flat_map(|found| &found.problems);
    let errors: Vec<&Problem> = plugin
        .problems
        .iter()
        .chain(of_servers)
        .filter(|problem| problem.is_error())
        .collect();
    let folder = plugin.path.display();
    if !errors.is_empty() {
        let message = format!("{folder} is not a plugin that can be used");
        let error = CliError::new(Code::InvalidConfig, message);
        return Err(with_problems(error, &errors));
    }
    if plugin.servers.is_empty() {
        let message = format!("the plugin in {folder} brings no servers");
        return Err(CliError::new(Code::InvalidConfig, message)
            .hint("they are looked for in .mcp.toml, .mcp.json and plugin.json"));
    }
    Ok(())
}

fn is_new(plugin: &Plugin, config: &Config) -> Result<(), CliError> {
    for other in &config.plugins {
        let place = &other.origin;
        if other.path == plugin.path {
            let message = format!("the plugin `{}` is there already: {place}", other.name);
            return Err(CliError::new(Code::AlreadyThere, message)
                .hint("if it changed, `cocode mcp trust` shows how, and asks"));
        }
        if other.name == plugin.name {
            let message = format!(
                "there is another plugin with the name `{}`: {}",
                other.name,
                other.path.display()
            );
            return Err(CliError::new(Code::AlreadyThere, message)
                .hint("`cocode plugin remove` takes one away; its folder stays"));
        }
    }
    Ok(())
}

fn ask(plugin: &Plugin, workspace: &Workspace) -> Result<(), CliError> {
    let name = &plugin.name;
    if !trust::can_ask(workspace) {
        let names: Vec<&str> = plugin
            .servers
            .iter()
            .map(|found| found.name.as_str())
            .collect();
        let message = format!(
            "the plugin `{name}` brings servers that have to be approved, and nobody can be \
             asked: {}",
            names.join(", ")
        );
        return Err(CliError::new(Code::PendingTrust, message)
            .hint("`--yes` approves without asking; nothing was changed"));
    }
    let path = plugin.path.display().to_string();
    let (shown_name, path) = (visible(name), visible(&path));
    let mut shown = vec![format!("The plugin `{shown_name}` of {path} brings:")];
    for found in &plugin.servers {
        shown.push(format!("  server `{}`:", visible(&found.name)));
        shown.extend(trust::entry_lines(&found.entry, "    "));
    }
    let question = "Add it, so that they may be started? [y/N] ";
    if trust::asked(&shown, question, workspace)? == trust::Answer::Yes {
        return Ok(());
    }
    let message = format!("the plugin `{name}` was not added: you did not say yes");
    Err(CliError::new(Code::PendingTrust, message))
}

fn list(workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let printer = &workspace.printer;
    let reports: Vec<PluginReport<'_>> = config
        .plugins
        .iter()
        .map(|plugin| PluginReport::of(plugin, config))
        .collect();
    if printer.json() {
        return print_json(printer, &Listing { plugins: reports }).map(|()| Exit::Ok);
    }
    workspace.warn_of_files(config);
    if let Some(file) = &config.managed_by {
        let message = format!(
            "all servers are fixed by your organization, so that plugins do not count: {}",
            file.display()
        );
        printer.note(&message);
    }
    if reports.is_empty() {
        printer.note("no plugins are in use: `cocode plugin add FOLDER`");
        return Ok(Exit::Ok);
    }
    let rows: Vec<Vec<Cell>> = reports.iter().map(row).collect();
    let head = ["NAME", "VERSION", "STATE", "SERVERS", "FOLDER"];
    printer.out(table(&head, &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

#[derive(Serialize)]
struct Listing<'a> {
    plugins: Vec<PluginReport<'a>>,
}

fn row(report: &PluginReport<'_>) -> Vec<Cell> {
    let state = if report.enabled {
        Cell::new("enabled")
    } else {
        Cell::new("disabled").styled(Style::Dim)
    };
    let servers: Vec<String> = report
        .servers
        .iter()
        .map(|server| match server.state {
            "ready" | "off" => server.name.to_owned(),
            state => format!("{} ({state})", server.name),
        })
        .collect();
    vec![
        Cell::new(report.name).styled(Style::Bold),
        Cell::new(report.version.unwrap_or("-")),
        state,
        Cell::new(servers.join(", ")),
        Cell::new(&report.path),
    ]
}

fn told_server(server: &BroughtReport<'_>) -> String {
    let BroughtReport {
        name,
        state,
        reason,
    } = server;
    match reason {
        Some(reason) => format!("{name}: {state}, {reason}"),
        None => format!("{name}: {state}"),
    }
}

fn remove(name: &str, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = may_change(workspace)?;
    let plugin = find(name, config)?;
    let list = workspace.places.plugins();
    remove_plugin(&workspace.edits(), &list, &plugin.path).map_err(|error| not_written(&error))?;
    let mut files = plugin_files(&plugin.path);
    files.extend(
        plugin
            .servers
            .iter()
            .map(|found| found.origin.file.to_path_buf()),
    );
    let mut store = trust::store(workspace)?;
    let edits = workspace.edits().private();
    for file in files {
        let revoked = store.revoke_all(&edits, &file);
        revoked.map_err(|error| trust::unusable(&error))?;
    }
    let done = format!(
        "removed the plugin `{}`; its folder stays: {}",
        plugin.name,
        plugin.path.display()
    );
    say(plugin, None, &done, workspace)
}

fn switch(name: &str, is_enabled: bool, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = may_change(workspace)?;
    let plugin = find(name, config)?;
    let list = workspace.places.plugins();
    let changed = set_plugin_enabled(&workspace.edits(), &list, &plugin.path, is_enabled);
    let changed = changed.map_err(|error| not_written(&error))?;
    let now = match (is_enabled, changed) {
        (true, true) => "is used again",
        (true, false) => "is in use already",
        (false, true) => "is not used any more",
        (false, false) => "is not in use already",
    };
    let done = format!("the plugin `{}` {now}", plugin.name);
    say(plugin, Some(is_enabled), &done, workspace)
}

#[derive(Serialize)]
struct Done<'a> {
    name: &'a str,
    path: String,
    /// Nothing, if it is gone.
    enabled: Option<bool>,
}

fn say(
    plugin: &Plugin,
    enabled: Option<bool>,
    done: &str,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    if printer.json() {
        let report = Done {
            name: &plugin.name,
            path: plugin.path.display().to_string(),
            enabled,
        };
        print_json(printer, &report)?;
    } else {
        printer.out_line(&plain(done))?;
    }
    Ok(Exit::Ok)
}

/// The plugin of this name, or in this folder.
fn find<'a>(given: &str, config: &'a Config) -> Result<&'a Plugin, CliError> {
    let folder = Path::new(given);
    let canonical = folder.canonicalize().ok();
    let by_folder = config
        .plugins
        .iter()
        .find(|plugin| plugin.path == folder || Some(&plugin.path) == canonical.as_ref());
    let mut named = config.plugins.iter().filter(|plugin| plugin.name == given);
    match (named.next(), named.next(), by_folder) {
        (Some(plugin), None, _) | (None, _, Some(plugin)) => Ok(plugin),
        (Some(first), Some(second), _) => {
            let message = format!("there are two plugins with the name `{}`", plain(given));
            let folders = format!("{} or {}", first.path.display(), second.path.display());
            Err(CliError::new(Code::InvalidUsage, message)
                .hint(format!("give the folder instead: {folders}")))
        }
        (None, _, None) => {
            let message = format!("there is no plugin `{}`", plain(given));
            let error = CliError::new(Code::InvalidUsage, message);
            let names: Vec<&str> = config.plugins.iter().map(|one| one.name.as_str()).collect();
            Err(if names.is_empty() {
                error.hint("no plugins were added yet: `cocode plugin add FOLDER`")
            } else {
                error.hint(format!("there are: {}", names.join(", ")))
            })
        }
    }
}

fn not_written(error: &EditError) -> CliError {
    CliError::new(Code::FileError, "the list of plugins could not be changed").because(error)
}
