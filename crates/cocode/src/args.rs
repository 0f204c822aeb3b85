//! The command line, as clap reads it. Values that may hold secrets stay plain text here: clap
//! would repeat them in its error messages.

pub(crate) mod access;
pub(crate) mod agent;
pub(crate) mod auth;
mod deferred;
pub(crate) mod gateway;
pub(crate) mod govern;
pub(crate) mod manage;
pub(crate) mod operate;
pub(crate) mod provider;
pub(crate) mod results;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod tool_search;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use cocode_client::Protocol;
use cocode_core::Dialect;

use access::{AUDIT_HELP, AuditVerb};
use agent::{EXEC_HELP, ExecArgs, InteractiveArgs, SessionsVerb};
use deferred::Deferred;
use gateway::{GATEWAY_HELP, GatewayArgs};
use govern::{ConfigVerb, CredentialStoreArg, PermissionsVerb, PluginVerb, PolicyVerb, SecretArgs};
use manage::ManageVerb;
use provider::{Provider, TOOLS_HELP};
use results::ResultVerb;
use search::{BUDGET_HELP, BudgetArgs, SEARCH_HELP, SearchArgs};
use serve::{DAEMON_HELP, DaemonVerb, SERVE_HELP, ServeArgs};

/// Use any MCP server from a terminal or a script.
///
/// Without a command, it is an agent that talks with you at the terminal and uses all your servers.
#[derive(Debug, Parser)]
#[command(
    name = "cocode",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) interactive: InteractiveArgs,
    /// Without one, `cocode` talks with you: an agent that uses all MCP servers.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXIT_CODES: &str = "\
Exit codes: 0 ok, 1 the tool reported an error, 2 usage or configuration, 3 cannot connect or the \
server failed, 4 authentication needed, 5 timed out, 6 blocked, 130 interrupted (129 by SIGHUP, 143 by SIGTERM).";

/// What every command understands.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print what the server sent, byte for byte, and errors as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Show logs and what the server writes to stderr; twice for more
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print no warnings and no progress
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Write logs to this file instead of stderr
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) log_file: Option<PathBuf>,
    /// When to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// Where configuration is.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct ConfigArgs {
    /// Use this file instead of the local, project, user and plugin scopes; several add up, the last
    /// counts most
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Vec<PathBuf>,
    /// Fail if anything is wrong in any file, instead of going on with the rest
    #[arg(long, global = true)]
    pub(crate) strict_config: bool,
}

/// When to use colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// At a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Keep MCP servers, and use what they offer
    Mcp(Deferred<McpArgs>),
    /// Serve all MCP servers at one address, to clients of every kind
    #[command(after_help = GATEWAY_HELP)]
    Gateway(Box<GatewayArgs>),
    /// Let an agent do something, and end
    #[command(after_help = EXEC_HELP)]
    Exec(Box<ExecArgs>),
    /// See and remove conversations that are kept
    #[command(subcommand)]
    Sessions(SessionsVerb),
    /// Decide which tools may be called
    #[command(subcommand)]
    Permissions(PermissionsVerb),
    /// See what the organization allows
    #[command(subcommand)]
    Policy(PolicyVerb),
    /// Keep folders that bring servers
    #[command(subcommand)]
    Plugin(PluginVerb),
    /// See what was written down of calls through gateways, and whether it is still what was written
    #[command(subcommand, after_help = AUDIT_HELP)]
    Audit(AuditVerb),
    /// Keep secrets that configuration refers to
    Secret(SecretArgs),
    /// See and check the files of configuration
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Explain an error code, or list all of them
    Explain {
        /// The code, as in the last line of an error
        #[arg(value_parser = crate::explain::codes(), hide_possible_values = true)]
        code: Option<String>,
    },
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, or write all of them to a directory
    Man {
        /// The directory to write the pages of all commands to
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out: Option<PathBuf>,
    },
}

const CALL_HELP: &str = "\
Arguments of the tool:
  key=value    text, turned into what the tool's schema asks for
  key:=json    JSON, sent as it is written
  key=@file    the text of a file (@@ for a value that begins with @)
  key:=@file   JSON from a file (@- for stdin, here and above)
  -            a JSON object from stdin
A key that is given several times makes a list. --args JSON gives a whole object, in which the keys \
above then replace members.

Examples:
  cocode mcp call files read_file path=README.md
  cocode mcp call files.read_file path=README.md
  cocode mcp call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  cocode mcp call search query=rust limit:=5 --url https://example.com/mcp";

impl McpArgs {
    /// The command, with everything that is below it.
    pub(crate) fn command() -> clap::Command {
        Self::augment_args(clap::Command::new("mcp"))
    }
}

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Where to keep secrets and credentials, whatever the configuration says
    #[arg(
        long,
        global = true,
        value_name = "STORE",
        help_heading = "Configuration"
    )]
    pub(crate) credential_store: Option<CredentialStoreArg>,
    #[command(subcommand)]
    pub(crate) verb: McpVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpVerb {
    #[command(flatten)]
    Manage(ManageVerb),
    /// Read results that were too large to show
    #[command(subcommand)]
    Result(ResultVerb),
    /// Serve the configured servers on the standard streams, for agents
    #[command(after_help = SERVE_HELP)]
    Serve(ServeArgs),
    /// Look after the daemon that all agents share
    #[command(subcommand, after_help = DAEMON_HELP)]
    Daemon(DaemonVerb),
    /// Find tools by what they are for
    #[command(after_help = SEARCH_HELP)]
    Search(SearchArgs),
    /// Show what the tools cost of a context window, and what search saves
    #[command(after_help = BUDGET_HELP)]
    Budget(BudgetArgs),
    #[command(flatten)]
    Use(Box<Verb>),
}

impl McpVerb {
    /// Whether this is to be the daemon.
    pub(crate) fn is_daemon(&self) -> bool {
        matches!(self, Self::Daemon(DaemonVerb::Run))
    }
}

/// What is done with one server, be it configured or given on the command line.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the tools of a server or of all, or show one of them in full
    #[command(after_help = TOOLS_HELP)]
    Tools {
        /// A configured server, and a tool to show in full; with `--url` or `--`, the tool alone
        #[arg(value_name = "[SERVER] [TOOL]", num_args = 0..=2)]
        words: Vec<String>,
        /// Print the definitions as this provider of models takes them
        #[arg(long = "for", value_name = "PROVIDER")]
        provider: Option<Provider>,
        #[command(flatten)]
        cached: CachedArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Call a tool
    #[command(after_help = CALL_HELP)]
    Call(CallArgs),
    /// List the resources of a server, or of all
    Resources {
        /// A configured server; all of them, if none is named
        server: Option<String>,
        /// List the resource templates instead
        #[arg(long)]
        templates: bool,
        #[command(flatten)]
        cached: CachedArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Read a resource
    Read {
        /// A configured server, and the resource (or @SERVER:URI); with `--url` or `--`, the resource
        /// alone
        #[arg(value_name = "[SERVER] URI", num_args = 1..=2, required = true)]
        words: Vec<String>,
        /// Write the contents to this file
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// List the prompts of a server or of all, or show one of them in full
    Prompts {
        /// A configured server, and a prompt to show in full; with `--url` or `--`, the prompt alone
        #[arg(value_name = "[SERVER] [PROMPT]", num_args = 0..=2)]
        words: Vec<String>,
        #[command(flatten)]
        cached: CachedArgs,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Get a prompt, filled in
    Prompt {
        /// A configured server, the prompt, and KEY=VALUE for what it wants to be told; with `--url`
        /// or `--`, without the server; or `/mcp__SERVER__PROMPT`, and values by place or by name
        #[arg(value_name = "[SERVER] PROMPT", num_args = 1.., required = true)]
        words: Vec<String>,
        /// Get it without asking the server for its prompts first: nothing is checked
        #[arg(long)]
        no_check: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Ask how an argument of a prompt or resource template could go on
    #[command(group = clap::ArgGroup::new("of").required(true))]
    Complete {
        /// The prompt that has the argument
        #[arg(long, value_name = "NAME", group = "of")]
        prompt: Option<String>,
        /// The resource template that has the argument
        #[arg(long, value_name = "TEMPLATE", group = "of")]
        resource: Option<String>,
        /// A configured server, the argument, what is typed so far, and KEY=VALUE for arguments that
        /// are known already; with `--url` or `--`, without the server
        #[arg(value_name = "[SERVER] ARGUMENT VALUE", num_args = 2.., required = true)]
        words: Vec<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Ask the server for a sign of life
    Ping {
        /// A configured server
        server: Option<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show what the server is, can do and offers, and how long each step took
    Inspect {
        /// A configured server
        server: Option<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
}

/// Whether servers are asked.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct CachedArgs {
    /// Answer with what was listed before, and start or contact nothing
    #[arg(long)]
    pub(crate) cached: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// A configured server and its tool (or SERVER.TOOL), and arguments: key=value, key:=json,
    /// key=@file, key:=@file, or - for stdin; with `--url` or `--`, without the server
    #[arg(value_name = "[SERVER] TOOL [ARGUMENT]", num_args = 1.., required = true)]
    pub(crate) words: Vec<String>,
    /// Arguments of the tool as one JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Call without knowing the tool: nothing is checked or converted
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Save images, sounds and other binary content in this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
}

/// Where the server is and how to talk to it.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TargetArgs {
    /// The program that is the server, with its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
    /// The address of the server, by http, https, ws, wss or unix
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,
    /// How to talk to it, where the address does not say enough
    #[arg(long, value_name = "KIND")]
    pub(crate) transport: Option<Transport>,
    /// A variable for the server's environment; without a value, passed on from here
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<OsString>,
    /// The directory the server starts in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
    /// A header for every HTTP request
    #[arg(long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// What to speak: auto, legacy, modern, or a revision such as 2025-11-25
    #[arg(long, value_name = "PROTOCOL", default_value = "auto")]
    pub(crate) protocol: Protocol,
    /// How long a request may take; progress restarts the clock of a call [default: 60 for calls,
    /// 30 for other requests]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// How long starting the server and the handshake may take [default: 60, or `--timeout` if that
    /// is less]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) connect_timeout: Option<Duration>,
    /// The largest message to send or accept [default: 16777216]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_message_bytes: Option<u64>,
    /// A directory the server is told it may work in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Vec<PathBuf>,
    /// An answer to a field of a form, should the server ask
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) answer: Vec<String>,
}

/// The ways to talk to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// A program's standard streams
    Stdio,
    /// Streamable HTTP, and nothing else
    Http,
    /// HTTP+SSE, the transport of revision 2024-11-05
    Sse,
    /// A WebSocket
    Ws,
    /// A unix socket
    Unix,
}

impl Verb {
    /// Where the server is, whatever is asked of it.
    pub(crate) fn target(&self) -> &TargetArgs {
        match self {
            Self::Call(call) => &call.target,
            Self::Tools { target, .. }
            | Self::Resources { target, .. }
            | Self::Read { target, .. }
            | Self::Prompts { target, .. }
            | Self::Prompt { target, .. }
            | Self::Complete { target, .. }
            | Self::Ping { target, .. }
            | Self::Inspect { target, .. } => target,
        }
    }
}

impl Verb {
    /// Whether the answer is what was listed before.
    pub(crate) fn is_cached(&self) -> bool {
        match self {
            Self::Tools { cached, .. }
            | Self::Resources { cached, .. }
            | Self::Prompts { cached, .. } => cached.cached,
            _ => false,
        }
    }

    /// How tools are to be written, if not for people.
    pub(crate) fn dialect(&self) -> Option<Dialect> {
        match self {
            Self::Tools { provider, .. } => provider.map(Provider::dialect),
            _ => None,
        }
    }
}

impl TargetArgs {
    /// Whether the server is given here, and not by the name it is configured under.
    pub(crate) fn is_given(&self) -> bool {
        !self.command.is_empty() || self.url.is_some()
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_bad| "not a number of seconds")?;
    let duration = Duration::try_from_secs_f64(seconds).ok();
    let duration = duration.filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| "must be more than zero, and less than forever".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory as _;

    use super::{Cli, seconds};

    #[test]
    fn the_command_line_is_well_defined() {
        Cli::command().debug_assert();
    }

    #[test]
    fn seconds_may_be_fractions_but_not_nothing() {
        assert_eq!(seconds("0.3"), Ok(Duration::from_millis(300)));
        assert_eq!(seconds("60"), Ok(Duration::from_mins(1)));
        for bad in ["0", "-1", "nan", "inf", "", "1m", "1e300"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
