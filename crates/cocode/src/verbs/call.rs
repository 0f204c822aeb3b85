//! Calls a tool and shows what it gave.

use std::cell::RefCell;
use std::path::PathBuf;

use cocode_client::{
    Annotations, CallContext, CallResult, Called, Check, Content, Output, OutputWanted, RawJson,
    Tool,
};

use super::{Context, tools};
use crate::arguments::{Gathered, InputSchema};
use crate::environment;
use crate::error::{CliError, Code};
use crate::hints::Doing;
use crate::progress::reporter;
use crate::render::{Saver, content, ended};
use crate::text::plain;

/// A call that is to be made.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) gathered: Gathered,
    /// Check and convert the arguments, by what the server says of the tool.
    pub(crate) check: bool,
    pub(crate) save: Option<PathBuf>,
}

/// A tool, as far as it is known.
struct Known {
    schema: Option<InputSchema>,
    annotations: Annotations,
    /// From a list that was read before: the server may have changed its mind since.
    is_remembered: bool,
}

impl Call {
    pub(crate) async fn run(self, context: &Context<'_>) -> Result<(), CliError> {
        let known = if self.check {
            Some(self.known(context).await?)
        } else {
            None
        };
        let annotations = known.as_ref().map(|known| known.annotations);
        context
            .gate
            .pass(&self.tool, annotations.unwrap_or_default(), context.handler)
            .await?;
        let arguments = self.arguments(context, known).await?;
        let called = self.called(context, &arguments).await?;
        self.show(context, &called)
    }

    /// What is known of the tool, from a list that is fresh or is read now.
    async fn known(&self, context: &Context<'_>) -> Result<Known, CliError> {
        let (manager, server) = (context.manager, context.server);
        match manager.fresh_tool(server, &self.tool) {
            Some(listed) => self.look_at(context, &listed.tool, true),
            None => self.ask(context).await,
        }
    }

    async fn ask(&self, context: &Context<'_>) -> Result<Known, CliError> {
        let listing = tools::list(context).await?;
        self.look_at(
            context,
            tools::find(&listing, &self.tool, context.about)?,
            false,
        )
    }

    /// The schema of the tool's arguments and what the server says of its effects.
    fn look_at(
        &self,
        context: &Context<'_>,
        found: &Tool,
        is_remembered: bool,
    ) -> Result<Known, CliError> {
        let tool = plain(&self.tool);
        if tools::needs_tasks(found) {
            let message =
                format!("the tool `{tool}` can only be called as a task, which is not supported");
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
        Ok(Known {
            schema,
            annotations: found.annotations,
            is_remembered,
        })
    }

    /// The arguments as the tool wants them. Nothing is refused for a schema that is only
    /// remembered.
    async fn arguments(
        &self,
        context: &Context<'_>,
        known: Option<Known>,
    ) -> Result<RawJson, CliError> {
        let fit = |known: Option<&Known>| {
            let warnings = RefCell::new(Vec::new());
            let schema = known.and_then(|known| known.schema.as_ref());
            let fitted = self.gathered.fit(&self.tool, schema, &|message| {
                warnings.borrow_mut().push(message.to_owned());
            });
            (fitted, warnings.into_inner())
        };
        let (mut fitted, mut warnings) = fit(known.as_ref());
        let is_remembered = known.is_some_and(|known| known.is_remembered);
        if is_remembered && (fitted.is_err() || !warnings.is_empty()) {
            (fitted, warnings) = fit(Some(&self.ask(context).await?));
        }
        for warning in warnings {
            context.printer.warn(&warning);
        }
        fitted
    }

    async fn called(&self, context: &Context<'_>, arguments: &RawJson) -> Result<Called, CliError> {
        let printer = context.printer;
        // A program that reads our output wants all of it, unless somebody has set a limit.
        let is_limited = printer.stdout_is_terminal()
            || environment::text_variable("MAX_MCP_OUTPUT_TOKENS").is_some();
        let for_people = is_limited && !printer.json() && self.save.is_none();
        let wishes = CallContext {
            deadlines: context.deadlines,
            on_progress: reporter(printer),
            output: if for_people {
                OutputWanted::Limited
            } else {
                OutputWanted::Whole
            },
            check: if self.check {
                Check::Arguments
            } else {
                Check::Nothing
            },
            ..CallContext::default()
        };
        let (manager, server) = (context.manager, context.server);
        let calling = manager.call_tool(server, &self.tool, Some(arguments), wishes);
        let called = Box::pin(calling).await;
        printer.end_bar();
        let called = called.map_err(|error| context.about.told(&error, Doing::Call))?;
        if let Some(mismatch) = &called.output_mismatch {
            let problems = mismatch.problems().iter().map(ToString::to_string);
            let problems: Vec<String> = problems.collect();
            printer.warn(&format!(
                "the structured content is not what the tool promises: {}",
                problems.join("; ")
            ));
        }
        match &called.output {
            Output::Large { tokens } => {
                printer.note(&format!("a large result: about {tokens} tokens"));
            }
            Output::Shortened { tokens, handle } => {
                let whole = match handle {
                    Some(handle) => format!("; `cocode mcp result show {handle}` has all of it"),
                    None => "; the rest could not be kept, and `--json` prints it".to_owned(),
                };
                printer.warn(&format!(
                    "the result is too large to be shown, about {tokens} tokens{whole}"
                ));
            }
            _ => {}
        }
        Ok(called)
    }

    fn show(self, context: &Context<'_>, called: &Called) -> Result<(), CliError> {
        let Self { tool, save, .. } = self;
        let result = &called.result;
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
            let shown = shown(result, saver.as_ref())?;
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
