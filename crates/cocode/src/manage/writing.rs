//! Writes servers into the files of scopes: whether they may be added, where they go, and what to say
//! about them afterwards.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cocode_config::{
    Config, EditContext, EditError, Entry, IfExists, Scope, State, Text, add_server, check_entry,
    format_of, variables_of,
};
use cocode_core::ServerName;

use super::exchange::plain_secrets;
use super::trust;
use crate::configured::blocked;
use crate::environment::text_variable;
use crate::error::{CliError, Code};
use crate::text::plain;
use crate::workspace::Workspace;

/// A server that was written.
#[derive(Debug)]
pub(crate) struct Added {
    /// Whose it is.
    pub(crate) scope: Scope,
    /// Where it stands.
    pub(crate) file: PathBuf,
    /// What whoever wrote it should know.
    pub(crate) warnings: Vec<String>,
}

/// Writes a server into the file of a scope, and approves it where that is needed.
pub(crate) fn write(
    name: &str,
    entry: &Entry,
    scope: Scope,
    force: bool,
    workspace: &Workspace,
) -> Result<Added, CliError> {
    let config = workspace.config()?;
    let warnings = may_add(name, entry, config)?;
    let places = &workspace.places;
    let scope = if places.explicit.is_empty() {
        scope
    } else {
        Scope::Explicit
    };
    let Some(file) = places.servers_file(scope) else {
        let message = format!("the {scope} scope has no file here");
        return Err(CliError::new(Code::FileError, message)
            .hint("the directory you are in is gone; `--scope user` works everywhere"));
    };
    let if_exists = if force {
        IfExists::Replace
    } else {
        IfExists::Fail
    };
    let edits = edits_of(scope, workspace);
    let written = add_server(&edits, &file, format_of(&file), name, entry, if_exists);
    written.map_err(|error| not_written(&error))?;
    if scope.needs_trust() {
        trust::approve_written(&file, name, entry, workspace)?;
    }
    Ok(Added {
        scope,
        file,
        warnings,
    })
}

/// What edits of files of a scope need. Those of a work tree stay in it, whatever links it has.
pub(crate) fn edits_of(scope: Scope, workspace: &Workspace) -> EditContext {
    let edits = workspace.edits();
    match (scope, workspace.places.work_tree()) {
        (Scope::Local | Scope::Project, Some(tree)) => edits.within(tree),
        _ => edits,
    }
}

/// An edit that could not be made.
pub(crate) fn not_written(error: &EditError) -> CliError {
    let code = match error {
        EditError::Exists { .. } => Code::AlreadyThere,
        EditError::NoServer { .. } => Code::UnknownServer,
        _ => Code::FileError,
    };
    let mut told = CliError::new(code, error.to_string());
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        told.causes.push(cause.to_string());
        source = cause.source();
    }
    told.hints.extend(error.hint().map(str::to_owned));
    match code {
        Code::AlreadyThere => told.hint("`--force` replaces it"),
        _ => told,
    }
}

/// Whether a server may be added at all: a name that can be one, an entry that is in order, and an
/// organization that has nothing against it. Gives what is to be known nevertheless.
fn may_add(name: &str, entry: &Entry, config: &Config) -> Result<Vec<String>, CliError> {
    let what = format!("server `{}`", plain(name));
    name.parse::<ServerName>().map_err(|error| {
        CliError::new(Code::InvalidUsage, "this cannot be the name of a server").because(&error)
    })?;
    if let Some(file) = &config.managed_by {
        let file = file.display();
        let reason = format!("all servers are fixed by your organization, in {file}");
        return Err(blocked(&what, &reason));
    }
    let unset = RefCell::new(BTreeSet::new());
    let lookup = |variable: &str| {
        let value = text_variable(variable);
        if value.is_none() {
            unset.borrow_mut().insert(variable.to_owned());
        }
        value
    };
    match check_entry(name, entry, &lookup) {
        Ok(spec) => match config.refuses_unlisted(&spec) {
            Some(reason) => Err(blocked(&what, &reason)),
            None => Ok(Vec::new()),
        },
        // A variable may be set when the server is used. All is checked again then.
        Err(_) if lacks_only_variables(name, entry) => {
            let needed = needed_variables(entry);
            let unset = unset.into_inner();
            let missing = needed.intersection(&unset);
            let warnings = missing.map(|variable| {
                format!("{what} needs the variable `{variable}`, which is not set")
            });
            Ok(warnings.collect())
        }
        Err(problems) => {
            let mut error = CliError::new(
                Code::InvalidUsage,
                format!("{what} cannot be added as it is given"),
            );
            for problem in &problems {
                let key = problem.key.as_deref().unwrap_or_default();
                error.causes.push(format!("`{key}`: {}", problem.message));
                error.hints.extend(problem.hint.clone());
            }
            Err(error)
        }
    }
}

/// What a variable that is not set may turn out to be: where one of these would be in order
/// everywhere, nothing else is wrong.
const POSSIBLE_VALUES: [&str; 6] = [
    "1",
    "/x",
    "https://host.invalid/",
    "ws://host.invalid/",
    "unix:///x",
    "http",
];

/// Whether variables that are not set here are all that is wrong with an entry.
pub(super) fn lacks_only_variables(name: &str, entry: &Entry) -> bool {
    POSSIBLE_VALUES.iter().any(|possible| {
        let lookup =
            |variable: &str| text_variable(variable).or_else(|| Some((*possible).to_owned()));
        check_entry(name, entry, &lookup).is_ok()
    })
}

/// The variables that have no default somewhere in an entry.
fn needed_variables(entry: &Entry) -> BTreeSet<String> {
    let values = entry.env.values().chain(entry.headers.values());
    let values = values.map(|Text(value)| value);
    let texts = entry.command.iter().chain(&entry.args).chain(&entry.cwd);
    let texts = texts.chain(&entry.url).chain(values);
    texts
        .flat_map(|text| variables_of(text))
        .filter(|(_, has_default)| !has_default)
        .map(|(variable, _)| variable)
        .collect()
}

/// Says so if another scope has a server of this name that counts more.
pub(super) fn warn_if_not_used(name: &str, scope: Scope, workspace: &Workspace) {
    let config = workspace.reloaded();
    let Some(server) = config.servers.get(name) else {
        workspace
            .printer
            .warn("the server was written, but is not found again");
        return;
    };
    if workspace.places.explicit.is_empty() && server.winner.scope != scope {
        let message = format!(
            "the {} scope has a server `{name}` too, which counts more: {}",
            server.winner.scope, server.winner.found.origin
        );
        workspace.printer.warn(&message);
    } else if matches!(server.state, State::Invalid(_)) {
        // Only for want of a variable, which was said before anything was written.
    } else if let Some(reason) = super::report::reason(name, server) {
        let state = server.state.as_str();
        workspace
            .printer
            .warn(&format!("`{name}` is {state}: {reason}"));
    }
}

/// A value that looks like a secret should not be in a file for everybody to read.
pub(super) fn warn_of_plain_secrets(entry: &Entry, workspace: &Workspace) {
    if let Some(key) = plain_secrets(entry).first() {
        let message = format!(
            "the value of `{key}` is in the file as plain text; `cocode secret set NAME` and \
             `keyring:NAME`, or `${{VAR}}`, keep it out"
        );
        workspace.printer.warn(&message);
    }
}

/// The local file is for one user alone, and git should not have it.
pub(super) fn mention_ignoring(file: &Path, workspace: &Workspace) {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return;
    };
    let name = name.to_string_lossy();
    let is_mentioned = |list: &str| {
        let text = std::fs::read_to_string(directory.join(list)).unwrap_or_default();
        text.lines()
            .any(|line| line.trim().trim_start_matches('/') == name)
    };
    let is_repository = directory.join(".git").exists();
    if is_repository && !is_mentioned(".gitignore") && !is_mentioned(".git/info/exclude") {
        let message = format!("`{name}` is for you alone: add it to .gitignore");
        workspace.printer.note(&message);
    }
}

pub(super) fn looks_secret(key: &str) -> bool {
    let key = key.to_lowercase();
    let words = [
        "token",
        "secret",
        "password",
        "key",
        "authorization",
        "credential",
    ];
    words.iter().any(|word| key.contains(word))
}
