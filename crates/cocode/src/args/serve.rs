//! The command line of serving the configured servers to agents.

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

/// How the servers are served.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Run the servers within this process, and share them with nobody
    #[arg(long)]
    pub(crate) standalone: bool,
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
}

/// What is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, Args)]
pub(crate) struct WantedArgs {
    /// Only these servers
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// The servers and settings that `[gateway.profiles.NAME]` selects
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Only this server, as it is: nothing is renamed, checked or cut
    #[arg(long, value_name = "NAME", conflicts_with_all = ["servers", "profile"])]
    pub(crate) server: Option<String>,
}

pub(crate) const SERVE_HELP: &str = "\
This is what agents are configured with, as a program that they start:
  claude mcp add cocode -- cocode mcp serve
  codex mcp add cocode -- cocode mcp serve
Servers run in a daemon that all agents of a user share, which is started if need be and ends when \
nobody has needed it for a while (`idle_stop_sec` in [gateway] of config.toml). What an agent sees \
is what the directory and the environment say that it was started in. See `cocode mcp daemon`.";

/// What is done with the daemon.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Show who is served, and which servers run for whom
    Status,
    /// End the daemon and its servers; fronts that are still there start another
    Stop,
    /// Be the daemon, in the foreground
    Run,
}
