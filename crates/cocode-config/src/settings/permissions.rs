//! `[permissions]`: the rules of one file as they are read, and those of all files together.
//!
//! A rule that cannot be understood may have been the one that was to keep a tool from running. So
//! where anything but an allow rule is broken, every tool asks until it is mended (in a file of the
//! organization, every tool is denied), and the answers that were remembered are put aside for as
//! long.

use cocode_core::{
    Answer, Authority, Condition, Rule, RuleEntry, RuleSet, ServerName, ToolName, ToolRef, Verdict,
};

use super::SettingOrigin;
use super::keys::{ANSWERS, RULE, SettingKey, VERDICTS};
use super::reader::Reader;
use crate::document::{Member, Node, Value};
use crate::policy::Policy;
use crate::problem::Origin;

const PREFIX: &str = "mcp__";
const SEPARATOR: &str = "__";

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RawPermissions {
    pub(crate) default: Option<(Verdict, Origin)>,
    pub(crate) rules: Vec<(Verdict, Rule, Origin)>,
    pub(crate) answers: Vec<(RememberedTool, Answer, Origin)>,
    /// Where something is that may have been meant to keep tools from running.
    pub(crate) broken: Vec<Origin>,
}

/// A tool that somebody answered about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RememberedTool {
    Mcp { server: ServerName, tool: ToolName },
    BuiltIn(String),
}

/// The rules, defaults and answers of all files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    pub(crate) rules: Vec<RuleEntry<SettingOrigin>>,
    pub(crate) defaults: Vec<(Verdict, Authority, SettingOrigin)>,
    pub(crate) answers: Vec<(RememberedTool, Answer, SettingOrigin)>,
    pub(crate) broken: Vec<SettingOrigin>,
}

impl Permissions {
    /// Whether something is broken that may have been meant to keep tools from running, so that
    /// every tool asks.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// Where that is. Each place stands among the rules as one about every tool, which nobody wrote.
    pub fn broken(&self) -> &[SettingOrigin] {
        &self.broken
    }

    /// The same, but no remembered answer allows a tool of this server.
    pub(crate) fn without_allowing_answers(&self, server: &str) -> Self {
        let mut permissions = self.clone();
        permissions.answers.retain(|(tool, answer, _)| match tool {
            RememberedTool::Mcp { server: one, .. } => {
                one.as_str() != server || *answer != Answer::Allow
            }
            RememberedTool::BuiltIn(_) => true,
        });
        permissions
    }

    /// Everything there is to decide by: the organization's rules, and those of the settings.
    pub fn rule_set(&self, policy: &Policy) -> RuleSet<SettingOrigin> {
        let mut rules = RuleSet::new();
        policy.add_rules(&mut rules);
        rules.extend(self.rules.iter().cloned());
        for (verdict, authority, origin) in &self.defaults {
            rules.set_default(*verdict, *authority, origin.clone());
        }
        if !self.is_broken() {
            for (tool, answer, origin) in &self.answers {
                rules.remember(tool.as_tool_ref(), *answer, origin.clone());
            }
        }
        rules
    }
}

impl RememberedTool {
    fn as_tool_ref(&self) -> ToolRef<'_> {
        match self {
            Self::Mcp { server, tool } => ToolRef::Mcp { server, tool },
            Self::BuiltIn(name) => ToolRef::BuiltIn { name },
        }
    }
}

/// The keys under which the answer about a tool is kept in `config.toml`, outermost first.
///
/// `mcp__SERVER__TOOL` where that can be read in one way only, else the server and the tool apart.
pub fn remembered_path(tool: ToolRef<'_>) -> Vec<String> {
    let mut path = vec!["permissions".to_owned(), "remembered".to_owned()];
    match tool {
        ToolRef::BuiltIn { name } => path.push(name.to_owned()),
        ToolRef::Mcp { server, tool } => {
            let text = format!("{PREFIX}{server}{SEPARATOR}{tool}");
            match split(&text) {
                Split::One(..) => path.push(text),
                Split::None | Split::Several => {
                    path.extend([server.as_str().to_owned(), tool.as_str().to_owned()]);
                }
            }
        }
    }
    path
}

/// Reads `[permissions]`, whose keys are those given.
pub(crate) fn permissions(
    reader: &mut Reader<'_>,
    member: &Member,
    keys: &'static [SettingKey],
) -> RawPermissions {
    let mut raw = RawPermissions::default();
    let path = &member.key;
    let Some(members) = reader.table(path, &member.node) else {
        raw.broken.push(reader.origin.at(member.line));
        return raw;
    };
    for member in members {
        let origin = reader.origin.at(member.line);
        let Some(key) = reader.known(keys, "permissions.", member) else {
            raw.broken.push(origin);
            continue;
        };
        let path = format!("permissions.{}", key.name);
        match (key.name, verdict(key.name)) {
            ("default", _) => {
                let word = reader.one_of(VERDICTS, &path, &member.node);
                match word.as_deref().and_then(verdict) {
                    Some(verdict) => raw.default = Some((verdict, origin)),
                    None => raw.broken.push(origin),
                }
            }
            ("remembered", _) => answers(reader, &member.node, &mut raw),
            (_, Some(verdict)) => rules(reader, verdict, &path, &member.node, &mut raw),
            (other, None) => {
                debug_assert!(false, "the key {other} is in the table, but not read");
            }
        }
    }
    raw
}

fn verdict(word: &str) -> Option<Verdict> {
    [Verdict::Allow, Verdict::Ask, Verdict::Deny]
        .into_iter()
        .find(|verdict| verdict.as_str() == word)
}

fn rules(
    reader: &mut Reader<'_>,
    verdict: Verdict,
    path: &str,
    node: &Node,
    raw: &mut RawPermissions,
) {
    // Without a broken allow rule less is allowed, which harms nobody.
    let is_strict = verdict != Verdict::Allow;
    let origin = reader.origin;
    let Some(nodes) = reader.list(path, node) else {
        raw.broken.extend(is_strict.then(|| origin.at(node.line)));
        return;
    };
    for (index, node) in nodes.iter().enumerate() {
        let origin = origin.at(node.line);
        match rule(reader, &format!("{path}[{index}]"), node) {
            Some(rule) => raw.rules.push((verdict, rule, origin)),
            None => raw.broken.extend(is_strict.then_some(origin)),
        }
    }
}

/// The rules of a list, or nothing if any of them is broken.
pub(super) fn rule_list(
    reader: &mut Reader<'_>,
    path: &str,
    node: &Node,
) -> Option<Vec<(Rule, Origin)>> {
    let nodes = reader.list(path, node)?;
    let read: Vec<_> = nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            let origin = reader.origin.at(node.line);
            Some((rule(reader, &format!("{path}[{index}]"), node)?, origin))
        })
        .collect();
    read.into_iter().collect()
}

/// One rule: a text, or a table with conditions.
fn rule(reader: &mut Reader<'_>, path: &str, node: &Node) -> Option<Rule> {
    let parsed = match &node.value {
        Value::Text(text) => text.parse(),
        Value::Table(members) => return rule_table(reader, path, node, members),
        _ => return reader.wrong(path, node, "a text or a table"),
    };
    match parsed {
        Ok(rule) => Some(rule),
        Err(error) => {
            reader.error(node.line, path, &format!("{error}"));
            None
        }
    }
}

fn rule_table(
    reader: &mut Reader<'_>,
    path: &str,
    node: &Node,
    members: &[Member],
) -> Option<Rule> {
    let (mut tool, mut server) = (None, None);
    let mut condition = Condition::default();
    let mut is_broken = false;
    for member in members {
        let prefix = format!("{path}.");
        let Some(key) = reader.known(RULE, &prefix, member) else {
            is_broken = true;
            continue;
        };
        let path = format!("{prefix}{}", key.name);
        let node = &member.node;
        let is_read = match key.name {
            "tool" => store(&mut tool, reader.text(&path, node)),
            "server" => store(&mut server, reader.text(&path, node)),
            "read_only" => store(&mut condition.read_only, reader.boolean(&path, node)),
            "destructive" => store(&mut condition.destructive, reader.boolean(&path, node)),
            other => {
                debug_assert!(false, "the key {other} is in the table, but not read");
                false
            }
        };
        is_broken |= !is_read;
    }
    if is_broken {
        return None;
    }
    if members.is_empty() {
        let hint = "`{ tool = \"*\" }` means every tool".to_owned();
        reader.report(node.line, path, "the rule is empty", Some(hint));
        return None;
    }
    let tool = tool.as_deref().unwrap_or("*");
    let rule = match server {
        Some(server) => Rule::for_server(&server, tool),
        None => tool.parse(),
    };
    match rule {
        Ok(rule) => Some(rule.when(condition)),
        Err(error) => {
            reader.error(node.line, path, &format!("{error}"));
            None
        }
    }
}

fn store<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    *place = value;
    place.is_some()
}

fn answers(reader: &mut Reader<'_>, node: &Node, raw: &mut RawPermissions) {
    const PATH: &str = "permissions.remembered";
    for member in reader.table(PATH, node).unwrap_or_default() {
        let path = format!("{PATH}.{}", member.key);
        if let Some(tools) = member.node.members() {
            let server = match member.key.parse::<ServerName>() {
                Ok(server) => server,
                Err(error) => {
                    reader.error(member.line, &path, &format!("{error}"));
                    continue;
                }
            };
            for member in tools {
                let path = format!("{path}.{}", member.key);
                let tool = RememberedTool::Mcp {
                    server: server.clone(),
                    tool: ToolName::new(member.key.as_str()),
                };
                answer(reader, &path, member, tool, raw);
            }
            continue;
        }
        let tool = match split(&member.key) {
            Split::None if member.key.starts_with(PREFIX) => {
                reader.error(member.line, &path, "this names no server and tool");
                continue;
            }
            Split::None => RememberedTool::BuiltIn(member.key.clone()),
            Split::One(server, tool) => match server.parse() {
                Ok(server) => RememberedTool::Mcp {
                    server,
                    tool: ToolName::new(tool),
                },
                Err(error) => {
                    reader.error(member.line, &path, &format!("{error}"));
                    continue;
                }
            },
            Split::Several => {
                let message = "this can be read as more than one tool";
                let hint = "write `[permissions.remembered.SERVER]`, and the tool as a key of it";
                reader.report(member.line, &path, message, Some(hint.to_owned()));
                continue;
            }
        };
        answer(reader, &path, member, tool, raw);
    }
}

fn answer(
    reader: &mut Reader<'_>,
    path: &str,
    member: &Member,
    tool: RememberedTool,
    raw: &mut RawPermissions,
) {
    let answer = match reader.one_of(ANSWERS, path, &member.node).as_deref() {
        Some("allow") => Answer::Allow,
        Some(_) => Answer::Deny,
        None => return,
    };
    raw.answers
        .push((tool, answer, reader.origin.at(member.line)));
}

/// In how many ways `mcp__SERVER__TOOL` can be read.
enum Split<'a> {
    None,
    One(&'a str, &'a str),
    Several,
}

fn split(text: &str) -> Split<'_> {
    let Some(rest) = text.strip_prefix(PREFIX) else {
        return Split::None;
    };
    // Also places that overlap, as in `a___b`. A tool may have no name at all.
    let mut places = (1..rest.len()).filter_map(|at| {
        let (server, tool) = rest.split_at_checked(at)?;
        Some((server, tool.strip_prefix(SEPARATOR)?))
    });
    match (places.next(), places.next()) {
        (None, _) => Split::None,
        (Some((server, tool)), None) => Split::One(server, tool),
        (Some(_), Some(_)) => Split::Several,
    }
}

#[cfg(test)]
#[path = "permissions_tests.rs"]
mod tests;
