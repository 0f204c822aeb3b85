//! Lists tools, or shows one of them in full.

use cocode_client::{Listing, Tool};
use serde_json::Value;

use super::Context;
use super::definitions::Definitions;
use super::listing::{print_raw, print_rows, quarantined_row, warn};
use crate::arguments::{InputSchema, Property};
use crate::error::{CliError, Code};
use crate::fleet::until;
use crate::gate::Gate;
use crate::printer::{Printer, Style};
use crate::render::{Row, marks, rows};
use crate::text::{cut, plain, summary, wrap};
use crate::trouble::About;
use cocode_core::{Dialect, nearest};

/// How much of a description a list at a terminal shows; all of it is shown for one tool.
const MAX_SUMMARY_CHARACTERS: usize = 160;

/// With no more tools than this, an error names all of them.
const MAX_NAMES_SHOWN: usize = 20;

/// What is to be seen of the tools of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The only tool.
    pub(super) name: Option<&'a str>,
    /// How they are written, if not for people.
    pub(super) dialect: Option<Dialect>,
    /// What errors tell of the server.
    pub(super) about: &'a About,
}

pub(super) async fn run(
    context: &Context<'_>,
    name: Option<&str>,
    dialect: Option<Dialect>,
) -> Result<(), CliError> {
    let listing = list(context).await?;
    let wanted = Wanted {
        name,
        dialect,
        about: context.about,
    };
    print(listing, wanted, context.gate, context.printer)
}

/// Prints tools, or one of them in full.
pub(super) fn print(
    mut listing: Listing<Tool>,
    wanted: Wanted<'_>,
    gate: &Gate,
    printer: &Printer,
) -> Result<(), CliError> {
    let Wanted {
        name,
        dialect,
        about,
    } = wanted;
    let all = listing.items.len();
    listing
        .items
        .retain(|tool| gate.shows(&tool.name, tool.annotations));
    let hidden = all - listing.items.len();
    let server = about.configured.as_ref().map(|spec| &spec.name);
    if let Some(name) = name {
        let tool = find(&listing, name, about)?;
        if let Some(dialect) = dialect {
            return Definitions::one(tool, server, dialect).print(printer);
        }
        if printer.json() {
            return printer.out_line(tool.raw.as_str());
        }
        return printer.out(detail(printer, tool));
    }
    if dialect.is_none() {
        warn(printer, "tool", &listing);
    }
    if hidden > 0 {
        let message = format!("{hidden} of {all} tools are hidden by filters or rules");
        printer.note(&message);
    }
    if let Some(dialect) = dialect {
        return Definitions::of(&listing, server, gate, dialect).print(printer);
    }
    if printer.json() {
        if hidden > 0 {
            let shown: Vec<&str> = listing.items.iter().map(|tool| tool.raw.as_str()).collect();
            let line = format!("{{\"tools\":[{}]}}", shown.join(","));
            return printer.out_line(&line);
        }
        return print_raw(printer, "tools", &listing.pages);
    }
    let usable = listing.items.iter().map(|tool| row_of(tool, printer));
    let list: Vec<Row> = usable
        .chain(listing.quarantined.iter().map(quarantined_row))
        .collect();
    print_rows(printer, &list, "the server has no tools")
}

/// A tool in a list.
pub(super) fn row_of(tool: &Tool, printer: &Printer) -> Row {
    let text = tool.description.as_deref().or(tool.title.as_deref());
    let text = summary(text.unwrap_or_default());
    Row {
        name: tool.name.clone(),
        text: if printer.stdout_is_terminal() {
            cut(&text, MAX_SUMMARY_CHARACTERS)
        } else {
            text
        },
        note: notes(tool),
    }
}

pub(super) async fn list(context: &Context<'_>) -> Result<Listing<Tool>, CliError> {
    let listing = context.manager.list_tools(context.server, until()).await;
    listing.map_err(|error| context.error(&error))
}

/// The tool of this name, or an error that helps to find the right one.
pub(super) fn find<'a>(
    listing: &'a Listing<Tool>,
    name: &str,
    about: &About,
) -> Result<&'a Tool, CliError> {
    if let Some(tool) = listing.items.iter().find(|tool| tool.name == name) {
        return Ok(tool);
    }
    let quarantined = listing
        .quarantined
        .iter()
        .find(|one| one.name.as_deref() == Some(name));
    if let Some(quarantined) = quarantined {
        let message = format!("the tool `{name}` cannot be used: {}", quarantined.reason);
        return Err(CliError::new(Code::UnusableTool, message)
            .hint("`call --no-check` calls it nevertheless"));
    }
    let mut error = CliError::new(
        Code::UnknownTool,
        format!("the server lists no tool `{name}`"),
    );
    let names = || listing.items.iter().map(|tool| tool.name.as_str());
    let close = nearest(name, names());
    if !close.is_empty() {
        let close: Vec<String> = close.iter().map(|name| format!("`{name}`")).collect();
        error = error.hint(format!("did you mean {}?", crate::text::either(&close)));
    }
    error = match listing.items.len() {
        0 => error.hint("it lists no tools at all"),
        1..=MAX_NAMES_SHOWN => error.hint(format!(
            "its tools are {}",
            names().collect::<Vec<_>>().join(", ")
        )),
        n_tools => error.hint(format!(
            "`cocode mcp tools {}` lists all {n_tools}",
            about.in_words()
        )),
    };
    if let Some(reason) = &listing.incomplete {
        error = error.hint(format!("the list is not complete: {reason}"));
    }
    Err(error.hint("`call --no-check` calls a tool that is not listed"))
}

/// Whether the tool can only be called as a task, which this client does not do.
pub(super) fn needs_tasks(tool: &Tool) -> bool {
    let raw: Result<Value, _> = tool.raw.decode();
    let support = raw.ok().map(|raw| {
        raw.pointer("/execution/taskSupport")
            .and_then(Value::as_str)
            == Some("required")
    });
    support.unwrap_or(false)
}

/// What is to be known about a tool before it is called.
fn notes(tool: &Tool) -> String {
    let marks = marks(tool.annotations);
    match (marks.is_empty(), needs_tasks(tool)) {
        (_, false) => marks,
        (true, true) => "[needs tasks]".to_owned(),
        (false, true) => format!("{marks} [needs tasks]"),
    }
}

fn detail(printer: &Printer, tool: &Tool) -> String {
    let (width, paint) = (printer.width(), printer.paint());
    let width = width.saturating_sub(2);
    let mut head = paint.paint(Style::Bold, &plain(&tool.name));
    if let Some(title) = tool.title.as_ref().filter(|title| **title != tool.name) {
        head = format!("{head} - {}", plain(title));
    }
    let marks = notes(tool);
    if !marks.is_empty() {
        head = format!("{head}  {}", paint.paint(Style::Dim, &marks));
    }
    let mut lines = vec![head];
    let description = tool.description.as_deref().unwrap_or_default().trim();
    lines.extend(
        wrap(description, width)
            .iter()
            .map(|line| format!("  {line}")),
    );
    lines.push(String::new());
    let arguments = arguments(tool);
    lines.push(match arguments.len() {
        0 => "no arguments are described".to_owned(),
        _ => "arguments".to_owned(),
    });
    lines.extend(
        rows(&arguments, width, paint)
            .lines()
            .map(|line| format!("  {line}")),
    );
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    format!("{}\n", lines.join("\n"))
}

/// One row for each argument and each member of it: name, type, limits, whether it is required,
/// default, and what it means.
fn arguments(tool: &Tool) -> Vec<Row> {
    let Ok(schema) = InputSchema::parse(&tool.input_schema) else {
        return Vec::new();
    };
    let mut list = Vec::new();
    for property in schema.properties() {
        list.push(row(&schema, &property, ""));
        let members = schema.members_of(property.schema);
        list.extend(members.iter().map(|member| row(&schema, member, "  ")));
    }
    list
}

fn row(schema: &InputSchema, property: &Property<'_>, indent: &str) -> Row {
    let Property {
        name,
        schema: own,
        required,
    } = property;
    let mut facts = vec![schema.describe(own)];
    facts.extend(limits(own));
    facts.extend(required.then(|| "required".to_owned()));
    let default = own.get("default");
    facts.extend(default.map(|default| format!("default {default}")));
    let description = own.get("description").and_then(Value::as_str);
    Row {
        name: format!("{indent}{name}"),
        text: facts.join(", "),
        note: summary(description.unwrap_or_default()),
    }
}

/// What a schema demands of a value beyond its type.
fn limits(schema: &Value) -> Vec<String> {
    let limits = [
        ("minimum", "at least ", ""),
        ("exclusiveMinimum", "more than ", ""),
        ("maximum", "at most ", ""),
        ("exclusiveMaximum", "less than ", ""),
        ("minLength", "at least ", " characters"),
        ("maxLength", "at most ", " characters"),
        ("minItems", "at least ", " items"),
        ("maxItems", "at most ", " items"),
        ("pattern", "matching ", ""),
        ("format", "format ", ""),
    ];
    let told = limits.iter().filter_map(|(keyword, before, after)| {
        let limit = match schema.get(keyword)? {
            Value::String(text) => plain(text),
            Value::Number(number) => number.to_string(),
            _ => return None,
        };
        Some(format!("{before}{limit}{after}"))
    });
    told.collect()
}
