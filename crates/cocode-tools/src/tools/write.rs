//! `write`: a whole file.

use serde::Deserialize;
use serde_json::json;

use crate::confine::{Kept, Missing, replace};
use crate::definition::ToolDefinition;
use crate::job::Job;
use crate::limits::MAX_WRITE_BYTES;
use crate::output::ToolOutput;
use crate::refusal::Refusal;
use crate::sandbox::Protection;
use crate::text::{count, shown};
use crate::tool::{Answer, Call, Shared, Tool};

pub(crate) struct Write;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

impl Tool for Write {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition {
            name: "write",
            title: "Write a file",
            description: "Writes a file of the workspace: makes it, with the directories that it \
                needs, or replaces all of its content. To change a part of a file use `edit`.",
            input_schema: json!({
                "type": "object",
                "properties": {
                    "path": {
                        "type": "string",
                        "description": "The file, relative to the workspace or absolute within it."
                    },
                    "content": { "type": "string", "description": "All of the file's text." }
                },
                "required": ["path", "content"],
                "additionalProperties": false
            }),
            output_schema: Some(json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "bytes": { "type": "integer" },
                    "created": { "type": "boolean", "description": "There was no such file before." }
                },
                "required": ["path", "bytes", "created"]
            })),
            read_only: false,
            destructive: true,
            idempotent: true,
        }
    }

    fn run<'a>(&'a self, call: Call<'a>) -> Answer<'a> {
        Box::pin(async move {
            let arguments: Arguments = call.arguments()?;
            if arguments.content.len() > MAX_WRITE_BYTES {
                return Err(call.wrong(format!(
                    "the content is longer than {MAX_WRITE_BYTES} bytes"
                )));
            }
            let protection = call.sandbox.protection();
            call.on_file(move |shared, job| write(shared, &arguments, protection, job))
                .await
        })
    }
}

fn write(
    shared: &Shared,
    arguments: &Arguments,
    protection: Protection,
    job: &Job,
) -> Result<ToolOutput, Refusal> {
    let Arguments { path, content } = arguments;
    let path = shared.root.inside(path)?;
    let (place, _writing) = shared.change(&path, Missing::DirectoriesMade, protection, job)?;
    let kept = Kept::look(&place, &path)?;
    replace(&place, &path, kept.as_ref(), content.as_bytes(), job)?;

    let real = place.path();
    let verb = if kept.is_some() {
        "replaced"
    } else {
        "created"
    };
    let bytes = count(content.len() as u64, "byte", "bytes");
    Ok(ToolOutput::structured(
        format!("{verb} {} ({bytes})", shown(&real)),
        json!({
            "path": real.to_string_lossy(),
            "bytes": content.len(),
            "created": kept.is_none(),
        }),
    ))
}
