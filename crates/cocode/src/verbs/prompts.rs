//! Lists prompts, fills them in, and completes arguments.

use std::collections::BTreeMap;

use cocode_client::{
    CallError, Completion, Listing, Prompt, PromptArgument, PromptCommand, PromptError,
    RequestError, RequestOptions,
};

use super::Context;
use super::listing::{print_raw, print_rows, quarantined_row, warn};
use crate::arguments::pairs;
use crate::error::{CliError, Code};
use crate::fleet::until;
use crate::naming;
use crate::printer::{Printer, Style};
use crate::render::{Row, content, rows};
use crate::text::{either, plain, summary, wrap};
use cocode_core::nearest;

/// With no more prompts than this, an error names all of them.
const MAX_NAMES_SHOWN: usize = 20;

pub(super) async fn list(context: &Context<'_>) -> Result<Listing<Prompt>, CliError> {
    let listing = context.manager.list_prompts(context.server, until()).await;
    listing.map_err(|error| context.error(&error))
}

/// Prints prompts, or one of them in full.
pub(super) fn print(
    listing: &Listing<Prompt>,
    name: Option<&str>,
    printer: &Printer,
) -> Result<(), CliError> {
    if let Some(name) = name {
        return show(listing, name, printer);
    }
    warn(printer, "prompt", listing);
    if printer.json() {
        return print_raw(printer, "prompts", &listing.pages);
    }
    let list: Vec<Row> = listing
        .items
        .iter()
        .map(row_of)
        .chain(listing.quarantined.iter().map(quarantined_row))
        .collect();
    print_rows(printer, &list, "the server has no prompts")
}

/// A prompt in a list.
pub(super) fn row_of(prompt: &Prompt) -> Row {
    let arguments = prompt.arguments.iter().map(|argument| {
        let name = plain(&argument.name);
        if argument.required {
            format!("{name}=…")
        } else {
            format!("[{name}=…]")
        }
    });
    let text = prompt.description.as_deref().or(prompt.title.as_deref());
    Row {
        name: prompt.name.clone(),
        text: summary(text.unwrap_or_default()),
        note: arguments.collect::<Vec<_>>().join(" "),
    }
}

/// Shows one prompt in full.
fn show(listing: &Listing<Prompt>, name: &str, printer: &Printer) -> Result<(), CliError> {
    let prompt = find(listing, name)?;
    if printer.json() {
        return printer.out_line(prompt.raw.as_str());
    }
    let paint = printer.paint();
    let width = printer.width().saturating_sub(2);
    let mut head = paint.paint(Style::Bold, &plain(&prompt.name));
    if let Some(title) = prompt.title.as_ref().filter(|title| **title != prompt.name) {
        head = format!("{head} - {}", plain(title));
    }
    let description = prompt.description.as_deref().unwrap_or_default().trim();
    let arguments: Vec<Row> = prompt
        .arguments
        .iter()
        .map(|argument| Row {
            name: argument.name.clone(),
            text: if argument.required {
                "required"
            } else {
                "optional"
            }
            .to_owned(),
            note: summary(argument.description.as_deref().unwrap_or_default()),
        })
        .collect();
    let title = match arguments.len() {
        0 => "no arguments are described",
        _ => "arguments",
    };
    let rows = rows(&arguments, width, paint);
    let mut lines = vec![head];
    lines.extend(
        wrap(description, width)
            .iter()
            .map(|line| format!("  {line}")),
    );
    lines.extend([String::new(), title.to_owned()]);
    lines.extend(rows.lines().map(|line| format!("  {line}")));
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    printer.out(format!("{}\n", lines.join("\n")))
}

/// Tells what is wrong with a name or arguments before the server is asked for the prompt.
pub(super) async fn check(
    context: &Context<'_>,
    name: &str,
    arguments: &BTreeMap<String, String>,
) -> Result<(), CliError> {
    let listing = match context.manager.list_prompts(context.server, until()).await {
        Ok(listing) => listing,
        // A server need not list its prompts to have them.
        Err(CallError::Asking {
            error: RequestError::Rpc { .. },
            ..
        }) => return Ok(()),
        Err(error) => return Err(context.error(&error)),
    };
    let prompt = find(&listing, name)?;
    let names = || prompt.arguments.iter().map(|one| one.name.as_str());
    if let Some(unknown) = arguments
        .keys()
        .find(|key| names().all(|name| name != *key))
    {
        let message = format!("prompt `{name}` has no argument `{unknown}`");
        let mut error = CliError::new(Code::InvalidArguments, message);
        if let Some(close) = nearest(unknown, names()).first() {
            error = error.hint(format!("did you mean `{close}`?"));
        }
        return Err(error
            .hint(usage(prompt))
            .hint("`--no-check` sends it nevertheless"));
    }
    let missing = prompt.arguments.iter().filter(|one| one.required);
    let missing: Vec<String> = missing
        .filter(|one| !arguments.contains_key(&one.name))
        .map(|one| format!("`{}`", one.name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("prompt `{name}` needs {}", missing.join(" and "));
    Err(CliError::new(Code::InvalidArguments, message)
        .hint(usage(prompt))
        .hint("write key=value for each"))
}

/// Gets a prompt by the command it is known by, with arguments by place or by name.
pub(super) async fn command(
    context: &Context<'_>,
    command: &str,
    words: &[String],
    check: bool,
) -> Result<(), CliError> {
    if !check {
        let names = [context.server.as_str()];
        let split = naming::split(command.trim_start_matches('/'), &names);
        let name = split.map_or_else(|| command.to_owned(), |(_, name)| name);
        return prompt(context, &name, &pairs(words)?).await;
    }
    let listing = list(context).await?;
    let catalog = context.manager.catalog();
    let understood = PromptCommand::from_words(command, words.to_vec(), &catalog);
    let understood = understood.map_err(|error| {
        let code = match error {
            PromptError::Unknown { .. } | PromptError::NotAPrompt => Code::UnknownPrompt,
            _ => Code::InvalidArguments,
        };
        let told = CliError::new(code, error.to_string());
        if code == Code::UnknownPrompt && listing.items.is_empty() {
            return told.hint("its server lists no prompts at all");
        }
        told
    })?;
    prompt(context, &understood.prompt, &understood.arguments).await
}

/// All arguments of the prompt in one sentence.
fn usage(prompt: &Prompt) -> String {
    if prompt.arguments.is_empty() {
        return "it takes no arguments".to_owned();
    }
    let one = |one: &PromptArgument| {
        let required = if one.required { " (required)" } else { "" };
        format!("{}{required}", one.name)
    };
    let all: Vec<String> = prompt.arguments.iter().map(one).collect();
    format!("its arguments are {}", all.join(", "))
}

/// The prompt of this name, or an error that helps to find the right one.
fn find<'a>(listing: &'a Listing<Prompt>, name: &str) -> Result<&'a Prompt, CliError> {
    if let Some(prompt) = listing.items.iter().find(|prompt| prompt.name == name) {
        return Ok(prompt);
    }
    let message = format!("the server lists no prompt `{name}`");
    let mut error = CliError::new(Code::UnknownPrompt, message);
    let names = || listing.items.iter().map(|prompt| prompt.name.as_str());
    let close: Vec<String> = nearest(name, names())
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    if !close.is_empty() {
        error = error.hint(format!("did you mean {}?", either(&close)));
    }
    error = match listing.items.len() {
        0 => error.hint("it lists no prompts at all"),
        1..=MAX_NAMES_SHOWN => {
            let names: Vec<&str> = names().collect();
            error.hint(format!("its prompts are {}", names.join(", ")))
        }
        n_prompts => error.hint(format!("`cocode mcp prompts` lists all {n_prompts}")),
    };
    if let Some(reason) = &listing.incomplete {
        error = error.hint(format!("the list is not complete: {reason}"));
    }
    Err(error.hint("`prompt --no-check` asks for one that is not listed"))
}

pub(super) async fn prompt(
    context: &Context<'_>,
    name: &str,
    arguments: &BTreeMap<String, String>,
) -> Result<(), CliError> {
    let command = PromptCommand {
        server: context.server.clone(),
        prompt: name.to_owned(),
        arguments: arguments.clone(),
    };
    let got = context.manager.prompt(&command, RequestOptions::default());
    let result = got.await.map_err(|error| context.error(&error))?;
    if context.printer.json() {
        return context.printer.out_line(result.raw.as_str());
    }
    let paint = context.printer.paint();
    let mut text = String::new();
    for message in result.messages() {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&paint.paint(Style::Bold, &format!("{}:", plain(&message.role))));
        text.push('\n');
        let content = content(&message.content, None)?;
        text.push_str(&context.printer.for_stdout(content));
    }
    if text.is_empty() {
        context.printer.warn("the prompt has no messages");
    }
    context.printer.out(text)
}

pub(super) fn completions(
    context: &Context<'_>,
    completed: Result<Completion, CallError>,
) -> Result<(), CliError> {
    let Completion {
        values,
        total,
        has_more,
        raw,
    } = completed.map_err(|error| context.error(&error))?;
    if context.printer.json() {
        return context.printer.out_line(raw.as_str());
    }
    let mut lines = String::new();
    for value in &values {
        lines.push_str(&plain(value));
        lines.push('\n');
    }
    context.printer.out(lines)?;
    let shown = u64::try_from(values.len()).unwrap_or(u64::MAX);
    match total.filter(|total| *total > shown) {
        Some(total) => context.printer.note(&format!("{shown} of {total} shown")),
        None if has_more => context.printer.note("there are more"),
        None => {}
    }
    Ok(())
}
