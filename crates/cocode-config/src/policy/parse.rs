//! Reads `policy.toml`. One thing that is not understood makes the whole of it unusable.

use std::path::{Path, PathBuf};

use cocode_core::Wildcard;

use super::{AllowList, Matcher, Policy, Rules, State, place};
use crate::document::{Format, Member, Node};
use crate::problem::{Origin, Problem};
use crate::read;
use crate::settings::{
    AgentBounds, Given, POLICY, POLICY_AGENT, POLICY_GATEWAY, POLICY_PERMISSIONS, RawPermissions,
    Reader, SCHEMA_KEY, Setting, SettingKey, SettingKind, permissions,
};

pub(super) fn read(path: &Path) -> Policy {
    match read::tree(path, Format::Toml) {
        Ok(Some(root)) => tree(&root, &Origin::file(path)),
        // A link that leads nowhere is a policy that somebody wanted.
        Ok(None) if path.symlink_metadata().is_ok() => {
            let message = "the file is a link that leads nowhere";
            broken(Problem::error(Origin::file(path), message))
        }
        Ok(None) => Policy::none(),
        Err(problem) => broken(*problem),
    }
}

pub(super) fn text(text: &str, path: &Path) -> Policy {
    match read::parsed(path, text, Format::Toml) {
        Ok(root) => tree(&root, &Origin::file(path)),
        Err(problem) => broken(*problem),
    }
}

fn broken(problem: Problem) -> Policy {
    Policy::broken(problem.origin.clone(), vec![problem])
}

fn tree(root: &Node, origin: &Origin) -> Policy {
    let mut reader = Reader::new(origin);
    let mut rules = Rules {
        allowed: Vec::new(),
        denied: Vec::new(),
        permissions: RawPermissions::default(),
        agent: AgentBounds::default(),
        requires_authentication: None,
    };
    for member in root.members().unwrap_or_default() {
        if member.key == SCHEMA_KEY {
            continue;
        }
        let Some(key) = reader.known(POLICY, "", member) else {
            continue;
        };
        match (key.name, &key.kind) {
            ("allowed" | "allowedMcpServers", SettingKind::Tables(keys)) => {
                rules.allowed.push(AllowList {
                    origin: origin.at(member.line),
                    matchers: matchers(&mut reader, keys, member),
                    restricts_names: key.name != "allowed",
                });
            }
            ("denied" | "deniedMcpServers", SettingKind::Tables(keys)) => {
                rules.denied.extend(matchers(&mut reader, keys, member));
            }
            ("permissions", _) => {
                rules.permissions = permissions(&mut reader, member, POLICY_PERMISSIONS);
            }
            ("agent", _) => rules.agent = agent(&mut reader, member),
            ("gateway", _) => rules.requires_authentication = gateway(&mut reader, member),
            (other, _) => debug_assert!(false, "the key {other} is in the table, but not read"),
        }
    }
    match reader.problems.first() {
        None => Policy(State::Usable(Box::new(rules))),
        Some(first) => Policy::broken(first.origin.clone(), reader.problems),
    }
}

fn agent(reader: &mut Reader<'_>, member: &Member) -> AgentBounds {
    let mut bounds = AgentBounds::default();
    let members = reader.table(&member.key, &member.node).unwrap_or_default();
    for member in members {
        let Some(key) = reader.known(POLICY_AGENT, "agent.", member) else {
            continue;
        };
        let path = format!("agent.{}", key.name);
        let from = Some(place(&reader.origin.at(member.line)));
        match (key.name, reader.value(key, &path, &member.node)) {
            // What is wrong was said, and makes the policy unusable.
            (_, None) => {}
            ("max_sandbox", Some(Given::Text(word))) => {
                let value = word.parse().ok();
                bounds.max_sandbox = value.map(|value| Setting { value, from });
            }
            ("approval_policies", Some(Given::Texts(words))) => {
                let value = words.iter().filter_map(|word| word.parse().ok()).collect();
                bounds.approval_policies = Some(Setting { value, from });
            }
            (other, Some(_)) => {
                reader.error(member.line, &path, "this kind of value is not understood");
                debug_assert!(false, "the key {other} is in the table, but not read");
            }
        }
    }
    bounds
}

/// Where it is written that clients of gateways have to say who they are.
fn gateway(reader: &mut Reader<'_>, member: &Member) -> Option<Origin> {
    let mut required = None;
    let members = reader.table(&member.key, &member.node).unwrap_or_default();
    for member in members {
        let Some(key) = reader.known(POLICY_GATEWAY, "gateway.", member) else {
            continue;
        };
        let path = format!("gateway.{}", key.name);
        match (key.name, reader.value(key, &path, &member.node)) {
            // What is wrong was said, and makes the policy unusable.
            (_, None) => {}
            ("require_authentication", Some(Given::Boolean(truth))) => {
                required = truth.then(|| reader.origin.at(member.line));
            }
            (other, Some(_)) => {
                reader.error(member.line, &path, "this kind of value is not understood");
                debug_assert!(false, "the key {other} is in the table, but not read");
            }
        }
    }
    required
}

fn matchers(reader: &mut Reader<'_>, keys: &'static [SettingKey], member: &Member) -> Vec<Matcher> {
    let nodes = reader.list(&member.key, &member.node).unwrap_or_default();
    let matchers = nodes.iter().enumerate();
    matchers
        .filter_map(|(index, node)| {
            let path = format!("{}[{index}]", member.key);
            matcher(reader, keys, &path, node)
        })
        .collect()
}

fn matcher(
    reader: &mut Reader<'_>,
    keys: &'static [SettingKey],
    path: &str,
    node: &Node,
) -> Option<Matcher> {
    let mut matcher = Matcher {
        origin: reader.origin.at(node.line),
        name: None,
        command: None,
        url: None,
        reason: None,
        allow_env: Vec::new(),
        cwd: None,
        allow_helpers: false,
    };
    let prefix = format!("{path}.");
    for member in reader.table(path, node)? {
        let Some(key) = reader.known(keys, &prefix, member) else {
            continue;
        };
        let path = format!("{prefix}{}", key.name);
        match (key.name, reader.value(key, &path, &member.node)) {
            // What is wrong was said, and makes the policy unusable.
            (_, None) => {}
            ("name" | "serverName", Some(Given::Text(name))) => {
                matcher.name = Some(Wildcard::new(name));
            }
            ("command" | "serverCommand", Some(Given::Texts(words))) => {
                matcher.command = Some(words);
            }
            ("url" | "serverUrl", Some(Given::UrlPattern(pattern))) => matcher.url = Some(pattern),
            ("reason", Some(Given::Text(reason))) => matcher.reason = Some(reason),
            ("allow_env", Some(Given::Texts(names))) => {
                let names = names.iter();
                let names = names.map(|name| Wildcard::new(name.to_ascii_uppercase()));
                matcher.allow_env = names.collect();
            }
            ("cwd", Some(Given::Text(cwd))) => matcher.cwd = Some(PathBuf::from(cwd)),
            ("allow_helpers", Some(Given::Boolean(truth))) => matcher.allow_helpers = truth,
            (other, Some(_)) => {
                reader.error(member.line, &path, "this kind of value is not understood");
                debug_assert!(false, "the key {other} is in the table, but not read");
            }
        }
    }
    if SettingKey::find(keys, "serverName").is_none() {
        coherence(reader, path, node, &matcher);
    } else if node.members().is_none_or(|members| members.len() != 1) {
        let message = "it must have exactly one of `serverName`, `serverCommand` and `serverUrl`";
        reader.error(node.line, path, message);
    }
    Some(matcher)
}

fn coherence(reader: &mut Reader<'_>, path: &str, node: &Node, matcher: &Matcher) {
    let Matcher {
        origin: _,
        name,
        command,
        url,
        reason: _,
        allow_env,
        cwd,
        allow_helpers,
    } = matcher;
    let given = |key: &str| node.get(key).is_some();
    if !["name", "command", "url"].into_iter().any(given) {
        let message = "it has none of `name`, `command` and `url`, so it says of no server \
                       whether it matches";
        reader.error(node.line, path, message);
    }
    if command.is_some() && url.is_some() {
        let message = "it has both `command` and `url`, which no server has";
        reader.error(node.line, path, message);
    }
    let needs_command = !allow_env.is_empty() || cwd.is_some();
    if needs_command && !given("command") {
        reader.error(node.line, path, "`allow_env` and `cwd` need `command`");
    }
    if let Some(cwd) = cwd
        && !cwd.is_absolute()
    {
        let message = "it must be an absolute path";
        reader.error(node.line, &format!("{path}.cwd"), message);
    }
    if *allow_helpers && command.is_none() && url.is_none() && name.is_some() {
        let message = "`allow_helpers` needs `command` or `url`; without them nothing is refused";
        reader.error(node.line, path, message);
    }
}
