//! `list`: what is in a directory.

use rustix::fs::{AtFlags, readlinkat, statat};
use serde::Deserialize;
use serde_json::{Value, json};

use super::with_notes;
use crate::confine::size;
use crate::definition::ToolDefinition;
use crate::job::Job;
use crate::limits::{
    DEFAULT_LIST_ENTRIES, MAX_DIRECTORY_ENTRIES, MAX_LIST_ENTRIES, MAX_RESULT_BYTES,
};
use crate::output::ToolOutput;
use crate::refusal::Refusal;
use crate::text::{count, shown};
use crate::tool::{Answer, Call, Shared, Tool};
use crate::walk::{self, Entry, Kind, Listing};

pub(crate) struct List;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
    limit: Option<usize>,
}

impl Tool for List {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "list",
            title: "List a directory",
            description: "Lists one directory of the workspace, sorted by name, with the kind of \
                each entry and the size of files in bytes. Symbolic links are shown with their \
                target. Does not look into subdirectories; use `find` for that.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The directory, relative to the workspace or absolute \
                            within it. Default: the workspace itself."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_LIST_ENTRIES,
                        "description": format!("At most so many entries. Default: {DEFAULT_LIST_ENTRIES}.")
                    }
                },
                "additionalProperties": false
            }),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "entries": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "name": { "type": "string" },
                                "kind": { "enum": ["file", "directory", "symlink", "other"] },
                                "size": { "type": "integer" },
                                "target": { "type": "string" }
                            },
                            "required": ["name", "kind"]
                        }
                    },
                    "total": { "type": "integer", "description": "Entries in the directory." },
                    "truncated": { "type": "boolean" }
                },
                "required": ["path", "entries", "total", "truncated"]
            })),
            read_only: true,
            destructive: false,
            idempotent: true,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments = call.arguments()?;
            call.on_file(move |shared, job| list(shared, &arguments, job))
                .await
        })
    }
}

fn list(shared: &Shared, arguments: &Arguments, job: &Job) -> Result<ToolOutput, Refusal> {
    let path = shared
        .root
        .inside(arguments.path.as_deref().unwrap_or("."))?;
    let limit = arguments
        .limit
        .unwrap_or(DEFAULT_LIST_ENTRIES)
        .clamp(1, MAX_LIST_ENTRIES);
    let directory = shared.root.open_directory(&path)?;
    let Listing { mut entries, cut } = walk::list(&directory.descriptor, job)?
        .map_err(|errno| Refusal::system("list", path.shown(), errno))?;
    entries.sort_unstable();

    let mut text = String::new();
    let mut items = Vec::new();
    for Entry { name, kind } in entries.iter().take(limit) {
        job.check()?;
        if text.len() > MAX_RESULT_BYTES {
            break;
        }
        // Whatever has gone since it was listed is shown without details.
        let stat = statat(&directory.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let mut item = json!({ "name": name.to_string_lossy(), "kind": kind_name(*kind) });
        let mut line = shown(name);
        match (kind, stat) {
            (Kind::File, Some(stat)) => {
                line = format!("{line} ({})", count(size(&stat), "byte", "bytes"));
                item["size"] = Value::from(size(&stat));
            }
            (Kind::File, None) => {}
            (Kind::Directory, _) => line.push('/'),
            (Kind::Link, _) => {
                let target = readlinkat(&directory.descriptor, name, Vec::new())
                    .map(|target| target.to_string_lossy().into_owned())
                    .unwrap_or_default();
                line = format!("{line} -> {}", shown(&target));
                item["target"] = Value::from(target);
            }
            (Kind::Other, _) => line.push_str(" (special)"),
        }
        text.push_str(&line);
        text.push('\n');
        items.push(item);
    }

    let n_hidden = entries.len() - items.len();
    let mut notes = Vec::new();
    if entries.is_empty() {
        notes.push("the directory is empty".to_owned());
    }
    if n_hidden > 0 {
        notes.push(count(
            n_hidden as u64,
            "more entry is not shown",
            "more entries are not shown",
        ));
    }
    if cut {
        notes.push(format!(
            "only {MAX_DIRECTORY_ENTRIES} entries were read; there are more"
        ));
    }
    let structured = json!({
        "path": path.shown(),
        "entries": items,
        "total": entries.len(),
        "truncated": n_hidden > 0 || cut,
    });
    Ok(ToolOutput::structured(with_notes(text, &notes), structured))
}

pub(super) fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::File => "file",
        Kind::Directory => "directory",
        Kind::Link => "symlink",
        Kind::Other => "other",
    }
}
