//! What can be done with a session, one file for each kind of thing.

pub(crate) mod cached;
mod call;
mod definitions;
pub(crate) mod everywhere;
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

use cocode_client::{CallError, CompletionTarget, Deadlines, Manager, ServerName, Session};
use cocode_core::Dialect;

use crate::args::{CallArgs, Verb};
use crate::arguments::{Gathered, ReadStdin, pairs};
use crate::error::{CliError, Code};
use crate::gate::Gate;
use crate::handler::TerminalHandler;
use crate::hints::Doing;
use crate::naming::is_command;
use crate::printer::Printer;
use crate::trouble::About;

/// What is to be done, with everything read that can be before a server is there.
#[derive(Debug)]
pub(crate) enum Plan {
    Tools {
        name: Option<String>,
        /// How they are written, if not for people.
        dialect: Option<Dialect>,
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
    /// A prompt by its command.
    Command {
        command: String,
        words: Vec<String>,
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
    pub(crate) manager: &'a Manager,
    /// The one server.
    pub(crate) server: &'a ServerName,
    /// The session with it, as it was made.
    pub(crate) session: &'a Session,
    /// What errors tell of it.
    pub(crate) about: &'a About,
    /// How long a call may take, if the command line says.
    pub(crate) deadlines: Option<Deadlines>,
    pub(crate) printer: &'a Arc<Printer>,
    /// What may be called.
    pub(crate) gate: &'a Gate,
    pub(crate) handler: &'a TerminalHandler,
    /// When connecting began.
    pub(crate) begun: Instant,
}

impl Context<'_> {
    /// Says why something was not done.
    fn error(&self, error: &CallError) -> CliError {
        self.about.told(error, Doing::Other)
    }
}

impl Plan {
    pub(crate) fn of(verb: &Verb, read_stdin: ReadStdin<'_>) -> Result<Self, CliError> {
        Ok(match verb {
            Verb::Tools { words, .. } => {
                let name = optional(words, "tool")?;
                let dialect = verb.dialect();
                Self::Tools { name, dialect }
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
            Verb::Resources { templates, .. } => Self::Resources {
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
            Verb::Prompts { words, .. } => {
                let name = optional(words, "prompt")?;
                Self::Prompts { name }
            }
            Verb::Prompt {
                words,
                no_check,
                target,
            } => {
                let (name, arguments) = required(words, "prompt")?;
                if is_command(name) && !target.is_given() {
                    return Ok(Self::Command {
                        command: name.clone(),
                        words: arguments.to_vec(),
                        check: !no_check,
                    });
                }
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
            Self::Tools { name, dialect } => tools::run(context, name.as_deref(), dialect).await,
            Self::Call(call) => call.run(context).await,
            Self::Resources { templates: false } => resources::resources(context).await,
            Self::Resources { templates: true } => resources::templates(context).await,
            Self::Read { uri, output } => resources::read(context, &uri, output.as_deref()).await,
            Self::Prompts { name } => {
                let listing = prompts::list(context).await?;
                prompts::print(&listing, name.as_deref(), context.printer)
            }
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
            Self::Command {
                command,
                words,
                check,
            } => prompts::command(context, &command, &words, check).await,
            Self::Complete {
                target,
                argument,
                value,
                others,
            } => {
                let (manager, server) = (context.manager, context.server);
                let typed = (argument.as_str(), value.as_str());
                let completed = manager.complete(server, &target, typed, &others).await;
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
