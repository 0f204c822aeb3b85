//! Cursor: `mcpServers` in `~/.cursor/mcp.json` and `.cursor/mcp.json`.

use super::draft::{Draft, Reach};
use super::fields::Fields;
use super::oauth::{OAuthShape, Scopes};
use crate::entry::Entry;

pub(super) const KEYS: &[&str] = &["type", "command", "args", "env", "url", "headers", "auth"];

pub(super) const OAUTH: OAuthShape = OAuthShape {
    table: "auth",
    prefix: "auth.",
    client_id: "CLIENT_ID",
    client_secret: Some("CLIENT_SECRET"),
    callback_port: None,
    callback_url: None,
    scopes: Scopes::List("scopes"),
};

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    fields.leave("envFile", "cocode reads no files of variables");
    Entry {
        transport: fields.transport("type"),
        command: fields.text("command"),
        args: fields.texts("args"),
        env: fields.values("env"),
        cwd: fields.text("cwd"),
        url: fields.text("url"),
        headers: fields.values("headers"),
        oauth: OAUTH.read(fields),
        ..Entry::default()
    }
}

pub(super) fn write(draft: &mut Draft<'_>) {
    draft.enabled_only();
    match draft.reach() {
        Reach::Program => {
            draft.word("type", "stdio");
            draft.program();
            draft.env("env");
        }
        Reach::Http(_) | Reach::Sse => {
            draft.url("url");
            draft.headers("headers");
            OAUTH.write(draft);
        }
        reach => draft.refuse_reach(reach),
    }
}
