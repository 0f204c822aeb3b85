//! The command line of everything that keeps servers in files: adding, listing, explaining,
//! importing, exporting, and finding out what is wrong.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use cocode_client::Protocol;
use cocode_core::Registration;

use super::auth::{AuthVerb, LOGIN_HELP, LOGOUT_HELP, LoginArgs, LogoutArgs};
use super::{Transport, seconds};

#[derive(Debug, Subcommand)]
pub(crate) enum ManageVerb {
    /// Add a server
    #[command(after_help = ADD_HELP)]
    Add(Box<AddArgs>),
    /// Add a server from JSON, as other tools write it
    AddJson(AddJsonArgs),
    /// List the servers of all scopes; nothing is started or contacted
    #[command(visible_alias = "ls", after_help = LIST_HELP)]
    List(ListArgs),
    /// Show one server as it is configured
    Get(GetArgs),
    /// Remove a server
    #[command(visible_alias = "rm")]
    Remove(RemoveArgs),
    /// Use a server again
    Enable(EnableArgs),
    /// Keep a server, but do not use it
    Disable(EnableArgs),
    /// Approve servers that came with a work tree or a plugin
    Trust(TrustArgs),
    /// Say which file decides what about a server, and why it is or is not used
    Explain(ExplainArgs),
    /// Take over servers from other tools; shows what would be done until told to write
    Import(ImportArgs),
    /// Write servers into the configuration of another tool; shows what would be done until told to
    /// write
    Export(ExportArgs),
    /// Find out what is wrong with servers, step by step
    #[command(after_help = DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Connect to all servers and show how they are, as it happens
    #[command(after_help = STATUS_HELP)]
    Status(StatusArgs),
    /// Start a server anew that runs in the shared daemon, for all who use it
    #[command(after_help = RESTART_HELP)]
    Restart(RestartArgs),
    /// Show what a server wrote and what became of it
    #[command(after_help = LOGS_HELP)]
    Logs(LogsArgs),
    /// Sign in to a server
    #[command(after_help = LOGIN_HELP)]
    Login(Box<LoginArgs>),
    /// Sign out of a server
    #[command(after_help = LOGOUT_HELP)]
    Logout(LogoutArgs),
    /// See who is signed in where, and how this client is known
    #[command(subcommand)]
    Auth(AuthVerb),
}

const ADD_HELP: &str = "\
Examples:
  cocode mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  cocode mcp add docs --url https://example.com/mcp
  cocode mcp add docs https://example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'
  cocode mcp add github --scope user --env 'GITHUB_TOKEN=${GITHUB_TOKEN}' -- github-mcp-server stdio
Values may be references that are looked up only when the server is contacted: ${VAR}, keyring:NAME \
(see `cocode secret`), cmd:COMMAND.";

const LIST_HELP: &str = "\
With --status, servers that are pending, disabled, blocked or invalid are listed and never contacted. \
Exit code then: 0 if all others are connected, 4 if only credentials are missing, else 3.";

const DOCTOR_HELP: &str = "\
Steps of each server: config, command (or address), policy, trust, variables, secrets, connect, \
handshake, tools. A step that fails ends the examination of that server. Servers that wait for \
approval stop at trust and are never started.

Exit code, the most serious first: 2 something is written wrong, 3 a server cannot be reached or \
failed, 5 one took too long, 4 one wants credentials, 6 one that was named is pending or blocked, 0 \
all is well, warnings included.";

const STATUS_HELP: &str = "\
States: starting, ready, needs-auth, needs-client-registration, reconnecting, failed, stopped; disabled, \
pending-trust, blocked and invalid servers are shown and never contacted. READY is how long it took to \
connect. Servers that agents use here run in the shared daemon: they are shown as they are there, with \
how they are shared, and no second ones are started.

Exit code: 0 if all servers are ready, 4 if only credentials are missing, else 3; a server that is named \
or `required` counts as well if it is invalid (2), pending or blocked (6).

With --watch, servers are kept connected and files of configuration are followed until Ctrl-C: a change \
counts at once, and one that cannot be understood leaves the servers as they were. Without a terminal \
each event is one line, with --json one JSON object.";

const RESTART_HELP: &str = "\
Servers of this name that run in several directories are all started anew. Requests that are in flight \
fail; sessions of agents go on. A server that does not run there starts when it is needed, and nothing \
is to be done.";

const LOGS_HELP: &str = "\
Each line has a time in UTC, a source (stderr; message:LEVEL for log messages of the server; state for \
what became of it) and a text; with --json, each line is one JSON object. How much is kept is a \
setting: logs_days (14) and logs_max_mb (10) in [retention].";

/// The scopes that can be written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum WritableScope {
    /// This work tree, for you alone: .cocode.local.toml
    #[default]
    Local,
    /// This work tree, for everybody who has it: .mcp.toml
    Project,
    /// You, everywhere: ~/.config/cocode/mcp.toml
    #[value(alias = "global")]
    User,
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// What to call the server
    pub(crate) name: String,
    /// The address, or the program and its arguments, where neither `--url` nor `--` is used
    #[arg(value_name = "COMMAND_OR_URL")]
    pub(crate) words: Vec<String>,
    /// The program that is the server, with its arguments
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,
    /// The address of the server, by http, https, ws, wss or unix
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,
    /// Whose the server is
    #[arg(short, long, value_name = "SCOPE", default_value = "local")]
    pub(crate) scope: WritableScope,
    /// How to talk to it, where that does not follow from the rest
    #[arg(short, long, value_name = "KIND")]
    pub(crate) transport: Option<Transport>,
    /// A variable for the program, or several; without a value, passed on from here each time
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// The directory the program starts in
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<String>,
    /// A header for every HTTP request, or several
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// The variable that holds a bearer token for the server
    #[arg(long, value_name = "NAME")]
    pub(crate) bearer_token_env_var: Option<String>,
    /// A command that prints headers as a JSON object
    #[arg(long, value_name = "COMMAND")]
    pub(crate) headers_helper: Option<String>,
    /// After this nobody waits for the server any more [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) startup_timeout: Option<Duration>,
    /// After this an attempt to connect ends [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) connect_timeout: Option<Duration>,
    /// How long a tool may be silent [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) tool_timeout: Option<Duration>,
    /// Only these tools, with commas between; `*` matches any text
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) enabled_tools: Vec<String>,
    /// Not these tools, with commas between
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub(crate) disabled_tools: Vec<String>,
    /// What to speak: auto, legacy, modern, or a revision such as 2025-11-25
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<Protocol>,
    /// What the server is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// A start without this server is a failure
    #[arg(long)]
    pub(crate) required: bool,
    /// Add it, but do not use it yet
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Replace the server of this name in the same scope
    #[arg(short, long)]
    pub(crate) force: bool,
    // The last, because its heading holds for what follows.
    #[command(flatten)]
    pub(crate) oauth: OAuthArgs,
}

/// What is fixed about signing in.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Signing in")]
pub(crate) struct OAuthArgs {
    /// A client registered beforehand
    #[arg(long, visible_alias = "oauth-client-id", value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// The variable that holds the secret of that client
    #[arg(long, value_name = "NAME", conflicts_with = "client_secret")]
    pub(crate) client_secret_env: Option<String>,
    /// The secret of that client is in the variable `MCP_CLIENT_SECRET`
    #[arg(long)]
    pub(crate) client_secret: bool,
    /// Understood so that it can be said what to do instead.
    #[arg(long, hide = true, value_name = "SECRET")]
    pub(crate) oauth_client_secret: Option<String>,
    /// How to become a client without `--client-id`
    #[arg(long, alias = "oauth-client-registration", value_name = "WAY")]
    pub(crate) registration: Option<RegistrationWay>,
    /// The https URL of a document that describes this client, which is then its ID
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) client_metadata_url: Option<String>,
    /// The port of the callback
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) callback_port: Option<u16>,
    /// The redirect URL, where it is not `http://127.0.0.1:PORT/callback`
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) callback_url: Option<String>,
    /// Scopes to ask for, with commas between
    #[arg(
        long,
        alias = "oauth-scopes",
        value_name = "SCOPES",
        value_delimiter = ','
    )]
    pub(crate) scopes: Vec<String>,
    /// The resource to ask for, where it is not the address
    #[arg(long, visible_alias = "oauth-resource", value_name = "URL")]
    pub(crate) resource: Option<String>,
}

/// How to become a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RegistrationWay {
    /// By what the authorization server offers
    Auto,
    /// By the URL of a document that describes the client
    Cimd,
    /// By registering with the authorization server
    Dcr,
}

impl From<RegistrationWay> for Registration {
    fn from(way: RegistrationWay) -> Self {
        match way {
            RegistrationWay::Auto => Self::Auto,
            RegistrationWay::Cimd => Self::Cimd,
            RegistrationWay::Dcr => Self::Dcr,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct AddJsonArgs {
    /// What to call the server
    pub(crate) name: String,
    /// One JSON object with `command` and `args`, or with `url`; - for stdin
    pub(crate) object: String,
    /// Whose the server is
    #[arg(short, long, value_name = "SCOPE", default_value = "local")]
    pub(crate) scope: WritableScope,
    /// The secret of the client that signs in is in the variable `MCP_CLIENT_SECRET`
    #[arg(long)]
    pub(crate) client_secret: bool,
    /// Replace the server of this name in the same scope
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Connect to all servers at once and show how they are
    #[arg(long)]
    pub(crate) status: bool,
    /// With --status: how long each server may take [default: its `startup_timeout_sec`, or 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "status")]
    pub(crate) timeout: Option<Duration>,
    /// Only servers of this scope: enterprise, file, local, project, user or plugin
    #[arg(short, long, value_name = "SCOPE", value_parser = ["enterprise", "file", "local", "project", "user", "plugin"])]
    pub(crate) scope: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Which server
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Which server
    pub(crate) name: String,
    /// From which scope; needed only if several have it
    #[arg(short, long, value_name = "SCOPE")]
    pub(crate) scope: Option<WritableScope>,
}

#[derive(Debug, Args)]
pub(crate) struct EnableArgs {
    /// Which server
    pub(crate) name: String,
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own on the command line"
)]
pub(crate) struct TrustArgs {
    /// Which servers; all that wait, if none is named
    pub(crate) names: Vec<String>,
    /// Show what waits and what was approved, and change nothing
    #[arg(long, conflicts_with_all = ["revoke", "yes"])]
    pub(crate) list: bool,
    /// Take decisions back: about the named servers of this work tree and of plugins, or about all
    /// servers and settings of this work tree
    #[arg(long)]
    pub(crate) revoke: bool,
    /// With `--revoke`: of all work trees and plugins
    #[arg(long, requires = "revoke")]
    pub(crate) all: bool,
    /// Approve without asking
    #[arg(short, long, conflicts_with = "revoke")]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Which server
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// From which tool; all that are found, if none is named
    #[arg(value_name = "TOOL")]
    pub(crate) from: Vec<String>,
    /// A file of that tool at another place
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Only these servers
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Whose the servers become [default: user; local for those of this work tree]
    #[arg(short, long, value_name = "SCOPE")]
    pub(crate) scope: Option<WritableScope>,
    /// Write what would be done
    #[arg(long)]
    pub(crate) write: bool,
    /// Replace servers that are there already
    #[arg(short, long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct ExportArgs {
    /// To which tool
    #[arg(value_name = "TOOL", required_unless_present = "gateway")]
    pub(crate) to: Option<String>,
    /// The gateway at this address instead of the servers; without `--write` the lines to paste, and
    /// without a tool those for the tools that most people use
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, conflicts_with_all = ["only", "undo"])]
    pub(crate) gateway: Option<String>,
    /// A file of that tool at another place
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Write into the tool's file for this work tree, not the one for everywhere
    #[arg(long, conflicts_with = "file")]
    pub(crate) project: bool,
    /// Only these servers
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Write what would be done; a backup is kept
    #[arg(long)]
    pub(crate) write: bool,
    /// Replace servers that the tool has already; with --undo, drop what changed since
    #[arg(short, long)]
    pub(crate) force: bool,
    /// Bring back what the file was before the last export; again for the one before
    #[arg(long, conflicts_with_all = ["write", "only"])]
    pub(crate) undo: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Which servers; all, if none is named
    pub(crate) names: Vec<String>,
    /// Keep the servers connected and show what happens, until Ctrl-C
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// How long each server may take [default: its `startup_timeout_sec`, or 10; with --watch its
    /// `connect_timeout_sec`, or 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct RestartArgs {
    /// The server
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Which server
    pub(crate) name: String,
    /// How many lines to show, counted from the end
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 100)]
    pub(crate) lines: usize,
    /// Go on and show lines as they come, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print where the log is
    #[arg(long, conflicts_with_all = ["follow", "lines"])]
    pub(crate) path: bool,
    /// Remove the log
    #[arg(long, conflicts_with_all = ["follow", "lines", "path"])]
    pub(crate) clear: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Which servers; all, if none is named
    pub(crate) names: Vec<String>,
    /// Check everything that needs no connection
    #[arg(long)]
    pub(crate) offline: bool,
    /// How long each server may take to connect [default: its `connect_timeout_sec`, or 60]
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
}
