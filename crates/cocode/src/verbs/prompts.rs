//! Lists prompts, fills them in, and completes arguments.

use std::collections::BTreeMap;

use cocode_client::{Completion, Listing, Prompt, PromptArgument, RequestError, RequestOptions};

use super::Context;
use super::listing::{print_raw, print_rows, quarantined_row, warn};
use crate::error::{CliError, Code};
use crate::hints::{Doing, request_error};
use crate::printer::Style;
use crate::render::{Row, content, rows};
use crate::text::{either, plain, summary, wrap};
use cocode_core::nearest;

/// With no more prompts than this, an error names all of them.
const MAX_NAMES_SHOWN: usize = 20;

pub(crate) async fn prompts(context: &Context<'_>) -> Result<(), CliError> {
    let listing = context.session.prompts().await;
    let listing = listing.map_err(|error| request_error(&error, Doing::Other))?;
    warn(context, "prompt", &listing);
    if context.printer.json() {
        return print_raw(context, "prompts", &listing.pages);
    }
    let items = listing.items.iter().map(|prompt| {
        let arguments = prompt.arguments.iter().map(|argument| {
            let name = plain(&argument.name);
            if argument.required {
                format!("{name}=…")
            } else {
                format!("[{name}=…]")
            }
        });
        Row {
            name: prompt.name.clone(),
            text: summary(
                prompt
                    .description
                    .as_deref()
                    .or(prompt.title.as_deref())
                    .unwrap_or_default(),
            ),
            note: arguments.collect::<Vec<_>>().join(" "),
        }
    });
    let list: Vec<Row> = items
        .chain(listing.quarantined.iter().map(quarantined_row))
        .collect();
    print_rows(context, &list, "the server has no prompts")
}

/// Shows one prompt in full.
pub(crate) async fn show(context: &Context<'_>, name: &str) -> Result<(), CliError> {
    let listing = context.session.prompts().await;
    let listing = listing.map_err(|error| request_error(&error, Doing::Other))?;
    let prompt = find(&listing, name)?;
    if context.printer.json() {
        return context.printer.out_line(prompt.raw.as_str());
    }
    let paint = context.printer.paint();
    let width = context.printer.width().saturating_sub(2);
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
    context.printer.out(format!("{}\n", lines.join("\n")))
}

/// Tells what is wrong with a name or arguments before the server is asked for the prompt.
pub(crate) async fn check(
    context: &Context<'_>,
    name: &str,
    arguments: &BTreeMap<String, String>,
) -> Result<(), CliError> {
    let listing = match context.session.prompts().await {
        Ok(listing) => listing,
        // A server need not list its prompts to have them.
        Err(RequestError::Rpc { .. }) => return Ok(()),
        Err(error) => return Err(request_error(&error, Doing::Other)),
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

pub(crate) async fn prompt(
    context: &Context<'_>,
    name: &str,
    arguments: &BTreeMap<String, String>,
) -> Result<(), CliError> {
    let result = context
        .session
        .get_prompt(name, arguments, RequestOptions::default())
        .await;
    let result = result.map_err(|error| request_error(&error, Doing::Other))?;
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

pub(crate) fn completions(
    context: &Context<'_>,
    completed: Result<Completion, RequestError>,
) -> Result<(), CliError> {
    let Completion {
        values,
        total,
        has_more,
        raw,
    } = completed.map_err(|error| request_error(&error, Doing::Other))?;
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
