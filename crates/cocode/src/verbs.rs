//! What can be done with a session, one file for each kind of thing.

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
use crate::error::CliError;
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
    /// When connecting began.
    pub(crate) begun: Instant,
}

impl Plan {
    pub(crate) fn of(verb: &Verb, read_stdin: ReadStdin<'_>) -> Result<Self, CliError> {
        Ok(match verb {
            Verb::Tools { name, target: _ } => Self::Tools { name: name.clone() },
            Verb::Call(args) => {
                let CallArgs {
                    tool,
                    arguments,
                    args,
                    no_check,
                    save,
                    target: _,
                } = args;
                Self::Call(call::Call {
                    tool: tool.clone(),
                    gathered: Gathered::read(arguments, args.as_deref(), read_stdin)?,
                    check: !no_check,
                    save: save.clone(),
                })
            }
            Verb::Resources {
                templates,
                target: _,
            } => Self::Resources {
                templates: *templates,
            },
            Verb::Read {
                uri,
                output,
                target: _,
            } => {
                let (uri, output) = (uri.clone(), output.clone());
                Self::Read { uri, output }
            }
            Verb::Prompts { name, target: _ } => Self::Prompts { name: name.clone() },
            Verb::Prompt {
                name,
                arguments,
                no_check,
                target: _,
            } => Self::Prompt {
                name: name.clone(),
                arguments: pairs(arguments)?,
                check: !no_check,
            },
            Verb::Complete {
                prompt,
                resource,
                argument,
                value,
                others,
                target: _,
            } => {
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
            Verb::Ping { target: _ } => Self::Ping,
            Verb::Inspect { target: _ } => Self::Inspect,
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
