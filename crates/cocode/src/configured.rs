//! A configured server that is to be used now: ready, or an error that says what stands in the way.

use std::io::{IsTerminal as _, stdin};

use cocode_config::{Server, State};
use cocode_core::ServerSpec;

use crate::error::{CliError, Code};
use crate::manage::trust;
use crate::naming;
use crate::workspace::{Workspace, with_problems};

/// The specification of a server that may be used. At a terminal, the user is asked to approve
/// one that waits for it.
pub(crate) fn ready(name: &str, workspace: &Workspace) -> Result<Box<ServerSpec>, CliError> {
    let config = workspace.config()?;
    let Some(server) = config.servers.get(name) else {
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        return Err(naming::unknown(name, &names));
    };
    for problem in server
        .problems()
        .into_iter()
        .filter(|problem| !problem.is_error())
    {
        workspace.warn(problem);
    }
    if !matches!(server.state, State::Pending) {
        return usable(name, server);
    }
    let can_ask = stdin().is_terminal() && workspace.printer.stderr_is_terminal();
    if can_ask && trust::ask_about(name, server, workspace)? {
        // What was approved may shadow or be shadowed: everything is decided anew.
        let config = workspace.reloaded();
        return match config.servers.get(name) {
            Some(server) => usable(name, server),
            None => Err(naming::unknown(name, &[])),
        };
    }
    usable(name, server)
}

/// The specification, or why it cannot be used.
fn usable(name: &str, server: &Server) -> Result<Box<ServerSpec>, CliError> {
    match &server.state {
        State::Ready(spec) => Ok(spec.clone()),
        State::Disabled(origin) => {
            let message = format!("server `{name}` is switched off in {origin}");
            Err(CliError::new(Code::ServerDisabled, message)
                .hint(format!("`cocode mcp enable {name}` switches it on")))
        }
        State::Pending => {
            let origin = &server.winner.found.origin;
            let message = format!("server `{name}` of {origin} is not approved");
            Err(CliError::new(Code::PendingTrust, message).hint(format!(
                "`cocode mcp trust {name}` shows it and asks; nothing of it was started"
            )))
        }
        State::Blocked { reason } => Err(blocked(&format!("server `{name}`"), reason)),
        State::Invalid(problems) => {
            let message = format!("server `{name}` cannot be used as it is written");
            let error = CliError::new(Code::InvalidConfig, message);
            let problems: Vec<_> = problems.iter().collect();
            Err(with_problems(error, &problems))
        }
    }
}

/// What the organization does not want.
pub(crate) fn blocked(what: &str, reason: &str) -> CliError {
    let message = format!("{what} is blocked: {reason}");
    CliError::new(Code::BlockedByPolicy, message)
        .hint("`cocode policy check` shows what is allowed")
}
