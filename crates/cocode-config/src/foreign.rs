//! The configuration of other tools: reads their servers as ours, and writes ours into their
//! files, in their shape. Never opens a file itself.

mod claude_code;
mod claude_desktop;
mod codex;
mod cursor;
mod draft;
mod fields;
mod gemini;
mod json;
mod mcp_json;
mod oauth;
mod opencode;
mod owned;
mod places;
mod reference;
mod scene;
mod toml;
mod vscode;
mod zed;

use std::fmt;
use std::str::FromStr;

use cocode_core::ServerName;

pub use self::places::{HomePlaces, Place, PlaceScope};

use self::draft::{Draft, Members};
use self::fields::Fields;
use self::json::EditError;
use self::owned::Owned;
use self::reference::Dialect;
use self::scene::Scene;
use crate::document::{Format, Node, Value, parse};
use crate::entry::Entry;
use crate::parse::MAX_SERVERS_PER_FILE;
use crate::problem::{Origin, Problem};

/// The largest file of another tool that is read: some keep their whole history in it.
pub const MAX_FOREIGN_BYTES: usize = 32 * 1024 * 1024;

/// A program that keeps MCP servers in a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tool {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Codex.
    Codex,
    /// Cursor.
    Cursor,
    /// VS Code.
    VsCode,
    /// `OpenCode`.
    OpenCode,
    /// Zed.
    Zed,
    /// Gemini CLI.
    GeminiCli,
    /// Any program that reads `.mcp.json`.
    McpJson,
}

/// A text that names no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tool that cocode knows")]
pub struct UnknownTool(pub String);

/// The servers of a file of another tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Foreign {
    /// Those that can be used here, in their order.
    pub servers: Vec<ForeignServer>,
    /// What did not come along: an error for a server as a whole, a warning for a key of it.
    pub problems: Vec<Problem>,
}

/// A server of another tool, as an entry of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignServer {
    /// Its name there.
    pub name: String,
    /// What it would be here.
    pub entry: Entry,
    /// Where it stands.
    pub origin: Origin,
}

/// What to do with servers in a file of another tool.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Add these, or change the ones that have these names.
    Add(&'a [(String, Entry)]),
    /// Remove the ones with these names.
    Remove(&'a [String]),
}

/// A file of another tool after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The whole text.
    pub text: String,
    /// The servers that were added, changed or removed; those that already were as wanted too.
    pub names: Vec<String>,
    /// What did not go along: an error for a server as a whole, a warning for a key of it.
    pub problems: Vec<Problem>,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Codex,
        Self::Cursor,
        Self::VsCode,
        Self::OpenCode,
        Self::Zed,
        Self::GeminiCli,
        Self::McpJson,
    ];

    /// The name on a command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::OpenCode => "opencode",
            Self::Zed => "zed",
            Self::GeminiCli => "gemini",
            Self::McpJson => "mcp-json",
        }
    }

    /// The name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::OpenCode => "OpenCode",
            Self::Zed => "Zed",
            Self::GeminiCli => "Gemini CLI",
            Self::McpJson => ".mcp.json",
        }
    }

    /// The language of its files.
    pub fn format(self) -> Format {
        match self {
            Self::Codex => Format::Toml,
            _ => Format::Json,
        }
    }

    fn dialect(self) -> Dialect {
        match self {
            Self::ClaudeDesktop | Self::Codex | Self::Zed => Dialect::Plain,
            Self::ClaudeCode | Self::McpJson => Dialect::Shell,
            Self::GeminiCli => Dialect::Dollar,
            Self::Cursor | Self::VsCode => Dialect::Editor,
            Self::OpenCode => Dialect::Braces,
        }
    }

    /// The keys that lead to the table of servers.
    fn path(self, place: &Place) -> Vec<String> {
        let table = match self {
            Self::Codex => codex::TABLE,
            Self::VsCode => "servers",
            Self::OpenCode => "mcp",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        };
        let mut path = Vec::new();
        if self == Self::ClaudeCode {
            path.extend(claude_code::path_to_project(place));
        }
        path.push(table.to_owned());
        path
    }

    fn read_entry(self, fields: &mut Fields<'_>) -> Entry {
        match self {
            Self::ClaudeCode => claude_code::read(fields),
            Self::ClaudeDesktop => claude_desktop::read(fields),
            Self::Codex => codex::read(fields),
            Self::Cursor => cursor::read(fields),
            Self::VsCode => vscode::read(fields),
            Self::OpenCode => opencode::read(fields),
            Self::Zed => zed::read(fields),
            Self::GeminiCli => gemini::read(fields),
            Self::McpJson => mcp_json::read(fields),
        }
    }

    fn write_entry(self, draft: &mut Draft<'_>) {
        match self {
            Self::ClaudeCode => claude_code::write(draft),
            Self::ClaudeDesktop => claude_desktop::write(draft),
            Self::Codex => codex::write(draft),
            Self::Cursor => cursor::write(draft),
            Self::VsCode => vscode::write(draft),
            Self::OpenCode => opencode::write(draft),
            Self::Zed => zed::write(draft),
            Self::GeminiCli => gemini::write(draft),
            Self::McpJson => mcp_json::write(draft),
        }
    }

    /// What of a server is ours to change. The rest is left alone.
    fn owned(self) -> Owned {
        let (keys, oauth) = match self {
            Self::ClaudeCode => (claude_code::KEYS, Some(claude_code::OAUTH)),
            Self::ClaudeDesktop => (claude_desktop::KEYS, None),
            Self::Codex => (codex::KEYS, Some(codex::OAUTH)),
            Self::Cursor => (cursor::KEYS, Some(cursor::OAUTH)),
            Self::VsCode => (vscode::KEYS, None),
            Self::OpenCode => (opencode::KEYS, Some(opencode::OAUTH)),
            Self::Zed => (zed::KEYS, Some(zed::OAUTH)),
            Self::GeminiCli => (gemini::KEYS, Some(gemini::OAUTH)),
            Self::McpJson => (mcp_json::KEYS, Some(claude_code::OAUTH)),
        };
        Owned::Server { keys, oauth }
    }

    /// Whether a server is switched off outside of its own entry.
    fn is_switched_off(self, root: &Node, place: &Place, name: &str) -> bool {
        match self {
            Self::ClaudeCode => claude_code::is_switched_off(root, place, name),
            Self::GeminiCli => gemini::is_switched_off(root, name),
            _ => false,
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.id())
    }
}

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|tool| tool.id() == text);
        found.ok_or_else(|| UnknownTool(text.to_owned()))
    }
}

/// The servers in the text of one of a tool's files. Fails if the text as a whole cannot be used.
pub fn read_foreign(tool: Tool, place: &Place, text: &str) -> Result<Foreign, Box<Problem>> {
    let scene = Scene { tool, place };
    let root = scene.root(text)?;
    let mut foreign = Foreign::default();
    let mut table = &root;
    for key in tool.path(place) {
        match table.get(&key) {
            None => return Ok(foreign),
            Some(member) if member.node.value == Value::Null => return Ok(foreign),
            Some(member) => table = &member.node,
        }
    }
    let Some(members) = table.members() else {
        let message = format!("the servers are {}, but must be a table", table.kind());
        let origin = scene.origin().at(table.line);
        return Err(Box::new(Problem::error(origin, message)));
    };
    if members.len() > MAX_SERVERS_PER_FILE {
        let message = format!("the file has more than {MAX_SERVERS_PER_FILE} servers");
        let origin = scene.origin().at(table.line);
        return Err(Box::new(Problem::error(origin, message)));
    }
    for (index, member) in members.iter().enumerate() {
        let origin = scene.origin().at(member.line);
        let name = member.key.as_str();
        let mut later = members.iter().skip(index + 1);
        if later.any(|later| later.key == name) {
            let message = "the file has this server twice; the last one counts";
            let problem = Problem::warning(origin, message).server(name);
            foreign.problems.push(problem);
            continue;
        }
        let (entry, problems) = scene.read(&root, name, &member.node);
        foreign.problems.extend(problems);
        if let Some(entry) = entry {
            foreign.servers.push(ForeignServer {
                name: name.to_owned(),
                entry,
                origin,
            });
        }
    }
    Ok(foreign)
}

/// The text of one of a tool's files after a change; without a text, the file is new. Everything
/// else in it stays as it is. Fails if the text as a whole cannot be used.
pub fn write_foreign(
    tool: Tool,
    place: &Place,
    text: Option<&str>,
    change: Change<'_>,
) -> Result<Written, Box<Problem>> {
    let scene = Scene { tool, place };
    let text = text.unwrap_or_default();
    let (mark, text) = match text.strip_prefix('\u{feff}') {
        Some(rest) => ("\u{feff}", rest),
        None => ("", text),
    };
    let text = match tool.format() {
        Format::Json if text.trim().is_empty() => "{}\n",
        _ => text,
    };
    scene.root(text)?;
    let mut names = Vec::new();
    let mut problems = Vec::new();
    let path = tool.path(place);
    let written = match change {
        Change::Add(servers) => {
            let mut drafted: Vec<(String, Members)> = Vec::with_capacity(servers.len());
            for (name, entry) in servers {
                let mut draft = Draft::of(&scene, name, entry.clone());
                tool.write_entry(&mut draft);
                let draft = draft.finish();
                problems.extend(draft.problems);
                if let Some(members) = draft.members {
                    names.push(name.clone());
                    drafted.push((name.clone(), members));
                }
            }
            let owned = tool.owned();
            match tool.format() {
                _ if drafted.is_empty() => Ok(text.to_owned()),
                Format::Json => json::add(text, &path, &drafted, owned),
                Format::Toml => toml::add(text, codex::TABLE, &drafted, owned),
            }
        }
        Change::Remove(removed) => {
            names.extend_from_slice(removed);
            match tool.format() {
                Format::Json => json::remove(text, &path, removed),
                Format::Toml => toml::remove(text, codex::TABLE, removed),
            }
        }
    };
    let written = written.map_err(|error| Box::new(scene.cannot_edit(error)))?;
    // What was written is read back: a file of somebody else is never left broken.
    scene.root(&written)?;
    Ok(Written {
        text: format!("{mark}{written}"),
        names,
        problems,
    })
}

impl Scene<'_> {
    /// The tree of a text.
    fn root(&self, text: &str) -> Result<Node, Box<Problem>> {
        let tool = self.tool;
        if text.len() > MAX_FOREIGN_BYTES {
            let message = format!("the file is larger than {MAX_FOREIGN_BYTES} bytes");
            return Err(Box::new(Problem::error(self.origin(), message)));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let text = match tool.format() {
            Format::Json if text.trim().is_empty() => "{}",
            _ => text,
        };
        let root = parse(text, tool.format()).map_err(|error| {
            let mut origin = self.origin();
            origin.line = error.line;
            let message = format!("the file cannot be understood: {}", error.message);
            Box::new(Problem::error(origin, message))
        })?;
        if root.members().is_none() {
            let message = format!("the file holds {}, but must hold a table", root.kind());
            let origin = self.origin().at(root.line);
            return Err(Box::new(Problem::error(origin, message)));
        }
        Ok(root)
    }

    /// One server, unless it is of no use here, and what was wrong with it.
    fn read(&self, root: &Node, name: &str, node: &Node) -> (Option<Entry>, Vec<Problem>) {
        let origin = self.origin().at(node.line);
        if let Err(error) = name.parse::<ServerName>() {
            let problem = Problem::error(origin, error.to_string()).server(name);
            return (None, vec![problem]);
        }
        let Some(mut fields) = Fields::of(self, name, node) else {
            let message = format!("it is {}, but must be a table", node.kind());
            let problem = Problem::error(origin, message).server(name);
            return (None, vec![problem]);
        };
        let mut entry = self.tool.read_entry(&mut fields);
        if self.tool.is_switched_off(root, self.place, name) {
            entry.enabled = Some(false);
        }
        let mut problems = fields.finish();
        let is_broken = problems.iter().any(Problem::is_error);
        let message = match (&entry.command, &entry.url) {
            _ if is_broken => None,
            (None, None) => Some("it has neither a command nor an address"),
            (Some(_), Some(_)) => Some("it has both a command and an address"),
            _ => None,
        };
        if let Some(message) = message {
            problems.push(Problem::error(origin, message).server(name));
        }
        let is_broken = is_broken || message.is_some();
        ((!is_broken).then_some(entry), problems)
    }

    fn cannot_edit(&self, error: EditError) -> Problem {
        let message = match error {
            EditError::Syntax(message) => format!("the file cannot be understood: {message}"),
            EditError::NotTable(key) if key.is_empty() => "the file holds no table".to_owned(),
            EditError::NotTable(key) => format!("`{key}` in the file is not a table"),
        };
        Problem::error(self.origin(), message)
    }
}

#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod write_tests;
