//! Serves within this process, with servers that nobody else uses.

use std::time::Duration;

use cocode_gateway::Gateway;
use cocode_wire::serve::{LineOptions, Patience, stdio};

use crate::args::serve::ServeArgs;
use crate::configured;
use crate::error::{CliError, Exit};
use crate::interrupt::Interrupts;
use crate::managing::{Purpose, Setup};
use crate::serving::{Selection, Serving};
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// How long requests in flight may go on after the client has ended its side, for scripts that send
/// everything at once.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

pub(super) fn run(args: &ServeArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let setup = Setup::new(Purpose::Serving, workspace)?;
    let outcome = on_runtime(workspace, serve(args, &setup, workspace));
    setup.end();
    outcome
}

async fn serve(args: &ServeArgs, setup: &Setup, workspace: &Workspace) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    let gateway = Gateway::new();
    let selection = Selection::of(std::slice::from_ref(&args.server));
    let serving = Serving::of(workspace, setup, &gateway, selection).await?;
    for warning in serving.warnings() {
        workspace.printer.warn(warning);
    }
    let Some(endpoint) = serving.view().server(&args.server) else {
        return Err(configured::unknown(&args.server, workspace.config()?));
    };
    let options = LineOptions {
        patience: Patience {
            linger: LINGER,
            ..Patience::default()
        },
        ..LineOptions::default()
    };
    let mut signaled = None;
    let shutdown = async { signaled = Some(interrupts.next().await) };
    let closed = stdio(&*endpoint, options, shutdown).await;
    tracing::debug!(%closed, "the client is served no longer");
    drop((endpoint, serving));
    gateway.finish().await;
    Ok(signaled.unwrap_or(Exit::Ok))
}
