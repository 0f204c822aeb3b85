//! The part of command lines that says whether clients search for tools.

use std::str::FromStr;

use clap::Args;
use cocode_core::{ToolSearchMode, UnknownToolSearchMode};
use serde::{Deserialize, Serialize};

/// Whether clients search for tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize, Args)]
#[command(next_help_heading = "Tool search")]
pub(crate) struct ToolSearchArgs {
    /// Whether clients search for tools instead of being shown all: true, false, auto (by the context
    /// window of their model), or auto:N (from N percent of it on) [default: auto; true without MODE]
    #[arg(
        long,
        value_name = "MODE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true"
    )]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tool_search: Option<ModeArg>,
    /// How many tokens the models of clients see that do not say it themselves
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context_window: Option<u64>,
}

/// A [`ToolSearchMode`], which travels as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ModeArg(pub(crate) ToolSearchMode);

impl FromStr for ModeArg {
    type Err = UnknownToolSearchMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl TryFrom<String> for ModeArg {
    type Error = UnknownToolSearchMode;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ModeArg> for String {
    fn from(ModeArg(mode): ModeArg) -> Self {
        mode.to_string()
    }
}
