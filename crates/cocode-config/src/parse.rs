//! From a tree of values to entries. What is wrong with one entry stays with that entry.

mod sign_in;
mod values;

use std::collections::BTreeMap;

use cocode_core::ServerName;

use crate::document::{Format, Member, Node, Value};
use crate::entry::{Entry, Transport};
use crate::keys::{self, JSON_SERVERS, Key, SERVERS};
use crate::problem::{Origin, Problem};

/// The most servers that one file may have.
pub const MAX_SERVERS_PER_FILE: usize = 1000;

/// The most unknown keys of one table that are listed: a huge file of another kind is not worth more.
pub(crate) const MAX_UNKNOWN_KEYS: usize = 20;

/// An entry as it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The name of the server.
    pub name: String,
    /// What the file says about it; as far as it could be understood, if it is broken.
    pub entry: Entry,
    /// Where the entry begins.
    pub origin: Origin,
    /// The line of each key, as in `command` or `env.TOKEN`.
    pub lines: BTreeMap<String, u32>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
}

impl Found {
    /// Whether it cannot be used.
    pub fn is_broken(&self) -> bool {
        self.problems.iter().any(Problem::is_error)
    }

    /// Where a key stands, or else the entry.
    pub fn origin_of(&self, key: &str) -> Origin {
        let parent = key.split_once('.').map(|(parent, _)| parent);
        let line = self.lines.get(key);
        let line = line.or_else(|| parent.and_then(|parent| self.lines.get(parent)));
        line.map_or_else(|| self.origin.clone(), |line| self.origin.at(*line))
    }
}

/// The servers of a file, in their order. What is wrong with the file itself is in `problems`.
pub(crate) fn servers(
    root: &Node,
    format: Format,
    origin: &Origin,
    problems: &mut Vec<Problem>,
) -> Vec<Found> {
    let tables: Vec<_> = server_tables(format)
        .iter()
        .filter_map(|name| root.get(name))
        .collect();
    let mut found: Vec<Found> = Vec::new();
    for table in tables {
        found.extend(server_table(
            &table.key,
            &table.node,
            format,
            origin,
            problems,
        ));
    }
    found
}

/// The servers of one table.
pub(crate) fn server_table(
    title: &str,
    table: &Node,
    format: Format,
    origin: &Origin,
    problems: &mut Vec<Problem>,
) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let Some(members) = table.members() else {
        let message = format!("`{title}` is {}, but must be a table", table.kind());
        let problem = Problem::error(origin.at(table.line), message);
        problems.push(problem.hint("it holds one table for each server, by name"));
        return found;
    };
    if members.len() > MAX_SERVERS_PER_FILE {
        let message = format!("the file has more than {MAX_SERVERS_PER_FILE} servers");
        problems.push(Problem::error(origin.at(table.line), message));
    }
    for member in members.iter().take(MAX_SERVERS_PER_FILE) {
        let entry = server(&member.key, &member.node, format, &origin.at(member.line));
        // TOML has no duplicates. In JSON, the last one counts.
        if let Some(earlier) = found.iter_mut().find(|found| found.name == entry.name) {
            let message = "the file has this server twice; the last one counts";
            problems.push(Problem::warning(entry.origin.clone(), message).server(&entry.name));
            *earlier = entry;
        } else {
            found.push(entry);
        }
    }
    found
}

/// The tables that may hold servers.
pub(crate) fn server_tables(format: Format) -> &'static [&'static str] {
    match format {
        Format::Toml => &[SERVERS],
        Format::Json => JSON_SERVERS,
    }
}

/// One server.
pub(crate) fn server(name: &str, node: &Node, format: Format, origin: &Origin) -> Found {
    let mut reader = Reader {
        server: name,
        origin,
        is_json: format == Format::Json,
        lines: BTreeMap::new(),
        problems: Vec::new(),
    };
    if let Err(error) = name.parse::<ServerName>() {
        let problem = Problem::error(origin.clone(), error.to_string());
        reader.problems.push(problem.server(name));
    }
    let mut entry = Entry::default();
    match node.members() {
        Some(_) => reader.entry(node, &mut entry),
        None => reader.error(
            node.line,
            None,
            format!("it is {}, but must be a table", node.kind()),
        ),
    }
    let Reader {
        lines, problems, ..
    } = reader;
    Found {
        name: name.to_owned(),
        entry,
        origin: origin.clone(),
        lines,
        problems,
    }
}

/// One server from the text of a JSON object, as other tools write it.
pub fn entry_from_json(name: &str, text: &str) -> Result<(Entry, Vec<Problem>), Box<Problem>> {
    let path = std::path::Path::new("(given)");
    let node = crate::read::parsed(path, text, Format::Json)?;
    let found = server(name, &node, Format::Json, &Origin::file(path));
    Ok((found.entry, found.problems))
}

struct Reader<'a> {
    server: &'a str,
    origin: &'a Origin,
    is_json: bool,
    lines: BTreeMap<String, u32>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn entry(&mut self, node: &Node, entry: &mut Entry) {
        let given = self.known(node.members().unwrap_or_default(), keys::SERVER, "");
        for (key, member) in &given {
            self.lines.insert(key.name.to_owned(), member.line);
            self.value(key, &member.node, entry);
        }
        self.conflicts(&given, entry);
        self.coherence(node.line, entry);
    }

    /// The members that say something, each key once. All others are reported.
    fn known<'n>(
        &mut self,
        members: &'n [Member],
        keys: &'static [Key],
        prefix: &str,
    ) -> Vec<(&'static Key, &'n Member)> {
        let mut given: Vec<(&'static Key, &Member)> = Vec::new();
        let mut n_unknown = 0;
        for member in members {
            let Some(key) = Key::find(keys, &member.key, self.is_json) else {
                n_unknown += 1;
                if n_unknown <= MAX_UNKNOWN_KEYS {
                    self.unknown(&member.key, member.line, keys, prefix);
                }
                continue;
            };
            // `null` in JSON says nothing.
            if self.is_json && member.node.value == Value::Null {
                continue;
            }
            let Some(other) = given.iter_mut().find(|(other, _)| other.name == key.name) else {
                given.push((key, member));
                continue;
            };
            let shown = format!("{prefix}{}", member.key);
            if other.1.key == member.key {
                // TOML has no duplicates. In JSON, the last one counts.
                other.1 = member;
                let message = "the entry has this key twice; the last one counts".to_owned();
                self.warning(member.line, Some(&shown), message);
            } else {
                let message = format!("`{}` and `{}` mean the same", other.1.key, member.key);
                self.error(member.line, Some(&shown), message);
            }
        }
        if n_unknown > MAX_UNKNOWN_KEYS {
            let message = format!("{n_unknown} keys are not known; only the first are listed");
            let line = members.first().map_or(1, |member| member.line);
            self.warning(line, None, message);
        }
        given
    }

    /// Keys that say the same thing in different ways, where they cannot both be meant.
    fn conflicts(&mut self, given: &[(&'static Key, &Member)], entry: &Entry) {
        let member = |name: &str| {
            let mut found = given.iter().filter(|(key, _)| key.name == name);
            found.next().map(|(_, member)| *member)
        };
        let truth = |member: &Member| match member.node.value {
            Value::Boolean(truth) => Some(truth),
            _ => None,
        };
        if let (Some(enabled), Some(disabled)) = (member("enabled"), member("disabled"))
            && truth(enabled) == truth(disabled)
        {
            let message = "`enabled` and `disabled` contradict each other".to_owned();
            self.error(disabled.line, Some("disabled"), message);
        }
        if let (Some(_), Some(timeout)) = (member("tool_timeout_sec"), member("timeout")) {
            let message = "`tool_timeout_sec` and `timeout` mean the same".to_owned();
            self.error(timeout.line, Some("timeout"), message);
        }
        let inner = member("oauth").and_then(|oauth| oauth.node.get("scopes"));
        if let (Some(_), Some(inner)) = (member("scopes"), inner)
            && !entry.oauth.scopes.is_empty()
        {
            let message = "`scopes` and `oauth.scopes` mean the same".to_owned();
            self.error(inner.line, Some("oauth.scopes"), message);
        }
    }

    fn value(&mut self, key: &'static Key, node: &Node, entry: &mut Entry) {
        let name = key.name;
        match name {
            "transport" => entry.transport = self.transport(node),
            "command" => entry.command = self.text(name, node),
            "args" => entry.args = self.list(name, node),
            "env" => entry.env = self.secrets(name, node),
            "env_vars" => entry.env_vars = self.list(name, node),
            "cwd" => entry.cwd = self.text(name, node),
            "url" => entry.url = self.text(name, node),
            "headers" => entry.headers = self.secrets(name, node),
            "env_http_headers" => {
                let map = self.secrets(name, node).into_iter();
                entry.env_http_headers = map.map(|(header, name)| (header, name.0)).collect();
            }
            "bearer_token_env_var" => entry.bearer_token_env_var = self.text(name, node),
            "headers_helper" => entry.headers_helper = self.text(name, node),
            "oauth" => self.oauth(node, &mut entry.oauth),
            "scopes" => entry.oauth.scopes = self.scopes(name, node),
            "enabled" => entry.enabled = self.boolean(name, node),
            "disabled" => entry.enabled = self.boolean(name, node).map(|disabled| !disabled),
            "required" => entry.required = self.boolean(name, node),
            "startup_timeout_sec" => entry.startup_timeout_sec = self.seconds(key, node),
            "connect_timeout_sec" => entry.connect_timeout_sec = self.seconds(key, node),
            "tool_timeout_sec" | "timeout" => entry.tool_timeout_sec = self.seconds(key, node),
            "tool_timeouts_sec" => entry.tool_timeouts_sec = self.seconds_by_name(name, node),
            "tool_total_timeout_sec" => entry.tool_total_timeout_sec = self.seconds(key, node),
            "enabled_tools" => entry.enabled_tools = Some(self.list(name, node)),
            "disabled_tools" => entry.disabled_tools = self.list(name, node),
            "protocol" => entry.protocol = self.protocol(node),
            "isolation" => entry.isolation = self.one_of(key, name, node),
            "always_load" => entry.always_load = self.boolean(name, node),
            "trust_annotations" => entry.trust_annotations = self.boolean(name, node),
            "idle_stop_sec" => entry.idle_stop_sec = self.seconds(key, node),
            "sandbox" => entry.sandbox = self.one_of(key, name, node),
            "description" => entry.description = self.text(name, node),
            other => debug_assert!(false, "the key {other} is in the table, but not read"),
        }
    }

    /// What can be told from the entry alone.
    fn coherence(&mut self, line: u32, entry: &Entry) {
        match (&entry.command, &entry.url) {
            (Some(_), Some(_)) => {
                self.error(line, None, "it has both `command` and `url`".to_owned());
            }
            (None, None) if self.problems.iter().all(|problem| !problem.is_error()) => {
                let message = "it has neither `command` nor `url`".to_owned();
                self.error(line, None, message);
            }
            _ => {}
        }
        let wants_program = entry.transport == Some(Transport::Stdio);
        let wants_address = entry.transport.is_some() && !wants_program;
        if wants_program && entry.command.is_none() && entry.url.is_some() {
            let message = "the transport stdio needs `command`".to_owned();
            self.error(line, Some("transport"), message);
        }
        if wants_address && entry.url.is_none() && entry.command.is_some() {
            self.error(
                line,
                Some("transport"),
                "this transport needs `url`".to_owned(),
            );
        }
        let misplaced: &[(&str, bool)] = if entry.command.is_some() {
            &[
                ("headers", !entry.headers.is_empty()),
                ("env_http_headers", !entry.env_http_headers.is_empty()),
                ("bearer_token_env_var", entry.bearer_token_env_var.is_some()),
                ("headers_helper", entry.headers_helper.is_some()),
            ]
        } else {
            &[
                ("args", !entry.args.is_empty()),
                ("env", !entry.env.is_empty()),
                ("env_vars", !entry.env_vars.is_empty()),
                ("cwd", entry.cwd.is_some()),
            ]
        };
        if entry.command.is_some() == entry.url.is_some() {
            return;
        }
        for (key, _) in misplaced.iter().filter(|(_, is_given)| *is_given) {
            let line = self.lines.get(*key).copied().unwrap_or(line);
            let kind = if entry.command.is_some() {
                "an address"
            } else {
                "a command"
            };
            let message = format!("this is for servers with {kind}, and does nothing here");
            self.warning(line, Some(key), message);
        }
    }
}

pub(crate) fn did_you_mean(meant: Option<&str>) -> Option<String> {
    meant.map(|meant| format!("did you mean `{meant}`?"))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
