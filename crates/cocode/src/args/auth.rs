//! The command line of signing in and out, and of looking at who is signed in where.

use std::time::Duration;

use clap::{Args, Subcommand, ValueHint};

use super::manage::RegistrationWay;
use super::seconds;

pub(crate) const LOGIN_HELP: &str = "\
A browser is opened at this machine. Over ssh, without a display, or with --no-browser, the address is \
printed instead: open it anywhere. If the browser then cannot come back to this machine, paste the \
address that it was sent to; whichever comes first counts. Servers that are connected elsewhere, as by \
`cocode mcp status --watch`, notice it by themselves.

Examples:
  cocode mcp login notes
  cocode mcp login notes --scopes notes:read,notes:write
  cocode mcp login https://example.com/mcp --no-browser";

pub(crate) const LOGOUT_HELP: &str = "\
The client that was registered for the server is kept for the next time, unless --revoke gives \
everything back.";

#[derive(Debug, Args)]
pub(crate) struct LoginArgs {
    /// A configured server, or the address of one
    #[arg(value_name = "NAME|URL")]
    pub(crate) server: String,
    /// Scopes to ask for, instead of those that are configured or that the server names; with commas
    /// or blanks between, or several times
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// Print the address and open no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// The port where the browser comes back to [default: any that is free]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) callback_port: Option<u16>,
    /// The address where the browser comes back to, where that is not `http://127.0.0.1:PORT/callback`
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) callback_url: Option<String>,
    /// How to become a client of the authorization server
    #[arg(long, value_name = "WAY")]
    pub(crate) registration: Option<RegistrationWay>,
    /// A client registered beforehand
    #[arg(long, value_name = "ID")]
    pub(crate) client_id: Option<String>,
    /// That client has a secret: from the variable `MCP_CLIENT_SECRET`, or asked for at the terminal
    #[arg(long)]
    pub(crate) client_secret: bool,
    /// How long you may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "300")]
    pub(crate) timeout: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct LogoutArgs {
    /// A configured server, or the address of one
    #[arg(value_name = "NAME|URL", required_unless_present = "all")]
    pub(crate) server: Option<String>,
    /// Sign out everywhere
    #[arg(long, conflicts_with = "server")]
    pub(crate) all: bool,
    /// Have the authorization server take the tokens back, and forget the client that was registered
    #[arg(long)]
    pub(crate) revoke: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthVerb {
    /// Show who is signed in where, and until when; nobody is contacted
    Status(AuthStatusArgs),
    /// Print the document that describes this client, to be put where authorization servers find it
    ClientMetadata(ClientMetadataArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AuthStatusArgs {
    /// Which servers; all with an address, and what else is stored, if none is named
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ClientMetadataArgs {
    /// The https URL where the document will be [default: the setting `oauth.client_metadata_url`]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub(crate) url: Option<String>,
    /// The port where browsers come back to [default: any]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) callback_port: Option<u16>,
}

impl LoginArgs {
    /// The scopes, if any are given.
    pub(crate) fn scopes(&self) -> Option<Vec<String>> {
        let words = self
            .scopes
            .iter()
            .flat_map(|given| given.split_whitespace());
        let scopes: Vec<String> = words.map(str::to_owned).collect();
        (!scopes.is_empty()).then_some(scopes)
    }
}
