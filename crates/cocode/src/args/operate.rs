//! The command line of looking after a gateway that runs.

use clap::{Args, Subcommand, ValueHint};
use url::Url;

use super::access::TokenVerb;

/// Where the token of an administrator is looked for, unless told otherwise.
pub(crate) const TOKEN_VARIABLE: &str = "COCODE_TOKEN";

const TOKEN_HELP: &str = "\
Clients show a token with every request: `Authorization: Bearer cocode_…`. As soon as there is one, \
every client needs one, also at a gateway that is running. What its owner may do is in \
[gateway.principals.NAME] of config.toml. A token is kept as its hash: it is shown once, when it is made.

Examples:
  cocode gateway token add ci
  TOKEN=$(cocode gateway token add ana --admin --expires 90d)
  cocode gateway token revoke ci";

const WHOM_HELP: &str = "\
Your own gateway is found by itself, and needs no token; if several run, `--url` chooses one. A gateway \
elsewhere is asked at its address, with the token of an administrator in COCODE_TOKEN, or in the variable \
that `--token-env` names.";

/// What is done about gateways, besides being one.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GatewayVerb {
    /// Show how the gateway is: where it listens, its servers, who uses it
    #[command(after_help = WHOM_HELP)]
    Status(WhomArgs),
    /// Make a code to sign in to the dashboard with, once
    ///
    /// The code that was made before is worthless from then on.
    #[command(after_help = WHOM_HELP)]
    Code(WhomArgs),
    /// Show who is connected
    #[command(after_help = WHOM_HELP)]
    Sessions(WhomArgs),
    /// Show what was called of late, the newest last
    #[command(after_help = WHOM_HELP)]
    Calls(CallsArgs),
    /// End the gateway, in order
    #[command(after_help = WHOM_HELP)]
    Stop(WhomArgs),
    /// Make, list and revoke the tokens that let clients in
    #[command(subcommand, after_help = TOKEN_HELP)]
    Token(TokenVerb),
}

/// Which gateway is meant.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WhomArgs {
    /// The gateway, by its address; elsewhere by that of its dashboard, as in `https://gate.example.com`
    #[arg(long, value_name = "URL", value_parser = address, value_hint = ValueHint::Url)]
    pub(crate) url: Option<Url>,
    /// The variable with the token of an administrator there [default: `COCODE_TOKEN`]
    #[arg(long, value_name = "VAR", requires = "url")]
    pub(crate) token_env: Option<String>,
}

/// Which calls are shown.
#[derive(Clone, Debug, Args)]
pub(crate) struct CallsArgs {
    /// Go on, and show calls as they end
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// How many at most
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) limit: u64,
    #[command(flatten)]
    pub(crate) whom: WhomArgs,
}

/// Where a gateway is. What else stands in an address would be lost, or seen by others.
pub(crate) fn address(text: &str) -> Result<Url, &'static str> {
    const LIKE: &str =
        "write where it listens, as in http://127.0.0.1:7777 or https://gate.example.com";
    let mut url = Url::parse(text).map_err(|_bad| LIKE)?;
    let is_bare = url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !is_bare {
        return Err(LIKE);
    }
    // Who copies the address that clients use means the same gateway.
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix("/mcp").unwrap_or(path).to_owned();
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_is_where_a_gateway_listens() {
        for (text, expected) in [
            ("http://127.0.0.1:7777", "http://127.0.0.1:7777/"),
            ("http://127.0.0.1:7777/mcp", "http://127.0.0.1:7777/"),
            ("https://gate.example/", "https://gate.example/"),
            ("https://example.com/gate/mcp/", "https://example.com/gate"),
        ] {
            let found = address(text).map(String::from);
            assert_eq!(found.as_deref(), Ok(expected), "{text}");
        }
        for wrong in [
            "127.0.0.1:7777",
            "gate.example",
            "ftp://gate.example",
            "http://me@gate.example",
            "http://:secret@gate.example",
            "http://gate.example?token=x",
            "http://gate.example#x",
            "",
        ] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
