//! Gemini CLI: `mcpServers` in `settings.json`, of the user and of the project.

use super::claude_code::has_text;
use super::draft::{Draft, Reach};
use super::fields::Fields;
use super::oauth::{OAuthShape, Scopes};
use crate::document::{Node, Value};
use crate::entry::{Entry, Transport};

pub(super) const KEYS: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "httpUrl",
    "headers",
    "oauth",
    "timeout",
    "description",
    "includeTools",
    "excludeTools",
];

pub(super) const OAUTH: OAuthShape = OAuthShape {
    table: "oauth",
    prefix: "oauth.",
    client_id: "clientId",
    client_secret: Some("clientSecret"),
    callback_port: None,
    callback_url: None,
    scopes: Scopes::List("scopes"),
};

/// Servers that the user excluded, or did not allow.
pub(super) fn is_switched_off(root: &Node, name: &str) -> bool {
    let Some(settings) = root.get("mcp") else {
        return false;
    };
    let excluded = settings.node.get("excluded");
    let allowed = settings.node.get("allowed");
    let is_list = |node: &Node| matches!(&node.value, Value::List(_));
    excluded.is_some_and(|list| has_text(&list.node, name))
        || allowed.is_some_and(|list| is_list(&list.node) && !has_text(&list.node, name))
}

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    fields.leave("trust", "cocode asks by rules of its own");
    fields.leave("tcp", "cocode has no such transport");
    let mut entry = Entry {
        transport: fields.transport("type"),
        command: fields.text("command"),
        args: fields.texts("args"),
        env: fields.values("env"),
        cwd: fields.text("cwd"),
        url: fields.text("url"),
        headers: fields.values("headers"),
        oauth: OAUTH.read(fields),
        tool_timeout_sec: fields.milliseconds("timeout"),
        enabled_tools: fields.words("includeTools"),
        disabled_tools: fields.words("excludeTools").unwrap_or_default(),
        description: fields.word("description"),
        ..Entry::default()
    };
    // The older way to say streamable HTTP; it goes before `url`, and `url` before `command`.
    if let Some(url) = fields.text("httpUrl") {
        entry.url = Some(url);
        entry.transport = Some(Transport::Http);
    }
    entry
}

pub(super) fn write(draft: &mut Draft<'_>) {
    draft.enabled_only();
    match draft.reach() {
        Reach::Program => {
            draft.program();
            draft.env("env");
            draft.cwd("cwd");
        }
        reach @ (Reach::Http(_) | Reach::Sse) => {
            draft.url("url");
            match reach {
                Reach::Sse => draft.word("type", "sse"),
                Reach::Http(Some(_)) => draft.word("type", "http"),
                // Without a type, it falls back as we do.
                _ => {}
            }
            draft.headers("headers");
            OAUTH.write(draft);
        }
        reach => return draft.refuse_reach(reach),
    }
    let timeout = draft.entry.tool_timeout_sec.take();
    draft.milliseconds("timeout", timeout);
    let description = draft.entry.description.take();
    draft.optional("description", description);
    let enabled = draft.entry.enabled_tools.take();
    draft.words("includeTools", enabled);
    let disabled = std::mem::take(&mut draft.entry.disabled_tools);
    draft.words("excludeTools", (!disabled.is_empty()).then_some(disabled));
}
