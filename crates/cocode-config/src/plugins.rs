//! Plugins: folders that bring servers. Which ones the user added is in `plugins.toml`; what they
//! bring is read from their own files each time.

use std::path::{Component, Path, PathBuf};

use crate::document::{Format, Node, Value};
use crate::parse::{self, Found};
use crate::problem::{Origin, Problem};
use crate::read;

/// Variables that stand for the folder of the plugin an entry came with.
pub const PLUGIN_ROOT_VARIABLES: [&str; 2] = ["COCODE_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"];

/// The most plugins that are read.
pub const MAX_PLUGINS: usize = 200;

/// Where a plugin may describe itself.
const MANIFESTS: [&str; 3] = [
    "plugin.json",
    ".cocode-plugin/plugin.json",
    ".claude-plugin/plugin.json",
];
/// Where a plugin may have its servers, besides its description.
const SERVER_FILES: [(&str, Format); 2] =
    [(".mcp.toml", Format::Toml), (".mcp.json", Format::Json)];

/// A plugin that the user added.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    /// Its name: from its description, else of its folder.
    pub name: String,
    /// Its folder.
    pub path: PathBuf,
    /// Whether its servers count.
    pub enabled: bool,
    /// Where the user added it.
    pub origin: Origin,
    /// What it says about itself.
    pub description: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The servers it brings.
    pub servers: Vec<Found>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

/// A folder as `plugins.toml` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) path: PathBuf,
    pub(crate) enabled: bool,
    pub(crate) origin: Origin,
}

/// The plugins that a list names, with what they bring.
pub(crate) fn added(list: &Path, problems: &mut Vec<Problem>) -> Vec<Plugin> {
    let listed = listed(list, problems);
    let mut plugins: Vec<Plugin> = Vec::with_capacity(listed.len());
    for Listed {
        path,
        enabled,
        origin,
    } in listed
    {
        let mut plugin = read_plugin(&path, origin);
        plugin.enabled = enabled;
        if plugins.iter().any(|other| other.name == plugin.name) {
            let message = format!("there are two plugins with the name `{}`", plugin.name);
            let hint = "remove one of them: `cocode plugin remove`";
            let problem = Problem::warning(plugin.origin.clone(), message).hint(hint);
            plugin.problems.push(problem);
        }
        plugins.push(plugin);
    }
    plugins
}

/// The folders that a list names.
pub(crate) fn listed(list: &Path, problems: &mut Vec<Problem>) -> Vec<Listed> {
    let root = match read::tree(list, Format::Toml) {
        Ok(Some(root)) => root,
        Ok(None) => return Vec::new(),
        Err(problem) => {
            problems.push(*problem);
            return Vec::new();
        }
    };
    let origin = Origin::file(list);
    let mut folders = Vec::new();
    for member in root.members().unwrap_or_default() {
        match (&*member.key, &member.node.value) {
            ("plugins", Value::List(nodes)) => {
                for node in nodes.iter().take(MAX_PLUGINS) {
                    match folder(node, &origin) {
                        Ok(folder) => folders.push(folder),
                        Err(problem) => problems.push(*problem),
                    }
                }
                if nodes.len() > MAX_PLUGINS {
                    let message = format!("only the first {MAX_PLUGINS} plugins count");
                    problems.push(Problem::error(origin.at(member.line), message));
                }
            }
            ("plugins", _) => {
                let message = "it must be a list of tables: `[[plugins]]`";
                problems.push(Problem::error(origin.at(member.line), message).key("plugins"));
            }
            (key, _) => {
                let problem = Problem::error(origin.at(member.line), "there is no such key");
                problems.push(problem.key(key));
            }
        }
    }
    folders
}

fn folder(node: &Node, origin: &Origin) -> Result<Listed, Box<Problem>> {
    let error = |line, key: &str, message: &str| {
        Box::new(Problem::error(origin.at(line), message).key(format!("plugins.{key}")))
    };
    let Some(members) = node.members() else {
        return Err(error(node.line, "path", "a plugin must be a table"));
    };
    let mut path = None;
    let mut enabled = true;
    for member in members {
        match (&*member.key, &member.node.value) {
            ("path", Value::Text(text)) if Path::new(text).is_absolute() => {
                path = Some(PathBuf::from(text));
            }
            ("path", _) => {
                return Err(error(member.line, "path", "it must be an absolute path"));
            }
            ("enabled", Value::Boolean(truth)) => enabled = *truth,
            ("enabled", _) => {
                return Err(error(member.line, "enabled", "it must be true or false"));
            }
            (key, _) => return Err(error(member.line, key, "there is no such key")),
        }
    }
    let origin = origin.at(node.line);
    path.map(|path| Listed {
        path,
        enabled,
        origin: origin.clone(),
    })
    .ok_or_else(|| error(node.line, "path", "a plugin needs its `path`"))
}

/// The files that a plugin may have its servers in, whether or not they are there.
pub fn plugin_files(path: &Path) -> Vec<PathBuf> {
    let servers = SERVER_FILES.iter().map(|(name, _)| *name);
    let names = MANIFESTS.into_iter().chain(servers);
    names.map(|name| path.join(name)).collect()
}

/// Every file that is looked at for the plugins of a list, whether or not it is there.
pub(crate) fn looked_at(list: &Path) -> Vec<PathBuf> {
    // What is wrong with the list is said by whoever reads it for its plugins.
    let mut problems = Vec::new();
    let mut files = Vec::new();
    for Listed { path, .. } in listed(list, &mut problems) {
        files.push(path.clone());
        files.extend(plugin_files(&path));
        for name in MANIFESTS {
            let Ok(Some(root)) = read::tree(&path.join(name), Format::Json) else {
                continue;
            };
            if let Some(member) = root.get("mcpServers") {
                files.extend(references(&member.node).filter_map(|text| inside(&path, text)));
            }
        }
    }
    files
}

/// The paths among `mcpServers` of a description.
fn references(node: &Node) -> Box<dyn Iterator<Item = &str> + '_> {
    match &node.value {
        Value::Text(text) => Box::new(std::iter::once(text.as_str())),
        Value::List(nodes) => Box::new(nodes.iter().flat_map(references)),
        _ => Box::new(std::iter::empty()),
    }
}

/// What a folder brings.
pub fn read_plugin(path: &Path, origin: Origin) -> Plugin {
    let folder_name = path.file_name().map(|name| name.to_string_lossy());
    let mut plugin = Plugin {
        name: folder_name.unwrap_or_default().into_owned(),
        path: path.to_owned(),
        enabled: true,
        origin,
        description: None,
        version: None,
        servers: Vec::new(),
        problems: Vec::new(),
    };
    if !path.is_dir() {
        let message = format!("the folder of the plugin is gone: {}", path.display());
        let hint = "bring it back, or `cocode plugin remove` it";
        let problem = Problem::error(plugin.origin.clone(), message).hint(hint);
        plugin.problems.push(problem);
        return plugin;
    }
    let has_manifest = manifest(&mut plugin);
    let mut has_servers = false;
    for (name, format) in SERVER_FILES {
        has_servers |= server_file(&mut plugin, &path.join(name), format);
    }
    if !has_manifest && !has_servers {
        let message = "the folder has no `plugin.json`, `.mcp.json` or `.mcp.toml`";
        let problem = Problem::error(Origin::file(path), message);
        plugin.problems.push(problem);
    }
    plugin
}

/// Reads the description, whether there is one, and what it brings.
fn manifest(plugin: &mut Plugin) -> bool {
    for name in MANIFESTS {
        let path = plugin.path.join(name);
        let root = match read::tree(&path, Format::Json) {
            Ok(Some(root)) => root,
            Ok(None) => continue,
            Err(problem) => {
                plugin.problems.push(*problem);
                return true;
            }
        };
        let text = |key: &str| match root.get(key).map(|member| &member.node.value) {
            Some(Value::Text(text)) if !text.trim().is_empty() => Some(text.clone()),
            _ => None,
        };
        if let Some(name) = text("name") {
            plugin.name = name;
        }
        plugin.description = text("description");
        plugin.version = text("version");
        if let Some(member) = root.get("mcpServers") {
            manifest_servers(plugin, &path, &member.node);
        }
        return true;
    }
    false
}

/// `mcpServers` of a description: servers, or the paths of files that have them.
fn manifest_servers(plugin: &mut Plugin, manifest: &Path, node: &Node) {
    let origin = Origin::file(manifest);
    match &node.value {
        Value::Table(_) => {
            let found = parse::server_table(
                "mcpServers",
                node,
                Format::Json,
                &origin,
                &mut plugin.problems,
            );
            add_servers(plugin, found);
        }
        Value::Text(text) => referred(plugin, &origin.at(node.line), text),
        Value::List(nodes) => {
            for node in nodes {
                manifest_servers(plugin, manifest, node);
            }
        }
        _ => {
            let message = format!("it is {}, but must be a table or a path", node.kind());
            let problem = Problem::error(origin.at(node.line), message);
            plugin.problems.push(problem.key("mcpServers"));
        }
    }
}

/// A file that a description refers to. It has to be inside the plugin.
fn referred(plugin: &mut Plugin, origin: &Origin, text: &str) {
    let Some(path) = inside(&plugin.path, text) else {
        let problem = Problem::error(origin.clone(), "the path leads out of the plugin");
        plugin.problems.push(problem.key("mcpServers"));
        return;
    };
    if !server_file(plugin, &path, crate::scope::format_of(&path)) {
        let message = format!("there is no file {}", path.display());
        let problem = Problem::error(origin.clone(), message);
        plugin.problems.push(problem.key("mcpServers"));
    }
}

/// The path that a text means inside a plugin, unless it leads out of it.
fn inside(plugin: &Path, text: &str) -> Option<PathBuf> {
    let text = PLUGIN_ROOT_VARIABLES
        .iter()
        .fold(text.to_owned(), |text, variable| {
            text.replace(&format!("${{{variable}}}/"), "")
        });
    let relative = Path::new(&text);
    let is_inside = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    is_inside.then(|| plugin.join(relative))
}

/// Reads a file with servers, if it exists.
fn server_file(plugin: &mut Plugin, path: &Path, format: Format) -> bool {
    let root = match read::tree(path, format) {
        Ok(Some(root)) => root,
        Ok(None) => return false,
        Err(problem) => {
            plugin.problems.push(*problem);
            return true;
        }
    };
    let origin = Origin::file(path);
    let problems = &mut plugin.problems;
    let has_table = parse::server_tables(format)
        .iter()
        .any(|name| root.get(name).is_some());
    // Plugins may leave out the outer table and have one server for each key.
    let found = if has_table || format == Format::Toml {
        parse::servers(&root, format, &origin, problems)
    } else {
        parse::server_table("the file", &root, format, &origin, problems)
    };
    add_servers(plugin, found);
    true
}

fn add_servers(plugin: &mut Plugin, found: Vec<Found>) {
    for found in found {
        // A description may name the file that is read anyway.
        let is_same = |other: &Found| other.name == found.name && other.origin == found.origin;
        if plugin.servers.iter().any(is_same) {
            continue;
        }
        if plugin.servers.iter().any(|other| other.name == found.name) {
            let message = "the plugin has this server twice; the first one counts";
            let problem = Problem::warning(found.origin.clone(), message);
            plugin.problems.push(problem.server(&found.name));
        } else {
            plugin.servers.push(found);
        }
    }
}
