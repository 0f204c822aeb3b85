//! Zed: `context_servers` in `settings.json`, of the user and of the project.

use super::draft::{Draft, Reach};
use super::fields::Fields;
use super::oauth::{OAuthShape, Scopes};
use crate::entry::Entry;

pub(super) const KEYS: &[&str] = &[
    "command", "args", "env", "url", "headers", "oauth", "enabled", "timeout",
];

pub(super) const OAUTH: OAuthShape = OAuthShape {
    table: "oauth",
    prefix: "oauth.",
    client_id: "client_id",
    client_secret: None,
    callback_port: None,
    callback_url: None,
    scopes: Scopes::None,
};

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    // What earlier versions wrote to tell these servers from those of extensions.
    fields.ignore("source");
    if fields.has("settings") && !fields.has("command") && !fields.has("url") {
        fields.refuse("it belongs to an extension of Zed, which knows how to start it");
        fields.ignore("settings");
    }
    fields.leave("settings", "they are for an extension of Zed");
    fields.leave("remote", "cocode starts every program on this machine");
    let program = if fields.is_table("command") {
        // As earlier versions had it.
        fields.inside("command", "command.", |fields| Entry {
            command: fields.text("path"),
            args: fields.texts("args"),
            env: fields.values("env"),
            ..Entry::default()
        })
    } else {
        Entry {
            command: fields.text("command"),
            args: fields.texts("args"),
            env: fields.values("env"),
            ..Entry::default()
        }
    };
    Entry {
        url: fields.text("url"),
        headers: fields.values("headers"),
        oauth: OAUTH.read(fields),
        enabled: fields.boolean("enabled"),
        tool_timeout_sec: fields.seconds("timeout"),
        ..program
    }
}

pub(super) fn write(draft: &mut Draft<'_>) {
    match draft.reach() {
        Reach::Program => {
            draft.program();
            draft.env("env");
        }
        Reach::Http(_) => {
            draft.url("url");
            draft.headers("headers");
            OAUTH.write(draft);
        }
        reach => return draft.refuse_reach(reach),
    }
    draft.enabled("enabled");
    let timeout = draft.entry.tool_timeout_sec.take();
    draft.whole_seconds("tool_timeout_sec", "timeout", timeout);
}
