//! Reads the files of the scopes, each by itself: what is wrong with one never hides another.

use std::path::{Path, PathBuf};

use cocode_core::nearest;

use crate::document::{Format, Member, Node, Value};
use crate::keys::{JSON_SERVERS, SERVERS};
use crate::parse::{self, Found, MAX_UNKNOWN_KEYS, did_you_mean};
use crate::problem::{Origin, Problem};
use crate::read;
use crate::scope::{Place, Scope};
use crate::settings;

/// The servers of one file, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    pub(crate) exists: bool,
    pub(crate) servers: Vec<Found>,
    pub(crate) overrides: Vec<Override>,
    pub(crate) problems: Vec<Problem>,
}

/// What a user decided about a server that somebody else's file describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The name of the server.
    pub server: String,
    /// Only in this work tree.
    pub project: Option<PathBuf>,
    /// Only if it comes with this plugin.
    pub plugin: Option<String>,
    /// Whether it is used.
    pub enabled: bool,
    /// Where it is written.
    pub origin: Origin,
}

pub(crate) const OVERRIDES: &str = "overrides";

/// Whose files say what the user wants of servers of others. One that is given by hand may be the
/// user's own.
fn may_override(scope: Scope) -> bool {
    matches!(scope, Scope::User | Scope::Explicit)
}

/// Reads one file.
pub(crate) fn layer(place: &Place) -> Layer {
    let mut layer = Layer {
        exists: true,
        ..Layer::default()
    };
    let root = match read::tree(&place.path, place.format) {
        Ok(Some(root)) => root,
        Ok(None) => return Layer::default(),
        Err(problem) => {
            layer.problems.push(without_servers(*problem));
            return layer;
        }
    };
    let origin = Origin::file(&*place.path);
    if root.members().is_none() {
        let message = format!("the file holds {}, but must hold a table", root.kind());
        let problem = Problem::error(origin.at(1), message);
        layer.problems.push(without_servers(problem));
        return layer;
    }
    layer.servers = parse::servers(&root, place.format, &origin, &mut layer.problems);
    if place.format == Format::Toml || place.scope == Scope::Enterprise {
        unknown_keys(&root, place, &origin, &mut layer.problems);
    } else if JSON_SERVERS.iter().all(|name| root.get(name).is_none()) {
        foreign_shape(&root, &origin, &mut layer.problems);
    }
    if may_override(place.scope)
        && let Some(member) = root.get(OVERRIDES)
    {
        layer.overrides = overrides(&member.node, &origin, &mut layer.problems);
    }
    layer
}

/// Says what follows for whoever looks for a server.
fn without_servers(mut problem: Problem) -> Problem {
    let consequence = "servers in this file are missing until it is mended";
    problem.hint = Some(match problem.hint {
        Some(hint) => format!("{hint}; {consequence}"),
        None => consequence.to_owned(),
    });
    problem
}

fn unknown_keys(root: &Node, place: &Place, origin: &Origin, problems: &mut Vec<Problem>) {
    let mut known = vec![SERVERS];
    if place.format == Format::Json {
        known.extend(JSON_SERVERS);
    }
    if may_override(place.scope) {
        known.push(OVERRIDES);
    }
    if place.scope == Scope::Explicit {
        known.extend(settings::SECTIONS);
    }
    let members = root.members().unwrap_or_default().iter();
    let unknown = members.filter(|member| {
        let key = member.key.as_str();
        !known.contains(&key) && key != "$schema"
    });
    for member in unknown.take(MAX_UNKNOWN_KEYS) {
        let key = member.key.as_str();
        let mut problem = Problem::error(origin.at(member.line), "there is no such key").key(key);
        problem.hint = if settings::SECTIONS.contains(&key) {
            Some("settings belong into the file `config.toml`, not here".to_owned())
        } else if key == OVERRIDES {
            Some("overrides belong into the user's own file".to_owned())
        } else if key == "mcpServers" {
            Some(format!("in TOML files it is called `{SERVERS}`"))
        } else {
            did_you_mean(nearest(key, known.iter().copied()).into_iter().next())
        };
        problems.push(problem);
    }
}

/// A JSON file without servers may have them where another tool looks for them.
fn foreign_shape(root: &Node, origin: &Origin, problems: &mut Vec<Problem>) {
    for key in ["servers", "mcp", "context_servers"] {
        if let Some(member) = root.get(key) {
            let message = "servers stand under `mcpServers` in this file";
            let problem = Problem::warning(origin.at(member.line), message).key(key);
            problems.push(problem.hint("`cocode mcp import` reads files of other tools"));
            return;
        }
    }
    // The one table that matters, misspelled, would be a file without servers and without a word.
    let misspelled =
        |member: &&Member| !nearest(&member.key, JSON_SERVERS.iter().copied()).is_empty();
    let members = root.members().unwrap_or_default().iter();
    if let Some(member) = members.take(MAX_UNKNOWN_KEYS).find(misspelled) {
        let message = "servers stand under `mcpServers` in this file";
        let problem = Problem::warning(origin.at(member.line), message).key(&*member.key);
        problems.push(problem.hint("did you mean `mcpServers`?"));
        return;
    }
    // Or the table was left out, and the servers stand at the top.
    let is_server = |member: &&Member| {
        let mut keys = ["command", "url"].into_iter();
        keys.any(|key| member.node.get(key).is_some())
    };
    let members = root.members().unwrap_or_default().iter();
    if let Some(member) = members.take(MAX_UNKNOWN_KEYS).find(is_server) {
        let message = "servers stand under `mcpServers` in this file";
        let problem = Problem::warning(origin.at(member.line), message).key(&*member.key);
        problems.push(problem.hint("put it into that table: {\"mcpServers\": {…}}"));
    }
}

fn overrides(node: &Node, origin: &Origin, problems: &mut Vec<Problem>) -> Vec<Override> {
    let Value::List(nodes) = &node.value else {
        let message = "it must be a list of tables: `[[overrides]]`";
        problems.push(Problem::error(origin.at(node.line), message).key(OVERRIDES));
        return Vec::new();
    };
    let mut overrides = Vec::new();
    for node in nodes {
        match one_override(node, origin) {
            Ok(found) => overrides.push(found),
            Err(problem) => problems.push(*problem),
        }
    }
    overrides
}

fn one_override(node: &Node, origin: &Origin) -> Result<Override, Box<Problem>> {
    let error = |line, key: &str, message: &str| {
        Box::new(Problem::error(origin.at(line), message).key(format!("{OVERRIDES}.{key}")))
    };
    let (mut server, mut project, mut plugin, mut enabled) = (None, None, None, None);
    for member in node.members().unwrap_or_default() {
        match (&*member.key, &member.node.value) {
            ("server", Value::Text(text)) => server = Some(text.clone()),
            ("project", Value::Text(text)) => project = Some(PathBuf::from(text)),
            ("plugin", Value::Text(text)) => plugin = Some(text.clone()),
            ("enabled", Value::Boolean(truth)) => enabled = Some(*truth),
            ("server" | "project" | "plugin", _) => {
                return Err(error(member.line, &member.key, "it must be a text"));
            }
            ("enabled", _) => {
                return Err(error(member.line, "enabled", "it must be true or false"));
            }
            (key, _) => return Err(error(member.line, key, "there is no such key")),
        }
    }
    let server = server.ok_or_else(|| error(node.line, "server", "it is missing"))?;
    let enabled = enabled.ok_or_else(|| error(node.line, "enabled", "it is missing"))?;
    Ok(Override {
        server,
        project,
        plugin,
        enabled,
        origin: origin.at(node.line),
    })
}

/// Whether a file is there, or may be: one that cannot be asked about counts as there.
pub(crate) fn may_exist(path: &Path) -> bool {
    match std::fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
        ),
    }
}
