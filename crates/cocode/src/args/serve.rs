//! The command line of serving the configured servers to agents.

use clap::Args;

/// How the servers are served.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Serve only this server, as it is: nothing is renamed, checked or cut
    #[arg(long, value_name = "NAME")]
    pub(crate) server: String,
}

pub(crate) const SERVE_HELP: &str = "\
This is what agents are configured with, as a program that they start:
  claude mcp add cocode -- cocode mcp serve --server NAME";
