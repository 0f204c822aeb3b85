//! `OpenCode`: `mcp` in `opencode.json` or `opencode.jsonc`, of the user and of the project.

use super::draft::{Draft, Output, Reach};
use super::fields::Fields;
use super::oauth::{OAuthShape, Scopes};
use crate::entry::Entry;

pub(super) const KEYS: &[&str] = &[
    "type",
    "command",
    "environment",
    "cwd",
    "url",
    "headers",
    "oauth",
    "enabled",
    "timeout",
];

pub(super) const OAUTH: OAuthShape = OAuthShape {
    table: "oauth",
    prefix: "oauth.",
    client_id: "clientId",
    client_secret: Some("clientSecret"),
    callback_port: Some("callbackPort"),
    callback_url: None,
    scopes: Scopes::Text("scope"),
};

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    if !fields.has("type") {
        fields.refuse("it has no `type`: it only switches a server of another file on or off");
    }
    // The other keys say it.
    fields.ignore("type");
    let mut command = fields.texts("command").into_iter();
    if !fields.is_table("oauth") {
        fields.leave("oauth", "cocode signs in only where a server asks for it");
    }
    Entry {
        command: command.next(),
        args: command.collect(),
        env: fields.values("environment"),
        cwd: fields.text("cwd"),
        url: fields.text("url"),
        headers: fields.values("headers"),
        oauth: OAUTH.read(fields),
        enabled: fields.boolean("enabled"),
        tool_timeout_sec: fields.milliseconds("timeout"),
        ..Entry::default()
    }
}

pub(super) fn write(draft: &mut Draft<'_>) {
    match draft.reach() {
        Reach::Program => {
            draft.word("type", "local");
            let line = draft.command_line();
            draft.put("command", Output::List(line));
            draft.env("environment");
            draft.cwd("cwd");
        }
        Reach::Http(_) | Reach::Sse => {
            draft.word("type", "remote");
            draft.url("url");
            draft.headers("headers");
            OAUTH.write(draft);
        }
        reach => return draft.refuse_reach(reach),
    }
    draft.enabled("enabled");
    let timeout = draft.entry.tool_timeout_sec.take();
    draft.milliseconds("timeout", timeout);
}
