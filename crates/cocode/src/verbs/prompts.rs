//! Lists prompts, fills them in, and completes arguments.

use std::collections::BTreeMap;

use cocode_client::{Completion, RequestError, RequestOptions};

use super::Context;
use super::listing::{print_raw, print_rows, quarantined_row, warn};
use crate::error::CliError;
use crate::hints::{Doing, request_error};
use crate::printer::Style;
use crate::render::{Row, content};
use crate::text::{plain, summary};

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
