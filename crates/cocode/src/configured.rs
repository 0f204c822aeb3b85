//! A configured server that is to be used now: ready, or an error that says what stands in the way.

use std::io::{IsTerminal as _, stdin};

use cocode_config::{Config, Loss, Problem, Server, State};
use cocode_core::ServerSpec;

use crate::error::{CliError, Code};
use crate::manage::trust;
use crate::naming;
use crate::workspace::{Workspace, told, with_problems};

/// The specification of a server that may be used. At a terminal, the user is asked to approve
/// one that waits for it.
pub(crate) fn ready(name: &str, workspace: &Workspace) -> Result<Box<ServerSpec>, CliError> {
    let config = workspace.config()?;
    let Some(server) = config.servers.get(name) else {
        return Err(unknown(name, config));
    };
    warn_of_use([server], workspace)?;
    if !matches!(server.state, State::Pending) {
        return usable(name, server);
    }
    let can_ask = stdin().is_terminal() && workspace.printer.stderr_is_terminal();
    if can_ask && trust::ask_about(name, server, workspace)? {
        // What was approved may shadow or be shadowed: everything is decided anew.
        let config = workspace.reloaded();
        return match config.servers.get(name) {
            Some(server) => usable(name, server),
            None => Err(unknown(name, &config)),
        };
    }
    usable(name, server)
}

/// Warns of what may make the servers that are going to be used others than were meant: files that
/// cannot be read, and more important entries that do not count because they are broken.
pub(crate) fn warn_of_use<'a>(
    servers: impl IntoIterator<Item = &'a Server>,
    workspace: &Workspace,
) -> Result<(), CliError> {
    for problem in workspace.config()?.file_problems() {
        workspace.warn(problem);
    }
    warn_of_entries(servers, workspace);
    Ok(())
}

/// Warns of what may make these servers others than were meant, but for the files as a whole.
pub(crate) fn warn_of_entries<'a>(
    servers: impl IntoIterator<Item = &'a Server>,
    workspace: &Workspace,
) {
    for server in servers {
        let problems = server.problems().into_iter();
        for problem in problems.filter(|problem| !problem.is_error()) {
            workspace.warn(problem);
        }
        warn_of_passed_over(server, workspace);
    }
}

/// Warns of broken entries that would count instead of the one that does.
pub(crate) fn warn_of_passed_over(server: &Server, workspace: &Workspace) {
    let broken = server.passed_over().iter();
    for (other, _) in broken.filter(|(_, loss)| *loss == Loss::Broken) {
        let errors = other.found.problems.iter();
        for problem in errors.filter(|problem| problem.is_error()) {
            let used = &server.winner.found.origin;
            let problem = told(problem);
            let message = format!("{problem}; this entry is passed over, and {used} counts");
            workspace.printer.warn(&message);
        }
    }
}

/// Why a server cannot be used.
pub(crate) fn unusable(name: &str, config: &Config) -> CliError {
    let server = config.servers.get(name);
    let why = server.and_then(|server| usable(name, server).err());
    why.unwrap_or_else(|| unknown(name, config))
}

/// No server of this name. It may be in a file that cannot be read.
pub(crate) fn unknown(name: &str, config: &Config) -> CliError {
    let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
    with_files(naming::unknown(name, &names), config)
}

/// Adds the files that an unknown server may be in.
pub(crate) fn with_files(error: CliError, config: &Config) -> CliError {
    if error.code != Code::UnknownServer.as_str() {
        return error;
    }
    let problems: Vec<&Problem> = config.file_problems().collect();
    with_problems(error, &problems)
}

/// The specification, or why it cannot be used.
pub(crate) fn usable(name: &str, server: &Server) -> Result<Box<ServerSpec>, CliError> {
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
