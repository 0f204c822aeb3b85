//! The command line of `cocode gateway`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use cocode_config::Prefix;

use super::govern::CredentialStoreArg;

pub(crate) const GATEWAY_HELP: &str = "\
All servers that are ready are served as one at /mcp, and each by itself at /mcp/NAME, to clients of \
every protocol revision. Changes of the configuration are applied while it runs. Where no server is \
configured, tools for the current directory are served: read, list, find and grep.

Examples:
  cocode gateway
  cocode gateway --listen :0 --servers files,github
  cocode gateway --root . --allow-write

Settings are in [gateway] of config.toml, selections of servers in [gateway.profiles.NAME]. It ends \
in order at Ctrl-C and SIGTERM, and at once at the second of them.";

#[derive(Clone, Debug, Args)]
pub(crate) struct GatewayArgs {
    /// Where to listen: an address of this machine and a port, which may be 0 for any that is free
    /// [default: 127.0.0.1:7777]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Only these servers
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    /// The servers and settings that `[gateway.profiles.NAME]` selects
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// When tools at /mcp are named `mcp__SERVER__TOOL` [default: always]
    #[arg(long, value_name = "WHEN")]
    pub(crate) prefix: Option<PrefixArg>,
    #[command(flatten)]
    pub(crate) tools: BuiltInArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    /// Where to keep secrets and credentials, whatever the configuration says
    #[arg(long, value_name = "STORE", help_heading = "Configuration")]
    pub(crate) credential_store: Option<CredentialStoreArg>,
}

/// The tools that come with the program.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Built-in tools")]
pub(crate) struct BuiltInArgs {
    /// Serve the built-in tools for this directory, as server `workspace`, besides what is configured
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) root: Option<PathBuf>,
    /// Let the built-in tools change files: adds edit and write
    #[arg(long)]
    pub(crate) allow_write: bool,
    /// Let the built-in tools run commands, which can do whatever you can: adds shell
    #[arg(long)]
    pub(crate) allow_shell: bool,
}

/// Who gets in, and how.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArgs {
    /// Speak https, with the certificate in this PEM file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Let web pages of this origin use the gateway, as in `https://example.com`
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// A name that clients may call this machine by, besides localhost and its address
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
}

/// When tools have prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrefixArg {
    Always,
    /// Where two servers have a tool of the same name
    OnConflict,
    Never,
}

impl From<PrefixArg> for Prefix {
    fn from(given: PrefixArg) -> Self {
        match given {
            PrefixArg::Always => Self::Always,
            PrefixArg::OnConflict => Self::OnConflict,
            PrefixArg::Never => Self::Never,
        }
    }
}
