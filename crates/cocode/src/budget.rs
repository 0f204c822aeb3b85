//! `mcp budget`: what the definitions of tools cost of a context window, what search saves of it, and
//! which tools nobody uses.

mod advice;
mod chart;
pub(crate) mod cost;
mod report;
mod search_tools;
mod weighed;
pub(crate) mod window;

use std::sync::Arc;

use cocode_client::Usage;
use cocode_core::SearchPolicy;

use crate::args::search::BudgetArgs;
use crate::error::{CliError, Exit};
use crate::managing::usage_directory;
use crate::naming;
use crate::printer::{Printer, print_json};
use crate::toolbox::{self, Opened, Toolbox};
use crate::workspace::Workspace;

use weighed::{Counted, Weighed};
use window::{Model, model, policy};

pub(crate) fn run(
    args: &BudgetArgs,
    printer: &Arc<Printer>,
    workspace: impl FnOnce() -> Result<Workspace, CliError>,
) -> Result<Exit, CliError> {
    let opened = toolbox::open(&args.toolbox, printer, workspace)?;
    let Opened { toolbox, workspace } = opened;
    check_names(&args.server, &toolbox)?;
    let (model, policy, counted) = match &workspace {
        Some(workspace) => (
            model(args.window, workspace)?,
            policy(workspace)?,
            counted(workspace)?,
        ),
        None => (
            Model::of_window(args.window),
            SearchPolicy::default(),
            Counted::Nowhere,
        ),
    };
    let mut weighed = Weighed::new(toolbox, &model, policy, counted);
    weighed.select(&args.server);
    if printer.json() {
        print_json(printer, &report::of(&weighed))?;
    } else {
        let with_tools = args.tools || args.server.len() == 1 || weighed.servers.len() == 1;
        let (width, paint) = (printer.width(), printer.paint());
        printer.out(chart::text(&weighed, with_tools, width, paint))?;
    }
    Ok(Exit::Ok)
}

/// How often tools were called, as far as that is counted.
fn counted(workspace: &Workspace) -> Result<Counted, CliError> {
    let is_wanted = &workspace.config()?.settings.retention.record_usage;
    if let Some(setting) = is_wanted
        && !setting.value
    {
        return Ok(Counted::SwitchedOff);
    }
    Ok(match Usage::read(&usage_directory(workspace)) {
        Ok(usage) => Counted::Here(usage),
        Err(error) => {
            // What is wrong is put aside by the next call.
            workspace
                .printer
                .warn(&format!("nobody knows which tools were called: {error}"));
            Counted::Here(Usage::default())
        }
    })
}

/// Refuses names of servers that nothing is known of.
fn check_names(names: &[String], toolbox: &Toolbox) -> Result<(), CliError> {
    let known: Vec<&str> = toolbox
        .servers
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) if toolbox.unknown.contains(name) => {
            let message = format!("nothing is remembered of the tools of `{name}`");
            Err(
                CliError::new(crate::error::Code::NotCached, message).hint(format!(
                    "`--refresh` asks all servers now, `cocode mcp tools {name}` this one"
                )),
            )
        }
        Some(name) => Err(naming::unknown(name, &known)),
    }
}
