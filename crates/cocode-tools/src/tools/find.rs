//! `find`: paths that match a glob.

use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::json;

use super::with_notes;
use crate::definition::ToolDefinition;
use crate::glob::Glob;
use crate::job::Job;
use crate::limits::{DEFAULT_FIND_PATHS, MAX_FIND_PATHS, MAX_RESULT_BYTES};
use crate::output::ToolOutput;
use crate::refusal::Refusal;
use crate::text::{count, shown};
use crate::tool::{Answer, Call, Shared, Tool};
use crate::walk::{Kind, walk};

pub(crate) struct Find;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    glob: String,
    path: Option<String>,
    kind: Option<Wanted>,
    limit: Option<usize>,
    #[serde(default)]
    include_ignored: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    File,
    Directory,
    Any,
}

impl Wanted {
    fn includes(self, kind: Kind) -> bool {
        match self {
            Self::File => kind != Kind::Directory,
            Self::Directory => kind == Kind::Directory,
            Self::Any => true,
        }
    }
}

impl Tool for Find {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "find",
            title: "Find files",
            description: "Finds files in the workspace by a glob, sorted by path. A glob without a \
                slash (`*.rs`) is about names at any depth; one with a slash (`src/**/*.rs`) is \
                about paths relative to where the search begins. `*` stays within a name, `**` \
                does not, `{a,b}` is either. Leaves out what .gitignore files name, and `.git`. \
                Symbolic links are found but not followed. The paths can be given to the other \
                tools.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "glob": { "type": "string", "description": "Such as `*.rs` or `src/**/*.{js,ts}`." },
                    "path": {
                        "type": "string",
                        "description": "The directory to search. Default: the workspace."
                    },
                    "kind": {
                        "enum": ["file", "directory", "any"],
                        "description": "What to find. Default: file."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_FIND_PATHS,
                        "description": format!("At most so many paths. Default: {DEFAULT_FIND_PATHS}.")
                    },
                    "include_ignored": {
                        "type": "boolean",
                        "description": "Also find what .gitignore files name. Default: false."
                    }
                },
                "required": ["glob"],
                "additionalProperties": false
            }),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "paths": { "type": "array", "items": { "type": "string" } },
                    "truncated": { "type": "boolean" }
                },
                "required": ["paths", "truncated"]
            })),
            read_only: true,
            destructive: false,
            idempotent: true,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments = call.arguments()?;
            call.on_many(move |shared, job| find(shared, &arguments, job))
                .await
        })
    }
}

fn find(shared: &Shared, arguments: &Arguments, job: &Job) -> Result<ToolOutput, Refusal> {
    let glob = Glob::parse(&arguments.glob)?;
    let path = shared
        .root
        .inside(arguments.path.as_deref().unwrap_or("."))?;
    let wanted = arguments.kind.unwrap_or(Wanted::File);
    let limit = arguments
        .limit
        .unwrap_or(DEFAULT_FIND_PATHS)
        .clamp(1, MAX_FIND_PATHS);
    let start = shared.root.open_directory(&path)?;

    let mut text = String::new();
    let mut paths = Vec::new();
    let mut has_more = false;
    let report = walk(
        &shared.root,
        start,
        arguments.include_ignored,
        job,
        &mut |met| {
            if !wanted.includes(met.kind) || !glob.matches(met.below) {
                return Ok(ControlFlow::Continue(()));
            }
            if paths.len() >= limit || text.len() >= MAX_RESULT_BYTES {
                has_more = true;
                return Ok(ControlFlow::Break(()));
            }
            text.push_str(&shown(met.path));
            text.push('\n');
            paths.push(met.path.to_string_lossy().into_owned());
            Ok(ControlFlow::Continue(()))
        },
    )?;

    let mut notes = report.notes();
    if paths.is_empty() {
        notes.insert(0, format!("nothing matches `{}`", shown(&arguments.glob)));
    }
    if has_more {
        let paths = count(paths.len() as u64, "path is", "paths are");
        notes.insert(0, format!("only the first {paths} shown"));
    }
    let structured = json!({
        "paths": paths,
        "truncated": has_more || !report.is_complete(),
    });
    Ok(ToolOutput::structured(with_notes(text, &notes), structured))
}
