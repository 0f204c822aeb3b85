//! `cocode mcp restart`: starts a server anew that runs in the shared daemon.

use serde::Serialize;

use crate::args::manage::RestartArgs;
use crate::configured;
use crate::daemon::{Ask, Place, Restarted, ask};
use crate::error::{CliError, Exit};
use crate::printer::print_json;
use crate::session::on_runtime;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct RestartReport<'a> {
    name: &'a str,
    restarted: usize,
    /// How many of them had nothing to do before.
    stopped: usize,
}

pub(crate) fn run(args: &RestartArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    on_runtime(workspace, restart(&args.name, workspace))
}

async fn restart(name: &str, workspace: &Workspace) -> Result<Exit, CliError> {
    let place = Place::of(workspace);
    // Servers may take long, but not a daemon that hangs.
    ask(Ask::Status, place.as_ref()).await?;
    let asking = ask(Ask::Restart(name.to_owned()), place.as_ref()).await?;
    let Restarted { servers, stopped } = match asking {
        Some(asking) => asking.answer()?,
        None => Restarted::default(),
    };
    let config = workspace.config()?;
    // Another place may have a server of this name.
    if servers == 0 && !config.servers.contains_key(name) {
        return Err(configured::unknown(name, config));
    }
    let printer = &workspace.printer;
    if printer.json() {
        let restarted = servers;
        let report = RestartReport {
            name,
            restarted,
            stopped,
        };
        print_json(printer, &report)?;
    } else if servers == 0 {
        printer.note(&format!(
            "`{name}` does not run in the daemon, and starts when it is needed"
        ));
    } else if servers == stopped {
        printer.out_line(&format!("started `{name}`, which was stopped"))?;
    } else if servers == 1 {
        printer.out_line(&format!("restarted `{name}`"))?;
    } else {
        printer.out_line(&format!("restarted `{name}`, which runs {servers} times"))?;
    }
    Ok(Exit::Ok)
}
