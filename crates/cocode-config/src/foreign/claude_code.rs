//! Claude Code: `mcpServers` in `~/.claude.json` for the user, below `projects.PATH` in the same
//! file for one project, and in `.mcp.json` for everybody.

use super::draft::{Draft, Reach};
use super::fields::Fields;
use super::oauth::{OAuthShape, Scopes};
use super::places::{Place, PlaceScope};
use crate::document::{Node, Value};
use crate::entry::{Entry, Transport};

pub(super) const KEYS: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "url",
    "headers",
    "headersHelper",
    "oauth",
    "timeout",
    "alwaysLoad",
];

pub(super) const OAUTH: OAuthShape = OAuthShape {
    table: "oauth",
    prefix: "oauth.",
    client_id: "clientId",
    client_secret: None,
    callback_port: Some("callbackPort"),
    callback_url: None,
    scopes: Scopes::Text("scopes"),
};

/// The table of a project in the user's own file.
pub(super) fn path_to_project(place: &Place) -> Vec<String> {
    match (place.scope, &place.project) {
        (PlaceScope::Local, Some(project)) => {
            let project = project.to_string_lossy().into_owned();
            vec!["projects".to_owned(), project]
        }
        _ => Vec::new(),
    }
}

/// Servers that the user switched off in this project.
pub(super) fn is_switched_off(root: &Node, place: &Place, name: &str) -> bool {
    if place.scope != PlaceScope::Local {
        return false;
    }
    let mut node = root;
    for key in path_to_project(place) {
        match node.get(&key) {
            Some(member) => node = &member.node,
            None => return false,
        }
    }
    let off = node.get("disabledMcpServers");
    off.is_some_and(|member| has_text(&member.node, name))
}

/// Whether a list has a text.
pub(super) fn has_text(node: &Node, text: &str) -> bool {
    let Value::List(nodes) = &node.value else {
        return false;
    };
    nodes.iter().any(|node| match &node.value {
        Value::Text(found) => found == text,
        _ => false,
    })
}

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    Entry {
        transport: fields.transport("type"),
        command: fields.text("command"),
        args: fields.texts("args"),
        env: fields.values("env"),
        url: fields.text("url"),
        headers: fields.values("headers"),
        headers_helper: fields.word("headersHelper"),
        oauth: OAUTH.read(fields),
        tool_timeout_sec: fields.milliseconds("timeout"),
        always_load: fields.boolean("alwaysLoad"),
        ..Entry::default()
    }
}

pub(super) fn write(draft: &mut Draft<'_>) {
    draft.enabled_only();
    let reach = draft.reach();
    let transport = match reach {
        Reach::Program => Transport::Stdio,
        Reach::Http(_) => Transport::Http,
        Reach::Sse => Transport::Sse,
        Reach::Ws => Transport::Ws,
        Reach::Unix | Reach::Nothing => return draft.refuse_reach(reach),
    };
    draft.word("type", transport.as_str());
    if transport == Transport::Stdio {
        draft.program();
        draft.env("env");
    } else {
        draft.url("url");
        draft.headers("headers");
        let helper = draft.entry.headers_helper.take();
        draft.optional("headersHelper", helper);
        OAUTH.write(draft);
    }
    let timeout = draft.entry.tool_timeout_sec.take();
    draft.milliseconds("timeout", timeout);
    let always_load = draft.entry.always_load.take();
    draft.boolean("alwaysLoad", always_load);
}
