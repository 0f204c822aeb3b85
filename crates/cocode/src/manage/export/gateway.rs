//! Tells other tools of a gateway instead of its servers: one entry with an address, to be pasted or
//! written.

use cocode_client::Url;
use cocode_config::{Entry, Place, Tool, Transport};
use serde::Serialize;

use super::super::exchange::select::{Action, Row, plan};
use crate::error::{CliError, Code};
use crate::gateway::clients::{self, Client};
use crate::printer::{Printer, Style, print_json};

/// What is to be pasted for one tool.
#[derive(Serialize)]
struct Paste<'a> {
    tool: &'static str,
    file: String,
    /// What the file has, if there is nothing else in it.
    text: &'a str,
    /// A command that does the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
}

/// What is to be typed or pasted for one tool, in one line.
#[derive(Serialize)]
struct OneLine<'a> {
    tool: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'static str>,
    line: &'a str,
}

/// The entry for a gateway.
pub(super) fn row(url: &str) -> Result<Row, CliError> {
    let is_http = |url: &Url| matches!(url.scheme(), "http" | "https");
    if !Url::parse(url).is_ok_and(|url| is_http(&url)) {
        let message = format!("`{url}` is no address of a gateway");
        let error = CliError::new(Code::InvalidUsage, message);
        if !url.contains(':') {
            let ids = Tool::ALL.map(Tool::id);
            let known = ids.iter().find(|id| id.starts_with(url));
            let tool = known.copied().unwrap_or("TOOL");
            return Err(error.hint(format!(
                "the tool comes first: `cocode mcp export {tool} --gateway http://127.0.0.1:7777/mcp`"
            )));
        }
        return Err(
            error.hint("`cocode gateway` prints its address, as in http://127.0.0.1:7777/mcp")
        );
    }
    let entry = Entry {
        transport: Some(Transport::Http),
        url: Some(url.to_owned()),
        ..Entry::default()
    };
    Ok(Row {
        name: clients::NAME.to_owned(),
        entry,
        action: Action::Add,
        reason: None,
        notes: Vec::new(),
    })
}

/// Prints what to type or paste for the tools that most people use.
pub(super) fn print_lines(url: &str, printer: &Printer) -> Result<(), CliError> {
    row(url)?;
    for client in clients::lines(url, clients::Entry::Open) {
        if printer.json() {
            let line = OneLine {
                tool: client.id,
                file: client.file,
                line: &client.line,
            };
            print_json(printer, &line)?;
            continue;
        }
        printer.out_line(&client.told(printer.paint()))?;
    }
    Ok(())
}

/// Prints what to paste into the file of a tool, and changes nothing.
pub(super) fn print(
    url: &str,
    tool: Tool,
    place: &Place,
    printer: &Printer,
) -> Result<(), CliError> {
    let planned = plan(tool, place, None, vec![row(url)?], false)?;
    let Some(text) = planned.text else {
        let reasons = planned.rows.into_iter().filter_map(|row| row.reason);
        let message = format!("{} cannot use a gateway by its address", tool.title());
        let mut error = CliError::new(Code::InvalidUsage, message);
        error.causes.extend(reasons);
        return Err(error);
    };
    let lines = clients::lines(url, clients::Entry::Open);
    let command = lines.iter().find(|client| client.id == tool.id());
    let command = command.filter(|client| client.file.is_none());
    let command = command.map(|Client { line, .. }| line.as_str());
    let file = place.path.display().to_string();
    if printer.json() {
        let paste = Paste {
            tool: tool.id(),
            file,
            text: &text,
            command,
        };
        return print_json(printer, &paste);
    }
    printer.note(&format!(
        "{}: paste this into {file}, or let `--write` do it",
        tool.title()
    ));
    printer.out(&text)?;
    if !text.ends_with('\n') {
        printer.out_line("")?;
    }
    if let Some(command) = command {
        let command = printer.error_paint().paint(Style::Bold, command);
        printer.note(&format!("or type: {command}"));
    }
    Ok(())
}
