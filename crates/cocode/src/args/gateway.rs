//! The command line of `cocode gateway`.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use cocode_config::Prefix;
use cocode_core::SandboxMode;
use serde::{Deserialize, Serialize};
use url::Url;

use super::govern::CredentialStoreArg;
use super::operate::GatewayVerb;
use super::serve::name;
use super::tool_search::ToolSearchArgs;

pub(crate) const GATEWAY_HELP: &str = "\
All servers that are ready are served as one at /mcp, and each by itself at /mcp/NAME, to clients of \
every protocol revision. Changes of the configuration are applied while it runs. Where no server is \
configured, tools for the current directory are served: read, list, find and grep. A dashboard and a \
management API are at the same address, or at another where others can reach it; it is printed at the start \
with a code to sign in. With --allow-write, --allow-shell or --agent clients need a token; the first one is \
made and printed once.

Examples:
  cocode gateway
  cocode gateway --listen :0 --servers files,github
  cocode gateway --root . --allow-write
  cocode gateway token add ci
  cocode gateway status

Settings are in [gateway] of config.toml, selections of servers in [gateway.profiles.NAME], what each \
client may do in [gateway.principals.NAME]; `cocode audit` shows what was done. It ends in order \
at Ctrl-C and SIGTERM, and at once at the second of them.";

#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GatewayArgs {
    /// Where to listen: an address and a port, which may be 0 for any that is free; one that others can
    /// reach only where clients have to say who they are
    /// [default: 127.0.0.1:7777]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Only these servers
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = name)]
    pub(crate) servers: Vec<String>,
    /// The servers and settings that `[gateway.profiles.NAME]` selects
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// When tools at /mcp are named `mcp__SERVER__TOOL` [default: always]
    #[arg(long, value_name = "WHEN")]
    pub(crate) prefix: Option<PrefixArg>,
    #[command(flatten)]
    pub(crate) search: ToolSearchArgs,
    #[command(flatten)]
    pub(crate) tools: BuiltInArgs,
    #[command(flatten)]
    pub(crate) agent: GatewayAgentArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    /// Where to keep secrets and credentials, whatever the configuration says
    #[arg(long, value_name = "STORE", help_heading = "Configuration")]
    pub(crate) credential_store: Option<CredentialStoreArg>,
    /// Without one, the gateway is started.
    #[command(subcommand)]
    pub(crate) verb: Option<GatewayVerb>,
}

/// The tools that come with the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, Args)]
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

/// The agent that comes with the program.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Agent")]
pub(crate) struct GatewayAgentArgs {
    /// Serve the agent, too, as server `cocode`: it works in the current directory, or below `--root`,
    /// with the servers of this gateway
    #[arg(long)]
    pub(crate) agent: bool,
    /// The most that clients may ask of the agent: read-only, workspace-write, danger-full-access
    /// [default: workspace-write]
    #[arg(long, value_name = "MODE", requires = "agent")]
    pub(crate) max_sandbox: Option<SandboxMode>,
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
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    pub(crate) allow_origin: Vec<String>,
    /// A name that clients may call this machine by, besides localhost and its address, as in
    /// `gate.example.com` or, for this port only, `gate.example.com:7777`
    #[arg(long, value_name = "HOST", value_parser = host)]
    pub(crate) allow_host: Vec<String>,
}

/// Where a web page comes from: what its `Origin` says, to the letter.
fn origin(text: &str) -> Result<String, &'static str> {
    const LIKE: &str = "an origin is a scheme and a host, as in https://example.com or http://localhost:3000, without a path";
    let Ok(url) = Url::parse(text) else {
        return Err(LIKE);
    };
    let after = text.split_once("://").map(|(_, after)| after);
    let is_bare = after.is_some_and(|after| !after.contains(['/', '?', '#', '@']));
    if is_bare && url.has_host() {
        Ok(text.to_owned())
    } else {
        Err(LIKE)
    }
}

/// What clients may have in their `Host`.
fn host(text: &str) -> Result<String, &'static str> {
    const LIKE: &str = "a host is a name or an address, as in example.com or example.com:7777, without a scheme or a path";
    let is_bare = !text.contains(['/', '?', '#', '@', '\\']) && !text.contains(char::is_whitespace);
    let url = Url::parse(&format!("http://{text}/"));
    if is_bare && url.is_ok_and(|url| url.has_host()) {
        Ok(text.to_owned())
    } else {
        Err(LIKE)
    }
}

/// When tools have prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrefixArg {
    /// All tools
    Always,
    /// Tools whose name another server has too
    OnConflict,
    /// No tools; of two with the same name, one is shown
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

#[cfg(test)]
mod tests {
    use super::{host, origin};

    #[test]
    fn origins_are_what_browsers_say() {
        for right in [
            "https://example.com",
            "http://localhost:3000",
            "http://[::1]:80",
            "vscode-webview://x",
        ] {
            assert_eq!(origin(right).as_deref(), Ok(right));
        }
        for wrong in [
            "foo",
            "",
            "example.com",
            "https://example.com/",
            "https://example.com/page",
            "https://",
            "localhost:3000",
            "*",
            "null",
        ] {
            assert!(origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_are_names_with_or_without_a_port() {
        for right in ["example.com", "gate.example:8443", "[::1]:80", "192.0.2.1"] {
            assert_eq!(host(right).as_deref(), Ok(right));
        }
        for wrong in [
            "http://foo/",
            "foo/",
            "",
            "a b",
            "foo:port",
            "me@foo",
            ":80",
        ] {
            assert!(host(wrong).is_err(), "{wrong}");
        }
    }
}
