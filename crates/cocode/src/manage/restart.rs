//! `cocode mcp restart`: starts a server anew that runs in the shared daemon.

use std::time::Duration;

use cocode_admin::model::Restarted;
use serde::Serialize;

use crate::args::manage::RestartArgs;
use crate::configured;
use crate::daemon::{Place, ask};
use crate::error::{CliError, Exit};
use crate::printer::print_json;
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// Servers take their time, and are given it.
const RESTARTED_WITHIN: Duration = Duration::from_secs(20);

#[derive(Serialize)]
struct RestartReport<'a> {
    name: &'a str,
    restarted: u64,
    /// How many of them had nothing to do before.
    stopped: u64,
}

pub(crate) fn run(args: &RestartArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    on_runtime(workspace, restart(&args.name, workspace))
}

async fn restart(name: &str, workspace: &Workspace) -> Result<Exit, CliError> {
    let place = Place::of(workspace);
    let none = Restarted {
        servers: 0,
        stopped: 0,
    };
    let Restarted { servers, stopped } = match ask(place.as_ref()).await? {
        Some(asking) => {
            // Servers may take long, but not a daemon that hangs.
            asking.shared().await?;
            let path = ["shared", name, "restart"];
            asking.post(&path, RESTARTED_WITHIN).await?
        }
        None => none,
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
