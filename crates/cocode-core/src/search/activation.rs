//! Decides whether a model is shown all tools, or searches for them.

use std::fmt;

use super::mode::ToolSearchMode;

/// Characters of definitions that are taken for one token: what names, descriptions and schemas
/// come to, with all their punctuation.
pub const CHARACTERS_PER_TOKEN: f64 = 2.5;

/// When models search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPolicy {
    /// Whether they do at all.
    pub mode: ToolSearchMode,
    /// From how many percent of the context window on [`ToolSearchMode::Auto`] means search.
    pub threshold_percent: f64,
    /// Tokens of the smallest context window with which models search by themselves.
    pub min_context_window: u64,
}

/// What is known of the model that would search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Searcher {
    /// Tokens that it can see at once, if anybody knows.
    pub context_window: Option<u64>,
    /// Whether it can call tools; who cannot, cannot search.
    pub calls_tools: bool,
}

/// What all tools would take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToolLoad {
    /// Characters of all definitions: names, descriptions and schemas.
    pub characters: u64,
    /// How many tools need not be shown before they are found. Those of servers with `always_load`
    /// are always shown.
    pub deferrable: usize,
}

/// What is to be done, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchDecision {
    /// The model searches.
    Search(WhySearch),
    /// The model is shown all tools.
    ShowAll(WhyShowAll),
}

/// Why a model searches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhySearch {
    /// It was switched on.
    SwitchedOn,
    /// The definitions are too large a part of what the model can see.
    OverThreshold(Share),
}

/// Why a model is shown all tools.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WhyShowAll {
    /// Search was switched off.
    SwitchedOff,
    /// The model cannot call tools, and so cannot search either.
    NoToolCalls,
    /// There is no tool that could be left out.
    NothingToDefer,
    /// Nobody knows how much the model can see.
    UnknownWindow,
    /// The model sees so little that searching costs more than it brings.
    SmallWindow {
        /// Tokens that it can see.
        window: u64,
        /// Tokens that it should.
        least: u64,
    },
    /// The definitions are a small part of what the model can see.
    UnderThreshold(Share),
}

/// What part of a context window definitions take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// Characters of all definitions.
    pub characters: u64,
    /// From how many characters on models search.
    pub threshold: u64,
    /// The same in percent of the context window.
    pub percent: f64,
    /// Tokens of the context window.
    pub window: u64,
}

impl Default for SearchPolicy {
    fn default() -> Self {
        Self {
            mode: ToolSearchMode::Auto,
            threshold_percent: 10.0,
            min_context_window: 32_000,
        }
    }
}

impl SearchPolicy {
    /// What holds for a model and the tools that there are.
    pub fn decide(&self, model: Searcher, tools: ToolLoad) -> SearchDecision {
        use SearchDecision::{Search, ShowAll};

        let percent = match self.mode {
            ToolSearchMode::Off => return ShowAll(WhyShowAll::SwitchedOff),
            _ if !model.calls_tools => return ShowAll(WhyShowAll::NoToolCalls),
            _ if tools.deferrable == 0 => return ShowAll(WhyShowAll::NothingToDefer),
            ToolSearchMode::On => return Search(WhySearch::SwitchedOn),
            ToolSearchMode::Auto => self.threshold_percent,
            ToolSearchMode::AutoFrom(percent) => f64::from(percent),
        };
        let Some(window) = model.context_window else {
            return ShowAll(WhyShowAll::UnknownWindow);
        };
        if window < self.min_context_window {
            let least = self.min_context_window;
            return ShowAll(WhyShowAll::SmallWindow { window, least });
        }
        let share = Share {
            characters: tools.characters,
            threshold: threshold(percent, window),
            percent,
            window,
        };
        if share.characters >= share.threshold {
            Search(WhySearch::OverThreshold(share))
        } else {
            ShowAll(WhyShowAll::UnderThreshold(share))
        }
    }
}

impl SearchDecision {
    /// Whether the model searches.
    pub fn is_search(&self) -> bool {
        matches!(self, Self::Search(_))
    }
}

/// Characters that a definition has in the eyes of a model: its name, its description, and its schema
/// without the blanks between its parts, which models do not see.
pub fn definition_characters(name: &str, description: Option<&str>, schema: Option<&str>) -> u64 {
    let texts = [name, description.unwrap_or_default()];
    let texts: usize = texts.iter().map(|text| text.chars().count()).sum();
    let (mut in_text, mut is_escaped) = (false, false);
    let in_schema = schema.unwrap_or_default().chars().filter(|character| {
        let counts = in_text || !matches!(character, ' ' | '\t' | '\n' | '\r');
        if is_escaped {
            is_escaped = false;
        } else if in_text && *character == '\\' {
            is_escaped = true;
        } else if *character == '"' {
            in_text = !in_text;
        }
        counts
    });
    u64::try_from(texts + in_schema.count()).unwrap_or(u64::MAX)
}

/// Characters from which on models search.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "no window has 2^53 tokens, and the conversion is within bounds whatever is given"
)]
fn threshold(percent: f64, window: u64) -> u64 {
    (percent / 100.0 * window as f64 * CHARACTERS_PER_TOKEN).ceil() as u64
}

impl fmt::Display for SearchDecision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Search(why) => write!(formatter, "models search: {why}"),
            Self::ShowAll(why) => write!(formatter, "all tools are shown: {why}"),
        }
    }
}

impl fmt::Display for WhySearch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SwitchedOn => formatter.write_str("tool search is switched on"),
            Self::OverThreshold(share) => share.fmt(formatter),
        }
    }
}

impl fmt::Display for WhyShowAll {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SwitchedOff => formatter.write_str("tool search is switched off"),
            Self::NoToolCalls => formatter.write_str("the model cannot call tools"),
            Self::NothingToDefer => {
                formatter.write_str("there is no tool that need not be shown at once")
            }
            Self::UnknownWindow => {
                formatter.write_str("nobody knows how large the context window is")
            }
            Self::SmallWindow { window, least } => write!(
                formatter,
                "the context window has {window} tokens, and search begins at {least}"
            ),
            Self::UnderThreshold(share) => share.fmt(formatter),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            characters,
            threshold,
            percent,
            window,
        } = self;
        write!(
            formatter,
            "definitions have {characters} characters, and search begins at {threshold} \
             ({percent}% of {window} tokens)"
        )
    }
}

#[cfg(test)]
#[path = "activation_tests.rs"]
mod tests;
