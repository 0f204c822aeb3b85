//! VS Code: `servers` in `mcp.json` of the user's profile and in `.vscode/mcp.json`.

use super::draft::{Draft, Reach};
use super::fields::Fields;
use super::oauth::{OAuthShape, Scopes};
use crate::entry::{Entry, Transport};

pub(super) const KEYS: &[&str] = &["type", "command", "args", "env", "cwd", "url", "headers"];

const OAUTH: OAuthShape = OAuthShape {
    table: "oauth",
    prefix: "oauth.",
    client_id: "clientId",
    client_secret: None,
    callback_port: None,
    callback_url: None,
    scopes: Scopes::None,
};

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    fields.leave("envFile", "cocode reads no files of variables");
    fields.leave("dev", "it is for those who write the server");
    fields.leave("sandbox", "the rules of VS Code are not those of cocode");
    fields.leave(
        "sandboxEnabled",
        "the rules of VS Code are not those of cocode",
    );
    // Where a server was found in the gallery.
    fields.ignore("gallery");
    fields.ignore("version");
    Entry {
        // Its `http` falls back to HTTP+SSE, as an address alone does here.
        transport: match fields.transport("type") {
            Some(Transport::Http) => None,
            transport => transport,
        },
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
    let reach = draft.reach();
    match reach {
        Reach::Program => {
            draft.word("type", "stdio");
            draft.program();
            draft.env("env");
            draft.cwd("cwd");
        }
        Reach::Http(_) | Reach::Sse => {
            let name = if reach == Reach::Sse { "sse" } else { "http" };
            draft.word("type", name);
            draft.url("url");
            draft.headers("headers");
        }
        reach => draft.refuse_reach(reach),
    }
}
