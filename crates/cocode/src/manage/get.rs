//! Shows one server as it is configured.

use cocode_config::visible;
use serde::Serialize;
use serde_json::Value;

use super::exchange::provenance;
use super::report::{ServerReport, entry_object};
use crate::args::manage::GetArgs;
use crate::error::{CliError, Exit};
use crate::naming;
use crate::printer::{Style, print_json};
use crate::text::plain;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    server: ServerReport<'a>,
    #[serde(rename = "importedFrom", skip_serializing_if = "Option::is_none")]
    imported_from: Option<String>,
    entry: Value,
}

pub(crate) fn run(args: &GetArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let name = args.name.as_str();
    let Some(server) = config.servers.get(name) else {
        workspace.warn_of_files(config);
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        return Err(naming::unknown(name, &names));
    };
    let printer = &workspace.printer;
    let report = ServerReport::of(name, server);
    let imported_from = provenance::of(&server.winner.found.origin);
    if printer.json() {
        let report = Report {
            server: report,
            imported_from,
            entry: entry_object(&server.winner.found.entry),
        };
        return print_json(printer, &report).map(|()| Exit::Ok);
    }
    let paint = printer.paint();
    let mut lines = vec![paint.paint(Style::Bold, &visible(name))];
    let state = match &report.reason {
        Some(reason) => format!("{} ({reason})", report.state),
        None => report.state.to_owned(),
    };
    let scope = match report.entry.plugin {
        Some(plugin) => format!("plugin {plugin}"),
        None => report.entry.scope.to_owned(),
    };
    for (label, value) in [
        ("state", state),
        ("scope", scope),
        ("file", server.winner.found.origin.to_string()),
        ("transport", report.entry.transport.to_owned()),
    ] {
        lines.push(format!("  {label}: {}", plain(&value)));
    }
    if let Some(from) = imported_from {
        lines.push(format!("  imported from: {}", plain(&from)));
    }
    for line in server.winner.found.entry.lines() {
        if line.key == "transport" {
            continue;
        }
        lines.push(format!("  {} = {}", line.shown_key(), line.shown()));
    }
    lines.push(String::new());
    lines.push(paint.paint(
        Style::Dim,
        &format!(
            "`cocode mcp explain {}` says where each value comes from",
            visible(name)
        ),
    ));
    printer.out(format!("{}\n", lines.join("\n")))?;
    Ok(Exit::Ok)
}
