//! The command line, as clap reads it. Values that may hold secrets stay plain text here: clap
//! would repeat them in its error messages.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use cocode_client::Protocol;

/// Use any MCP server from a terminal or a script.
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
    #[command(subcommand)]
    pub(crate) command: Command,
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
    /// List and use what an MCP server offers
    #[command(subcommand)]
    Mcp(Box<Verb>),
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
  cocode mcp call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  cocode mcp call search query=rust limit:=5 --url https://example.com/mcp";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// List the tools, or show one of them in full
    Tools {
        /// Only this tool, with its full description and arguments
        name: Option<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Call a tool
    #[command(after_help = CALL_HELP)]
    Call(CallArgs),
    /// List the resources
    Resources {
        /// List the resource templates instead
        #[arg(long)]
        templates: bool,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Read a resource
    Read {
        /// Which resource
        uri: String,
        /// Write the contents to this file
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// List the prompts, or show one of them in full
    Prompts {
        /// Only this prompt, with its full description and arguments
        name: Option<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Get a prompt, filled in
    Prompt {
        /// Which prompt
        name: String,
        /// What the prompt wants to be told
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
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
        /// The argument
        argument: String,
        /// What is typed so far
        value: String,
        /// Arguments that are known already
        #[arg(value_name = "KEY=VALUE")]
        others: Vec<String>,
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Ask the server for a sign of life
    Ping {
        #[command(flatten)]
        target: TargetArgs,
    },
    /// Show what the server is, can do and offers, and how long each step took
    Inspect {
        #[command(flatten)]
        target: TargetArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// Which tool
    pub(crate) tool: String,
    /// Arguments of the tool: key=value, key:=json, key=@file, key:=@file, or - for stdin
    #[arg(value_name = "ARGUMENT")]
    pub(crate) arguments: Vec<String>,
    /// Arguments of the tool as one JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// Call without asking the server for its tools first: nothing is checked or converted
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
            | Self::Ping { target }
            | Self::Inspect { target } => target,
        }
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
