//! The command line for results that were too large to show.

use std::num::NonZeroUsize;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum ResultVerb {
    /// List the results that are kept, the newest first
    #[command(visible_alias = "ls")]
    List,
    /// Show a result, page by page
    #[command(after_help = SHOW_HELP)]
    Show(ShowArgs),
    /// Find lines in a result
    #[command(after_help = GREP_HELP)]
    Grep(GrepArgs),
    /// Pick from the JSON of a result, with a filter in the language of jq
    #[command(after_help = JQ_HELP)]
    Jq(JqArgs),
    /// Remove results
    #[command(visible_alias = "rm")]
    Remove(RemoveResultsArgs),
}

const SHOW_HELP: &str = "\
Texts are shown as they are, JSON is indented, and images and sounds are named. A page holds about \
5,000 tokens, or what --lines says. --json prints the result as the server sent it, or the page with \
its numbers if --page is given.";

const GREP_HELP: &str = "\
Patterns are regular expressions, as in Rust's regex library. Lines are those of `show`, with their \
numbers. Exit code: 0 if something is found, 1 if not.";

const JQ_HELP: &str = "\
The input is the structured content of the result, or else its text if that is JSON, or else the \
result as a whole.

Examples:
  cocode mcp result jq r3f09c1d2ab 'keys'
  cocode mcp result jq r3f09c1d2ab '.items | length'
  cocode mcp result jq r3f09c1d2ab -r '.items[] | select(.open) | .title'";

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The handle of the result, or as much of its beginning as no other has
    pub(crate) handle: String,
    /// Which page; the first is 1 [default: 1]
    #[arg(short, long, value_name = "N")]
    pub(crate) page: Option<NonZeroUsize>,
    /// How many lines a page has
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) lines: Option<NonZeroUsize>,
    /// Show all pages at once
    #[arg(short, long, conflicts_with_all = ["page", "lines"])]
    pub(crate) all: bool,
    /// Print the result as the server sent it
    #[arg(long, conflicts_with_all = ["page", "lines", "all"])]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GrepArgs {
    /// The handle of the result, or as much of its beginning as no other has
    pub(crate) handle: String,
    /// What to look for
    pub(crate) pattern: String,
    /// Take upper and lower case as the same
    #[arg(short, long)]
    pub(crate) ignore_case: bool,
    /// Show so many lines before and after each line
    #[arg(short = 'C', long, value_name = "N", default_value_t = 0)]
    pub(crate) context: usize,
    /// Stop after so many lines
    #[arg(short, long, value_name = "N", default_value = "200")]
    pub(crate) max_count: NonZeroUsize,
}

#[derive(Debug, Args)]
pub(crate) struct JqArgs {
    /// The handle of the result, or as much of its beginning as no other has
    pub(crate) handle: String,
    /// The filter
    #[arg(default_value = ".")]
    pub(crate) filter: String,
    /// Print texts without quotes
    #[arg(short, long)]
    pub(crate) raw_output: bool,
    /// Print each value on one line
    #[arg(short, long)]
    pub(crate) compact_output: bool,
    /// Filter the result as a whole, with everything that is around its content
    #[arg(long)]
    pub(crate) whole: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RemoveResultsArgs {
    /// The handles of the results
    #[arg(
        value_name = "HANDLE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub(crate) handles: Vec<String>,
    /// Remove all of them
    #[arg(long)]
    pub(crate) all: bool,
}
