//! Calls a tool and shows what it gave.

use std::path::PathBuf;

use cocode_client::{Annotations, CallResult, Content, RequestOptions};

use super::{Context, tools};
use crate::arguments::{Gathered, InputSchema};
use crate::error::{CliError, Code};
use crate::hints::{Doing, request_error};
use crate::progress::reporter;
use crate::render::{Saver, content, ended};
use crate::text::plain;

/// A call that is to be made.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) gathered: Gathered,
    /// Ask the server for its tools first.
    pub(crate) check: bool,
    pub(crate) save: Option<PathBuf>,
}

impl Call {
    pub(crate) async fn run(self, context: &Context<'_>) -> Result<(), CliError> {
        let Self {
            tool,
            gathered,
            check,
            save,
        } = self;
        let (schema, annotations) = if check {
            schema_of(context, &tool).await?
        } else {
            (None, Annotations::default())
        };
        context
            .gate
            .pass(&tool, annotations, context.handler)
            .await?;
        let arguments = gathered.fit(&tool, schema.as_ref(), &|message| {
            context.printer.warn(message);
        })?;
        let options = RequestOptions {
            on_progress: reporter(context.printer),
            ..RequestOptions::default()
        };
        let called = context
            .session
            .call_tool(&tool, Some(&arguments), options)
            .await;
        context.printer.end_bar();
        let result = called.map_err(|error| request_error(&error, Doing::Call))?;
        let saver = save.map(|directory| Saver {
            directory,
            stem: tool.clone(),
        });
        if context.printer.json() {
            context.printer.out_line(result.raw.as_str())?;
            if let Some(saver) = &saver {
                for block in &result.content() {
                    if let Some(path) = saver.save_content(block)? {
                        context.printer.saved(&path);
                    }
                }
            }
        } else {
            let shown = shown(&result, saver.as_ref())?;
            if result.is_error {
                context.printer.err_text(&context.printer.for_stderr(shown));
            } else {
                context.printer.out(context.printer.for_stdout(shown))?;
            }
        }
        if result.is_error {
            let message = format!("the tool `{}` reported an error", plain(&tool));
            return Err(CliError::new(Code::ToolError, message));
        }
        Ok(())
    }
}

/// The schema of the tool's arguments and what the server says of its effects.
async fn schema_of(
    context: &Context<'_>,
    tool: &str,
) -> Result<(Option<InputSchema>, Annotations), CliError> {
    let listing = tools::list(context).await?;
    let found = tools::find(&listing, tool)?;
    if tools::needs_tasks(found) {
        let message = format!(
            "the tool `{}` can only be called as a task, which is not supported",
            plain(tool)
        );
        return Err(CliError::new(Code::UnusableTool, message)
            .hint("`call --no-check` calls it nevertheless"));
    }
    let schema = InputSchema::parse(&found.input_schema);
    let schema = schema
        .map_err(|error| {
            let message = format!(
                "the schema of `{tool}` cannot be read ({error}); values are sent as texts"
            );
            context.printer.warn(&message);
        })
        .ok();
    Ok((schema, found.annotations))
}

/// A result as people want to see it.
fn shown(result: &CallResult, saver: Option<&Saver>) -> Result<String, CliError> {
    let blocks = result.content();
    let mut text = String::new();
    for block in &blocks {
        text.push_str(&content(block, saver)?);
    }
    let has_text = blocks.iter().any(|block| matches!(block, Content::Text(_)));
    match result.structured() {
        // Servers repeat structured content as text, for those who know only text.
        Some(structured) if !has_text => text.push_str(&ended(structured.as_str().to_owned())),
        None if blocks.is_empty() => text.push_str(&ended(unusual(result))),
        _ => {}
    }
    Ok(text)
}

/// A result without content: nothing to say if it is only empty, else all of it.
fn unusual(result: &CallResult) -> String {
    let members = crate::arguments::members(result.raw.as_str()).unwrap_or_default();
    let has_content = members.iter().any(|(key, _)| key.get() == "\"content\"");
    if has_content {
        "(the result is empty)".to_owned()
    } else {
        result.raw.as_str().to_owned()
    }
}
