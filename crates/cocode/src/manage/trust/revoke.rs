//! Takes decisions back: of this work tree, or of everywhere.

use std::path::{Path, PathBuf};

use cocode_config::{Config, TrustDecision};
use serde::Serialize;

use super::{decision, is_settings, store, unusable};
use crate::args::manage::TrustArgs;
use crate::error::{CliError, Exit};
use crate::naming;
use crate::printer::print_json;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report {
    revoked: Vec<RevokedReport>,
}

#[derive(Serialize)]
struct RevokedReport {
    name: String,
    file: String,
    /// What was decided.
    decision: &'static str,
}

pub(super) fn run(
    args: &TrustArgs,
    config: &Config,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let mut store = store(workspace)?;
    for name in &args.names {
        let is_decided = store.decisions().any(|one| one.name == *name);
        if !is_decided && !config.servers.contains_key(name) && !is_settings(name) {
            let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
            return Err(naming::unknown(name, &names));
        }
    }
    let place = Place::of(config);
    let is_meant = |one: &TrustDecision<'_>| {
        let is_named = args.names.iter().any(|name| name == one.name);
        match (args.all, args.names.is_empty()) {
            (true, is_every) => is_every || is_named,
            (false, true) => place.has(one.file),
            (false, false) => is_named && (place.has(one.file) || place.has_plugin(one.file)),
        }
    };
    let mut items: Vec<(PathBuf, String)> = Vec::new();
    let mut revoked = Vec::new();
    for one in store.decisions().filter(is_meant) {
        let item = (one.file.to_owned(), one.name.to_owned());
        revoked.push(RevokedReport {
            name: item.1.clone(),
            file: item.0.display().to_string(),
            decision: decision(one.approval),
        });
        // An item may have been approved and, with another content, refused.
        if !items.contains(&item) {
            items.push(item);
        }
    }
    let n_elsewhere = store
        .decisions()
        .filter(|one| args.names.iter().any(|name| name == one.name) && !is_meant(one))
        .count();
    let edits = workspace.edits().private();
    for (file, name) in &items {
        let done = store.revoke(&edits, file, name);
        done.map_err(|error| unusable(&error))?;
    }
    let printer = &workspace.printer;
    if printer.json() {
        return print_json(printer, &Report { revoked }).map(|()| Exit::Ok);
    }
    for one in &revoked {
        let RevokedReport {
            name,
            file,
            decision,
        } = one;
        printer.note(&format!("taken back: `{name}` of {file} ({decision})"));
    }
    if revoked.is_empty() {
        printer.note("nothing was decided that could be taken back");
    }
    if n_elsewhere > 0 {
        printer.note(&format!(
            "{n_elsewhere} more of that name at other places: `--all` takes them back, too"
        ));
    }
    Ok(Exit::Ok)
}

/// Where the user is, and what is used there.
struct Place {
    tree: Option<PathBuf>,
    plugins: Vec<PathBuf>,
}

impl Place {
    fn of(config: &Config) -> Self {
        let plugins = config.plugins.iter();
        Self {
            tree: config.work_tree.as_deref().map(canonical),
            plugins: plugins.map(|plugin| canonical(&plugin.path)).collect(),
        }
    }

    /// Whether a file is of this work tree, and not of another one inside it.
    fn has(&self, file: &Path) -> bool {
        let Some(tree) = self.tree.as_deref().filter(|tree| file.starts_with(tree)) else {
            return false;
        };
        let mut inside = file
            .ancestors()
            .skip(1)
            .take_while(|directory| *directory != tree);
        !inside.any(|directory| directory.join(".git").exists())
    }

    fn has_plugin(&self, file: &Path) -> bool {
        self.plugins.iter().any(|plugin| file.starts_with(plugin))
    }
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_gone| path.to_owned())
}
