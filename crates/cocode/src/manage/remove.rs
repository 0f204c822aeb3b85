//! Removes a server from the scope that has it.

use std::path::PathBuf;

use cocode_config::{Candidate, Scope, format_of, remove_server};
use serde::Serialize;

use super::trust;
use super::writing::{edits_of, not_written};
use crate::args::manage::RemoveArgs;
use crate::error::{CliError, Code, Exit};
use crate::naming;
use crate::printer::print_json;
use crate::text::plain;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    scope: &'static str,
    file: String,
}

pub(crate) fn run(args: &RemoveArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let name = args.name.as_str();
    if !config.servers.contains_key(name) {
        workspace.warn_of_files(config);
    }
    let Removed { scope, file } = take_out(name, args.scope.map(Scope::from), workspace)?;
    let printer = &workspace.printer;
    if printer.json() {
        let report = Report {
            name,
            scope: scope.as_str(),
            file: file.display().to_string(),
        };
        print_json(printer, &report)?;
    } else {
        let file = file.display();
        printer.out_line(&plain(&format!(
            "removed `{name}` from the {scope} scope, in {file}"
        )))?;
    }
    if let Some(left) = workspace.reloaded().servers.get(name) {
        let origin = &left.winner.found.origin;
        printer.note(&format!("there is still a server `{name}` in {origin}"));
    }
    Ok(Exit::Ok)
}

/// A server that was taken out of a file.
#[derive(Debug)]
pub(crate) struct Removed {
    /// Whose it was.
    pub(crate) scope: Scope,
    /// Where it stood.
    pub(crate) file: PathBuf,
}

/// Takes a server out of the file that has it: that of the given scope, or the only one.
pub(crate) fn take_out(
    name: &str,
    scope: Option<Scope>,
    workspace: &Workspace,
) -> Result<Removed, CliError> {
    let config = workspace.config()?;
    let Some(server) = config.servers.get(name) else {
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        return Err(naming::unknown(name, &names));
    };
    let others = server.others.iter().map(|(other, _)| other);
    let candidates: Vec<&Candidate> = std::iter::once(&server.winner).chain(others).collect();
    let matching: Vec<&Candidate> = candidates
        .iter()
        .copied()
        .filter(|candidate| scope.is_none_or(|scope| scope == candidate.scope))
        .collect();
    let candidate = match matching.as_slice() {
        [only] => *only,
        [] => {
            let message = format!("the {} scope has no server `{name}`", described(scope));
            return Err(CliError::new(Code::UnknownServer, message).hint(whereabouts(&candidates)));
        }
        // Two files of one scope: the one that counts goes first.
        [first, ..] if scope.is_some() => *first,
        _ => {
            let message = format!("several scopes have a server `{name}`");
            return Err(CliError::new(Code::InvalidUsage, message)
                .hint(whereabouts(&candidates))
                .hint("`--scope` says which one is meant"));
        }
    };
    if matches!(candidate.scope, Scope::Enterprise | Scope::Plugin) {
        let message = format!(
            "server `{name}` comes from the {} scope, which is not yours to change",
            candidate.scope
        );
        let hint = match candidate.scope {
            Scope::Plugin => {
                format!("`cocode mcp disable {name}`, or `cocode plugin remove` the plugin")
            }
            _ => "ask whoever looks after this machine".to_owned(),
        };
        return Err(CliError::new(Code::InvalidUsage, message).hint(hint));
    }
    let file = &*candidate.found.origin.file;
    let removed = remove_server(
        &edits_of(candidate.scope, workspace),
        file,
        format_of(file),
        name,
    );
    removed.map_err(|error| not_written(&error))?;
    if candidate.scope.needs_trust() {
        trust::forget(file, name, workspace)?;
    }
    Ok(Removed {
        scope: candidate.scope,
        file: file.to_owned(),
    })
}

fn described(scope: Option<Scope>) -> &'static str {
    scope.map_or("given", Scope::as_str)
}

fn whereabouts(candidates: &[&Candidate]) -> String {
    let all: Vec<String> = candidates
        .iter()
        .map(|candidate| format!("{} ({})", candidate.found.origin, candidate.scope))
        .collect();
    format!("it is in {}", all.join(", "))
}
