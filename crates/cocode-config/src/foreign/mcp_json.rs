//! `.mcp.json`, the file that several tools share: as Claude Code writes it, with the few keys
//! that others added.

use super::claude_code;
use super::draft::{Draft, Output};
use super::fields::Fields;
use crate::entry::Entry;

pub(super) const KEYS: &[&str] = &[
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "headersHelper",
    "oauth",
    "timeout",
    "alwaysLoad",
    "disabled",
    "description",
];

pub(super) fn read(fields: &mut Fields<'_>) -> Entry {
    let disabled = fields.boolean("disabled");
    let enabled = fields.boolean("enabled");
    Entry {
        cwd: fields.text("cwd"),
        enabled: disabled.map(|disabled| !disabled).or(enabled),
        description: fields.word("description"),
        ..claude_code::read(fields)
    }
}

pub(super) fn write(draft: &mut Draft<'_>) {
    let enabled = draft.entry.enabled.take();
    draft.cwd("cwd");
    claude_code::write(draft);
    if enabled == Some(false) {
        draft.put("disabled", Output::Boolean(true));
    }
    let description = draft.entry.description.take();
    draft.optional("description", description);
}
