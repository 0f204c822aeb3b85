//! `cocode mcp serve`: the configured servers on the standard streams of this process.

mod standalone;

use crate::args::serve::ServeArgs;
use crate::error::{CliError, Exit};
use crate::workspace::Workspace;

/// Serves until the client leaves.
pub(crate) fn run(args: &ServeArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    standalone::run(args, workspace)
}
