//! Whether models search for tools, as people write it.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Whether models search for tools instead of being shown all of them: `ENABLE_TOOL_SEARCH`, and
/// `tool_search.enabled` in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolSearchMode {
    /// From the threshold on.
    #[default]
    Auto,
    /// From this many percent of the context window on.
    AutoFrom(u8),
    /// Always.
    On,
    /// Never.
    Off,
}

/// Why a text is no [`ToolSearchMode`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is not one of auto, auto:N with N from 1 to 100, true, false")]
pub struct UnknownToolSearchMode(String);

impl FromStr for ToolSearchMode {
    type Err = UnknownToolSearchMode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let percent = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let number = text.parse::<u8>().ok();
            number.filter(|number| is_number && (1..=100).contains(number))
        };
        match text {
            "auto" => Ok(Self::Auto),
            "true" => Ok(Self::On),
            "false" => Ok(Self::Off),
            other => other
                .strip_prefix("auto:")
                .and_then(percent)
                .map(Self::AutoFrom)
                .ok_or_else(|| UnknownToolSearchMode(text.to_owned())),
        }
    }
}

impl fmt::Display for ToolSearchMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.pad("auto"),
            Self::AutoFrom(percent) => write!(formatter, "auto:{percent}"),
            Self::On => formatter.pad("true"),
            Self::Off => formatter.pad("false"),
        }
    }
}
