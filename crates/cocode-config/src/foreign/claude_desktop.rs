//! Claude Desktop: `mcpServers` in `claude_desktop_config.json`, programs only.

use super::draft::{Draft, Reach};
use super::fields::Fields;
use crate::entry::Entry;

pub(super) const KEYS: &[&str] = &["command", "args", "env"];

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    Entry {
        transport: fields.transport("type"),
        command: fields.text("command"),
        args: fields.texts("args"),
        env: fields.values("env"),
        url: fields.text("url"),
        headers: fields.values("headers"),
        ..Entry::default()
    }
}

pub(super) fn write(draft: &mut Draft<'_>) {
    draft.enabled_only();
    match draft.reach() {
        Reach::Program => {
            draft.program();
            draft.env("env");
        }
        reach => draft.refuse_reach(reach),
    }
}
