//! Which provider a schema is for, and what that provider can be told.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The way a provider wants the schema of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// OpenAI, where the model is free to stray from the schema.
    OpenAi,
    /// OpenAI, where the model cannot stray from the schema. Not every tool can be said in it.
    OpenAiStrict,
    /// Anthropic.
    Anthropic,
    /// Gemini, with `parameters` of its own schema language.
    Gemini,
    /// Anyone else with function calling: only what all of them are likely to understand.
    Plain,
}

/// No dialect has this name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("there is no dialect `{given}`: use openai, openai-strict, anthropic, gemini or plain")]
pub struct UnknownDialect {
    given: String,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::OpenAiStrict,
        Self::Anthropic,
        Self::Gemini,
        Self::Plain,
    ];

    /// The word that files and commands use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::OpenAiStrict => "openai-strict",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Plain => "plain",
        }
    }

    /// The longest description of a tool, in characters. Only that of OpenAI is a published limit;
    /// the others keep one tool from filling the context of a model.
    pub fn max_description_chars(self) -> usize {
        match self {
            Self::OpenAi | Self::OpenAiStrict => 1024,
            Self::Anthropic | Self::Gemini | Self::Plain => 10_000,
        }
    }

    /// Whether a schema may refer to a definition, and so hold itself.
    pub(super) fn has_references(self) -> bool {
        match self {
            Self::OpenAi | Self::OpenAiStrict | Self::Anthropic => true,
            Self::Gemini | Self::Plain => false,
        }
    }

    /// Whether `type` may be a list.
    pub(super) fn has_type_lists(self) -> bool {
        match self {
            Self::OpenAi | Self::OpenAiStrict | Self::Anthropic => true,
            Self::Gemini | Self::Plain => false,
        }
    }

    /// Whether the keys of objects are limited to letters, digits, `_`, `.` and `-`.
    pub(super) fn limits_keys(self) -> bool {
        match self {
            Self::Anthropic | Self::Gemini => true,
            Self::OpenAi | Self::OpenAiStrict | Self::Plain => false,
        }
    }

    /// Whether the dialect understands a keyword that restricts a value of one type.
    pub(super) fn understands(self, keyword: &str) -> bool {
        match self {
            Self::OpenAi | Self::Anthropic | Self::Plain => true,
            Self::OpenAiStrict => matches!(
                keyword,
                "pattern"
                    | "multipleOf"
                    | "minimum"
                    | "maximum"
                    | "exclusiveMinimum"
                    | "exclusiveMaximum"
                    | "minItems"
                    | "maxItems"
            ),
            Self::Gemini => matches!(
                keyword,
                "pattern"
                    | "minimum"
                    | "maximum"
                    | "minItems"
                    | "maxItems"
                    | "minLength"
                    | "maxLength"
                    | "minProperties"
                    | "maxProperties"
            ),
        }
    }

    /// Whether the dialect takes a format of strings. An unknown one makes OpenAI and Gemini refuse
    /// the whole request.
    pub(super) fn takes_format(self, format: &str) -> bool {
        match self {
            Self::OpenAi | Self::OpenAiStrict => matches!(
                format,
                "date-time"
                    | "time"
                    | "date"
                    | "duration"
                    | "email"
                    | "hostname"
                    | "ipv4"
                    | "ipv6"
                    | "uuid"
            ),
            Self::Gemini => format == "date-time",
            Self::Anthropic | Self::Plain => true,
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL
            .into_iter()
            .find(|dialect| dialect.as_str() == text);
        found.ok_or_else(|| UnknownDialect {
            given: text.to_owned(),
        })
    }
}
