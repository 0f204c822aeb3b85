//! `grep`: lines that match a regular expression.

mod results;
mod search;

use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::json;

use crate::confine::Found;
use crate::definition::ToolDefinition;
use crate::glob::Glob;
use crate::job::Job;
use crate::limits::{DEFAULT_GREP_MATCHES, MAX_GREP_CONTEXT, MAX_GREP_MATCHES};
use crate::output::ToolOutput;
use crate::refusal::Refusal;
use crate::tool::{Answer, Call, Shared, Tool};
use crate::walk::{Kind, Report, walk};

use search::{Pattern, Search};

pub(crate) struct Grep;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    context: usize,
    limit: Option<usize>,
    #[serde(default)]
    include_ignored: bool,
}

impl Tool for Grep {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "grep",
            title: "Search in files",
            description: "Searches the text files of the workspace for lines that match a regular \
                expression (Rust syntax: no look-around, no back-references). Gives \
                `path:line:text` for each. Leaves out binary files, what .gitignore files name, \
                and `.git`; does not follow symbolic links.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "description": "The regular expression." },
                    "path": {
                        "type": "string",
                        "description": "The file or directory to search. Default: the workspace."
                    },
                    "glob": {
                        "type": "string",
                        "description": "Only files that match this, such as `*.rs` or `src/**/*.ts`."
                    },
                    "ignore_case": { "type": "boolean", "description": "Default: false." },
                    "literal": {
                        "type": "boolean",
                        "description": "The pattern is plain text. Default: false."
                    },
                    "context": {
                        "type": "integer",
                        "minimum": 0,
                        "maximum": MAX_GREP_CONTEXT,
                        "description": "Show so many lines before and after each match. Default: 0."
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_GREP_MATCHES,
                        "description": format!("At most so many matching lines. Default: {DEFAULT_GREP_MATCHES}.")
                    },
                    "include_ignored": {
                        "type": "boolean",
                        "description": "Also search what .gitignore files name. Default: false."
                    }
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "matches": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "path": { "type": "string" },
                                "line": { "type": "integer" },
                                "text": { "type": "string" },
                                "before": { "type": "array", "items": { "type": "string" } },
                                "after": { "type": "array", "items": { "type": "string" } }
                            },
                            "required": ["path", "line", "text"]
                        }
                    },
                    "truncated": { "type": "boolean" }
                },
                "required": ["matches", "truncated"]
            })),
            read_only: true,
            destructive: false,
            idempotent: true,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments = call.arguments()?;
            call.on_many(move |shared, job| grep(shared, &arguments, job))
                .await
        })
    }
}

fn grep(shared: &Shared, arguments: &Arguments, job: &Job) -> Result<ToolOutput, Refusal> {
    let pattern = Pattern::parse(&arguments.pattern, arguments.literal, arguments.ignore_case)?;
    let limit = arguments
        .limit
        .unwrap_or(DEFAULT_GREP_MATCHES)
        .clamp(1, MAX_GREP_MATCHES);
    let mut search = Search::new(pattern, arguments.context.min(MAX_GREP_CONTEXT), limit);
    let glob = arguments.glob.as_deref().map(Glob::parse).transpose()?;
    let path = shared
        .root
        .inside(arguments.path.as_deref().unwrap_or("."))?;
    let report = match shared.root.look_up(&path)? {
        Found::File(opened, real) => {
            match search.file(opened, &real, job)? {
                // Whether there was more is in the results.
                ControlFlow::Continue(()) | ControlFlow::Break(()) => Report::default(),
            }
        }
        Found::Directory(start) => walk(
            &shared.root,
            start,
            arguments.include_ignored,
            job,
            &mut |met| {
                let is_wanted = glob.as_ref().is_none_or(|glob| glob.matches(met.below));
                if met.kind != Kind::File || !is_wanted {
                    return Ok(ControlFlow::Continue(()));
                }
                search.met(met, job)
            },
        )?,
    };
    Ok(search.results.output(&report))
}
