//! The command line of serving the configured servers to agents.

use clap::{Args, Subcommand};
use cocode_core::SandboxMode;
use serde::{Deserialize, Serialize};

use super::gateway::BuiltInArgs;
use super::tool_search::ToolSearchArgs;

/// How the servers are served.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServeArgs {
    /// Run the servers within this process, and share them with nobody
    #[arg(long)]
    pub(crate) standalone: bool,
    /// Serve the agent instead: the tools `cocode` and `cocode-reply`, which hold conversations
    #[arg(long, conflicts_with_all = ["standalone", "servers", "server", "profile", "tool_search", "context_window", "root", "allow_write", "allow_shell"])]
    pub(crate) agent: bool,
    /// The model of the agent, where callers name none
    #[arg(long, value_name = "NAME", requires = "agent")]
    pub(crate) model: Option<String>,
    /// Whose model that is: a name of `[providers]`, or anthropic, openai, ollama, sampling
    #[arg(long, value_name = "NAME", requires = "agent")]
    pub(crate) provider: Option<String>,
    /// The most that callers may ask for: read-only, workspace-write, danger-full-access
    /// [default: workspace-write]
    #[arg(long, value_name = "MODE", requires = "agent")]
    pub(crate) max_sandbox: Option<SandboxMode>,
    #[command(flatten)]
    pub(crate) wanted: WantedArgs,
}

/// What is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, Args)]
pub(crate) struct WantedArgs {
    /// Only these servers
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = name)]
    pub(crate) servers: Vec<String>,
    /// The servers and settings that `[gateway.profiles.NAME]` selects
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Only this server, as it is: nothing is renamed, checked or cut
    #[arg(long, value_name = "NAME", conflicts_with_all = ["servers", "profile", "tool_search", "context_window", "root", "allow_write", "allow_shell"])]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    #[serde(default)]
    pub(crate) search: ToolSearchArgs,
    #[command(flatten)]
    #[serde(default)]
    pub(crate) tools: BuiltInArgs,
}

/// A name in a list, which may have blanks around it.
pub(super) fn name(text: &str) -> Result<String, &'static str> {
    match text.trim() {
        "" => Err("a name is missing"),
        name => Ok(name.to_owned()),
    }
}

pub(crate) const SERVE_HELP: &str = "\
This is what agents are configured with, as a program that they start:
  claude mcp add cocode -- cocode mcp serve
  codex mcp add cocode -- cocode mcp serve
Servers run in a daemon that all agents of a user share, which is started if need be and ends when \
nobody has needed it for a while (`idle_stop_sec` in [gateway] of config.toml). What an agent sees \
is what the directory and the environment say that it was started in. With --standalone, or where no \
daemon can be had, the servers run within this process. See `cocode mcp daemon`.
Without configured servers, the built-in tools that only read are served for the current directory.";

pub(crate) const DAEMON_HELP: &str = "\
Nobody has to start or to stop it: `cocode mcp serve` starts it, and it ends when no agent has needed \
it for a while (`idle_stop_sec` in [gateway] of config.toml, 60 unless set). Its log is `daemon.log` in \
the state directory, ~/.local/state/cocode. `cocode mcp restart NAME` starts one of its servers anew, \
and `cocode mcp status` shows those that agents in this directory use.";

/// What is done with the daemon.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Show who is served, and which servers run for whom
    Status,
    /// End the daemon and its servers, even if it does not answer; fronts that are there start another
    Stop,
    /// Be the daemon, in the foreground
    Run,
}
