//! Codex: `[mcp_servers.NAME]` in `config.toml`, of the user and of the project. It expands
//! nothing, but names variables: `env_vars`, `env_http_headers`, `bearer_token_env_var`.

use std::collections::BTreeMap;

use super::draft::{Draft, Output, Reach};
use super::fields::Fields;
use super::oauth::{OAuthShape, Scopes};
use super::reference::only_variable;
use crate::document::{Node, Value};
use crate::entry::{Entry, OAuthEntry, Text};

/// The table of servers.
pub(super) const TABLE: &str = "mcp_servers";

pub(super) const KEYS: &[&str] = &[
    "command",
    "args",
    "env",
    "env_vars",
    "cwd",
    "url",
    "bearer_token_env_var",
    "http_headers",
    "env_http_headers",
    "http_headers_helper",
    "enabled",
    "required",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "tool_timeout_sec",
    "enabled_tools",
    "disabled_tools",
    "scopes",
    "oauth_resource",
    "oauth",
];

pub(super) const OAUTH: OAuthShape = OAuthShape {
    table: "oauth",
    prefix: "oauth.",
    client_id: "client_id",
    client_secret: None,
    callback_port: Some("callback_port"),
    callback_url: Some("callback_url"),
    scopes: Scopes::None,
};

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    fields.leave("tools", "cocode asks by rules of its own");
    fields.leave(
        "default_tools_approval_mode",
        "cocode asks by rules of its own",
    );
    let startup = fields.milliseconds("startup_timeout_ms");
    Entry {
        command: fields.text("command"),
        args: fields.texts("args"),
        env: fields.values("env"),
        env_vars: read_env_vars(fields),
        cwd: fields.text("cwd"),
        url: fields.text("url"),
        headers: fields.values("http_headers"),
        env_http_headers: fields.names("env_http_headers"),
        bearer_token_env_var: fields.word("bearer_token_env_var"),
        headers_helper: fields.word("http_headers_helper"),
        oauth: OAuthEntry {
            scopes: fields.words("scopes").unwrap_or_default(),
            resource: fields.text("oauth_resource"),
            ..OAUTH.read(fields)
        },
        enabled: fields.boolean("enabled"),
        required: fields.boolean("required"),
        startup_timeout_sec: fields.seconds("startup_timeout_sec").or(startup),
        tool_timeout_sec: fields.seconds("tool_timeout_sec"),
        enabled_tools: fields.words("enabled_tools"),
        disabled_tools: fields.words("disabled_tools").unwrap_or_default(),
        ..Entry::default()
    }
}

/// Names, or tables with a name and where the variable is.
fn read_env_vars(fields: &mut Fields<'_>) -> Vec<String> {
    let mut names = Vec::new();
    for node in fields.list("env_vars") {
        match env_var(node) {
            Some(name) => names.push(name),
            None => fields.refuse("a variable of `env_vars` is not one of this machine"),
        }
    }
    names
}

fn env_var(node: &Node) -> Option<String> {
    let text = |node: &Node| match &node.value {
        Value::Text(text) => Some(text.clone()),
        _ => None,
    };
    if let Some(name) = text(node) {
        return Some(name);
    }
    let source = node.get("source").and_then(|source| text(&source.node));
    if source.is_some_and(|source| source != "local") {
        return None;
    }
    text(&node.get("name")?.node)
}

pub(super) fn write(draft: &mut Draft<'_>) {
    match draft.reach() {
        Reach::Program => {
            draft.program();
            write_env(draft);
            draft.cwd("cwd");
        }
        Reach::Http(_) => {
            draft.url("url");
            write_headers(draft);
            let helper = draft.entry.headers_helper.take();
            draft.optional("http_headers_helper", helper);
        }
        reach => return draft.refuse_reach(reach),
    }
    draft.enabled("enabled");
    let required = draft.entry.required.take();
    draft.boolean("required", required);
    let startup = draft.entry.startup_timeout_sec.take();
    draft.seconds("startup_timeout_sec", startup);
    let tool = draft.entry.tool_timeout_sec.take();
    draft.seconds("tool_timeout_sec", tool);
    let enabled = draft.entry.enabled_tools.take();
    draft.words("enabled_tools", enabled);
    let disabled = std::mem::take(&mut draft.entry.disabled_tools);
    draft.words("disabled_tools", filled(disabled));
    let scopes = std::mem::take(&mut draft.entry.oauth.scopes);
    draft.words("scopes", filled(scopes));
    if let Some(resource) = draft.entry.oauth.resource.take()
        && let Some(resource) = draft.expanded("oauth.resource", &resource)
    {
        draft.put("oauth_resource", Output::Text(resource));
    }
    OAUTH.write(draft);
}

fn filled(words: Vec<String>) -> Option<Vec<String>> {
    (!words.is_empty()).then_some(words)
}

/// A variable that refers to its own name is one that is passed on.
fn write_env(draft: &mut Draft<'_>) {
    let mut names = std::mem::take(&mut draft.entry.env_vars);
    let mut values = BTreeMap::new();
    for (name, Text(text)) in std::mem::take(&mut draft.entry.env) {
        if only_variable(&text).as_ref() == Some(&name) {
            if !names.contains(&name) {
                names.push(name);
            }
        } else {
            values.insert(name, Text(text));
        }
    }
    draft.words("env_vars", filled(names));
    draft.values("env", "env", values);
}

/// A header that is nothing but a variable, or a bearer token that is, has a key of its own.
fn write_headers(draft: &mut Draft<'_>) {
    let mut bearer = draft.entry.bearer_token_env_var.take();
    let mut in_variables = std::mem::take(&mut draft.entry.env_http_headers);
    let mut values = BTreeMap::new();
    for (header, Text(text)) in std::mem::take(&mut draft.entry.headers) {
        let token = text.strip_prefix("Bearer ").and_then(only_variable);
        if let Some(variable) = only_variable(&text) {
            in_variables.entry(header).or_insert(variable);
        } else if let Some(token) = token
            && header.eq_ignore_ascii_case("authorization")
            && bearer.is_none()
        {
            bearer = Some(token);
        } else {
            values.insert(header, Text(text));
        }
    }
    draft.optional("bearer_token_env_var", bearer);
    draft.values("headers", "http_headers", values);
    if !in_variables.is_empty() {
        let members = in_variables.into_iter();
        let members = members.map(|(header, variable)| (header, Output::Text(variable)));
        draft.put("env_http_headers", Output::Table(members.collect()));
    }
}
