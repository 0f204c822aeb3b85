//! Lists the servers of all scopes. Without `--status` nothing is started and nobody is contacted.

use cocode_config::{Config, Server, State};
use serde::Serialize;

use super::report::{ProblemReport, ServerReport, reason};
use super::status;
use crate::args::manage::ListArgs;
use crate::error::{CliError, Exit};
use crate::printer::Style;
use crate::table::{Cell, table};
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report<'a> {
    servers: Vec<ServerReport<'a>>,
    problems: Vec<ProblemReport<'a>>,
    #[serde(rename = "managedBy", skip_serializing_if = "Option::is_none")]
    managed_by: Option<String>,
}

pub(crate) fn run(args: &ListArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let servers: Vec<(&str, &Server)> = config
        .servers
        .iter()
        .filter(|(_, server)| {
            let scope = args.scope.as_deref();
            scope.is_none_or(|scope| scope == server.winner.scope.as_str())
        })
        .map(|(name, server)| (name.as_str(), server))
        .collect();
    if args.status {
        return status::run(&servers, args.timeout, workspace);
    }
    if workspace.printer.json() {
        let problems = config.all_problems().into_iter();
        let report = Report {
            servers: servers
                .iter()
                .map(|(name, server)| ServerReport::of(name, server))
                .collect(),
            problems: problems.map(ProblemReport::of).collect(),
            managed_by: config
                .managed_by
                .as_ref()
                .map(|file| file.display().to_string()),
        };
        return crate::printer::print_json(&workspace.printer, &report).map(|()| Exit::Ok);
    }
    print(&servers, config, workspace)?;
    Ok(Exit::Ok)
}

fn print(
    servers: &[(&str, &Server)],
    config: &Config,
    workspace: &Workspace,
) -> Result<(), CliError> {
    if !introduce(servers, config, workspace) {
        return Ok(());
    }
    let printer = &workspace.printer;
    let rows: Vec<Vec<Cell>> = servers
        .iter()
        .map(|(name, server)| row(name, server))
        .collect();
    let text = table(
        &["NAME", "SCOPE", "STATE", "SERVER"],
        &rows,
        printer.paint(),
    );
    printer.out(text)
}

/// Says what is to be known before a list of servers, and whether there is anything to list.
pub(super) fn introduce(
    servers: &[(&str, &Server)],
    config: &Config,
    workspace: &Workspace,
) -> bool {
    let printer = &workspace.printer;
    workspace.warn_of_files(config);
    for (_, server) in servers {
        // What makes a server unusable is said in its line.
        for problem in server.problems() {
            if !(matches!(server.state, State::Invalid(_)) && problem.is_error()) {
                workspace.warn(problem);
            }
        }
    }
    if let Some(file) = &config.managed_by {
        let message = format!(
            "all servers are fixed by your organization: {}",
            file.display()
        );
        printer.note(&message);
    }
    if servers.is_empty() {
        printer.note(
            "no servers are configured: `cocode mcp add NAME -- COMMAND`, or `cocode mcp import`",
        );
    }
    !servers.is_empty()
}

/// A server as the plain list has it: name, scope, state, and how it is reached.
pub(super) fn row(name: &str, server: &Server) -> Vec<Cell> {
    let state = Cell::new(server.state.as_str());
    let state = match server.state {
        State::Ready(_) => state,
        State::Disabled(_) => state.styled(Style::Dim),
        State::Pending => state.styled(Style::Yellow),
        State::Blocked { .. } | State::Invalid(_) => state.styled(Style::Red),
    };
    let summary = server.winner.found.entry.summary();
    let last = match (reason(name, server), summary.is_empty()) {
        (None, _) => summary,
        (Some(reason), true) => reason,
        (Some(reason), false) => format!("{summary}  ({reason})"),
    };
    let scope = match &server.winner.plugin {
        Some(plugin) => format!("plugin {}", plugin.name),
        None => server.winner.scope.to_string(),
    };
    vec![
        Cell::new(name).styled(Style::Bold),
        Cell::new(scope),
        state,
        Cell::new(last),
    ]
}
