//! The command line for finding tools, and for what they cost.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};

use super::seconds;

/// The most tools that one search gives.
const MAX_LIMIT: i64 = 100;

pub(crate) const SEARCH_HELP: &str = "\
Nothing is started and nobody is contacted: what is searched is what the servers listed before, for \
`cocode mcp tools`, for an agent or for a gateway. --refresh asks them now. Tools that filters or rules \
hide, and those of servers that are disabled, blocked or not approved, are not found.

Files (- for stdin; neither a server nor configuration is needed with --catalog):
  --catalog  [{\"server\": \"files\", \"name\": \"read_file\", \"description\": \"...\", \"inputSchema\": {...}}, ...]
  --batch    [\"a query\", \"another\", ...]

With --json: [{\"server\", \"tool\", \"name\", \"score\", \"description\"}, ...], the best first; name is what \
`cocode mcp call` takes, and --explain adds \"parts\": [{\"what\", \"found\", \"score\"}, ...]. With --batch it is \
always JSON: for every query, in order, a list [{\"server\", \"tool\", \"score\"}, ...]. Scores can be compared \
within one search.

Exit code: 0 if something is found, 1 if not; with --batch always 0.

Examples:
  cocode mcp search read a file
  cocode mcp search 'open a pull request' --limit 10 --explain
  cocode mcp search weather --refresh --json
  cocode mcp search 'send mail' --catalog tools.json
  cocode mcp search --catalog tools.json --batch queries.json > results.json";

pub(crate) const BUDGET_HELP: &str = "\
Tokens are an estimate: of names, descriptions and input schemas, about four characters to a token. Real \
tokenizers differ by some tens of percent. The context window is --window, or that of the model in \
config.toml (`model`, with context_window in [models.NAME]), or 200000 tokens.

What is weighed is what the servers listed before: nothing is started and nobody is contacted, unless \
--refresh asks them. CALLS is how often tools were called through cocode, by `mcp call`, `mcp serve` or \
`gateway`. That is counted in `usage` under the state directory, without arguments or results, and never \
leaves the machine; `record_usage = false` in [retention] of config.toml switches it off.

Examples:
  cocode mcp budget
  cocode mcp budget --tools --window 1000000
  cocode mcp budget --server github
  cocode mcp budget --catalog tools.json --json";

/// Where tools are taken from.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ToolboxArgs {
    /// Take the tools of this file instead of those of the configured servers
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) catalog: Option<PathBuf>,
    /// Ask the servers, instead of taking what they listed before
    #[arg(long, conflicts_with = "catalog")]
    pub(crate) refresh: bool,
    /// How long each server may take, with --refresh
    #[arg(long, value_name = "SECONDS", value_parser = seconds, requires = "refresh")]
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What the tool is to do, in words
    #[arg(value_name = "QUERY", required_unless_present = "batch")]
    pub(crate) query: Vec<String>,
    /// How many tools to show, from 1 to 100
    #[arg(
        short = 'n',
        long,
        value_name = "K",
        default_value = "5",
        value_parser = clap::value_parser!(u16).range(1..=MAX_LIMIT)
    )]
    pub(crate) limit: u16,
    /// Show what each score is made of
    #[arg(long, conflicts_with = "batch")]
    pub(crate) explain: bool,
    /// Search for every query of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "query")]
    pub(crate) batch: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) toolbox: ToolboxArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BudgetArgs {
    /// Tokens of the context window to compare with [default: that of the configured model, or 200000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) window: Option<u64>,
    /// Show only this server, with its tools; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) server: Vec<String>,
    /// Show every tool
    #[arg(long)]
    pub(crate) tools: bool,
    #[command(flatten)]
    pub(crate) toolbox: ToolboxArgs,
}
