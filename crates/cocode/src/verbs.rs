//! What can be done with a session, one file for each kind of thing.

pub(crate) mod all_tools;
mod call;
mod inspect;
mod listing;
mod ping;
mod prompts;
mod resources;
mod tools;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use cocode_client::{CompletionTarget, Session};

use crate::args::{CallArgs, Verb};
use crate::arguments::{Gathered, ReadStdin, pairs};
use crate::error::{CliError, Code};
use crate::gate::Gate;
use crate::handler::TerminalHandler;
use crate::printer::Printer;

/// What is to be done, with everything read that can be before a server is there.
#[derive(Debug)]
pub(crate) enum Plan {
    Tools {
        name: Option<String>,
    },
    Call(call::Call),
    Resources {
        templates: bool,
    },
    Read {
        uri: String,
        output: Option<PathBuf>,
    },
    Prompts {
        name: Option<String>,
    },
    Prompt {
        name: String,
        arguments: BTreeMap<String, String>,
        /// Ask the server for its prompts first.
        check: bool,
    },
    Complete {
        target: CompletionTarget,
        argument: String,
        value: String,
        others: BTreeMap<String, String>,
    },
    Ping,
    Inspect,
}

/// What the work has to work with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context<'a> {
    pub(crate) session: &'a Session,
    pub(crate) printer: &'a Arc<Printer>,
    /// What may be called.
    pub(crate) gate: &'a Gate,
    pub(crate) handler: &'a TerminalHandler,
    /// When connecting began.
    pub(crate) begun: Instant,
}

impl Plan {
    pub(crate) fn of(verb: &Verb, read_stdin: ReadStdin<'_>) -> Result<Self, CliError> {
        Ok(match verb {
            Verb::Tools { words, target: _ } => {
                let name = optional(words, "tool")?;
                Self::Tools { name }
            }
            Verb::Call(args) => {
                let CallArgs {
                    words,
                    args,
                    no_check,
                    save,
                    target: _,
                } = args;
                let (tool, arguments) = required(words, "tool")?;
                Self::Call(call::Call {
                    tool: tool.clone(),
                    gathered: Gathered::read(arguments, args.as_deref(), read_stdin)?,
                    check: !no_check,
                    save: save.clone(),
                })
            }
            Verb::Resources {
                server: _,
                templates,
                target: _,
            } => Self::Resources {
                templates: *templates,
            },
            Verb::Read {
                words,
                output,
                target: _,
            } => {
                let (uri, rest) = required(words, "resource")?;
                nothing_more(rest)?;
                let (uri, output) = (uri.clone(), output.clone());
                Self::Read { uri, output }
            }
            Verb::Prompts { words, target: _ } => {
                let name = optional(words, "prompt")?;
                Self::Prompts { name }
            }
            Verb::Prompt {
                words,
                no_check,
                target: _,
            } => {
                let (name, arguments) = required(words, "prompt")?;
                Self::Prompt {
                    name: name.clone(),
                    arguments: pairs(arguments)?,
                    check: !no_check,
                }
            }
            Verb::Complete {
                prompt,
                resource,
                words,
                target: _,
            } => {
                let (argument, rest) = required(words, "argument")?;
                let (value, others) = required(rest, "value")?;
                // The command line has exactly one of the two.
                let of_resource = resource.clone().map(CompletionTarget::Resource);
                let of_prompt = || CompletionTarget::Prompt(prompt.clone().unwrap_or_default());
                Self::Complete {
                    target: of_resource.unwrap_or_else(of_prompt),
                    argument: argument.clone(),
                    value: value.clone(),
                    others: pairs(others)?,
                }
            }
            Verb::Ping { .. } => Self::Ping,
            Verb::Inspect { .. } => Self::Inspect,
        })
    }

    pub(crate) async fn run(self, context: &Context<'_>) -> Result<(), CliError> {
        match self {
            Self::Tools { name } => tools::run(context, name.as_deref()).await,
            Self::Call(call) => call.run(context).await,
            Self::Resources { templates: false } => resources::resources(context).await,
            Self::Resources { templates: true } => resources::templates(context).await,
            Self::Read { uri, output } => resources::read(context, &uri, output.as_deref()).await,
            Self::Prompts { name: None } => prompts::prompts(context).await,
            Self::Prompts { name: Some(name) } => prompts::show(context, &name).await,
            Self::Prompt {
                name,
                arguments,
                check,
            } => {
                if check {
                    prompts::check(context, &name, &arguments).await?;
                }
                prompts::prompt(context, &name, &arguments).await
            }
            Self::Complete {
                target,
                argument,
                value,
                others,
            } => {
                let completed = context
                    .session
                    .complete(&target, &argument, &value, &others)
                    .await;
                prompts::completions(context, completed)
            }
            Self::Ping => ping::run(context).await,
            Self::Inspect => inspect::run(context).await,
        }
    }
}

/// The first word, which has to be there, and the rest.
fn required<'a>(words: &'a [String], what: &str) -> Result<(&'a String, &'a [String]), CliError> {
    words.split_first().ok_or_else(|| {
        let message = format!("no {what} is given");
        CliError::new(Code::InvalidUsage, message)
    })
}

/// The only word, if there is one.
fn optional(words: &[String], what: &str) -> Result<Option<String>, CliError> {
    if words.is_empty() {
        return Ok(None);
    }
    let (first, rest) = required(words, what)?;
    nothing_more(rest)?;
    Ok(Some(first.clone()))
}

fn nothing_more(rest: &[String]) -> Result<(), CliError> {
    match rest.first() {
        None => Ok(()),
        Some(word) => {
            let message = format!("`{}` is one word too many", crate::text::plain(word));
            Err(CliError::new(Code::InvalidUsage, message)
                .hint("a server given by `--url` or `--` has no name before that"))
        }
    }
}
