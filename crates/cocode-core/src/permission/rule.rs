//! One rule: the text people write, and which tools it means.
//!
//! # Which tools a text means
//!
//! | text | tools |
//! |---|---|
//! | `*` | all |
//! | `mcp__*` | all of MCP servers |
//! | `mcp__github`, `mcp__github__*` | all of the server `github` |
//! | `mcp__github__create_*`, `mcp__*__delete_*` | by server and tool, split at the first `__` after `mcp__` |
//! | `mcp__git*`, `mcp__*delete*` | by `mcp__{server}__{tool}` as one text |
//! | `shell`, `sh*` | built-in ones by name |
//!
//! # Why the verdict matters
//!
//! Names may hold `__` themselves, and models see odd names in another spelling, so one text can be
//! read in several ways. Whoever is in doubt must not be let through:
//!
//! - An **allow** rule matches by structure only. Server and tool are compared apart, and what is
//!   written in the rule never covers the `__` between them, only a `*` does. So `mcp__a__*` allows
//!   nothing of a server named `a__b`, `mcp__a_*` nothing of `a`, and a text that does not begin
//!   with `mcp__` nothing of any server, except for `*` itself.
//! - **Deny** and **ask** rules match by structure, and by text too: against
//!   `mcp__{server}__{tool}` and against the name that models see.
//!
//! A server whose own name holds `__` is meant exactly, under all verdicts, by
//! [`Rule::for_server`].

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Verdict;
use super::tool_use::{Hints, Spellings, ToolRef, ToolUse};
use crate::wildcard::Wildcard;

/// The longest text of a rule.
pub const MAX_RULE_BYTES: usize = 256;

const PREFIX: &str = "mcp__";
const SEPARATOR: &str = "__";
/// Stands between server and tool where a literal must not cover the separator. Neither server
/// names nor rules can hold it.
const STRUCTURAL_SEPARATOR: char = '\0';

/// Which tools are meant, and on what condition.
///
/// `mcp__github__create_*` means tools of one server, `mcp__*` those of all servers, `shell` a
/// built-in tool, and `*` everything. An allow rule reads its text more narrowly than others do:
/// it never allows a tool because the text *could* be read so.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    pattern: Pattern,
    condition: Condition,
}

/// What the tool must say of itself for a rule to match: everything that is given here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Condition {
    /// [`Hints::is_read_only`] must be this.
    pub read_only: Option<bool>,
    /// [`Hints::is_destructive`] must be this.
    pub destructive: Option<bool>,
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidRule {
    /// The text has no characters, or only blanks.
    #[error("a permission rule cannot be empty")]
    Empty,
    /// The text is longer than [`MAX_RULE_BYTES`].
    #[error("a permission rule has at most {MAX_RULE_BYTES} bytes, this one has {bytes}")]
    TooLong {
        /// The length of the refused text.
        bytes: usize,
    },
    /// The text holds a character that would garble logs and terminals.
    #[error("a permission rule cannot contain the control character {character:?}")]
    ControlCharacter {
        /// The first such character.
        character: char,
    },
    /// The text has blanks at an end, and would match nothing.
    #[error("a permission rule cannot begin or end with a blank")]
    SurroundingBlank,
    /// Nothing stands where the server belongs.
    #[error("the permission rule names no server after `mcp__`; `mcp__*` means all servers")]
    NoServer,
    /// Nothing stands where the tool belongs.
    #[error(
        "the permission rule names no tool after `mcp__{server}__`; \
         `mcp__{server}__*` means all of its tools"
    )]
    NoTool {
        /// The server as written.
        server: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Pattern {
    /// The whole name of any tool.
    Name(Wildcard),
    /// `mcp__…` that does not say where the server ends, kept without the prefix.
    McpText(Wildcard),
    /// A server and its tools.
    Server {
        server: Wildcard,
        tool: Wildcard,
        reading: Reading,
    },
}

/// How a server and its tools were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reading {
    /// As one text, which could be read in another way.
    Text,
    /// As one text, and no tool in it.
    ServerAlone,
    /// Apart.
    Exact,
}

impl Rule {
    /// Means every tool there is.
    pub fn everything() -> Self {
        Self::unconditional(Pattern::Name("*".into()))
    }

    /// Means tools of a server by two patterns, exactly: a name that holds `__` cannot be mistaken
    /// for another.
    pub fn for_server(server: &str, tool: &str) -> Result<Self, InvalidRule> {
        for part in [server, tool] {
            check_text(part)?;
        }
        Ok(Self::unconditional(Pattern::Server {
            server: server.into(),
            tool: tool.into(),
            reading: Reading::Exact,
        }))
    }

    /// The same rule, on this condition.
    #[must_use]
    pub fn when(self, condition: Condition) -> Self {
        Self { condition, ..self }
    }

    /// What the tool must say of itself.
    pub fn condition(&self) -> Condition {
        self.condition
    }

    /// Whether it names a server, rather than a pattern of servers, and depends on no hint of the tool.
    pub fn names_server(&self) -> bool {
        let is_named = |server: &Wildcard| !server.as_str().contains('*');
        self.condition == Condition::default()
            && matches!(&self.pattern, Pattern::Server { server, .. } if is_named(server))
    }

    /// Whether the rule is about this use, if it is a rule of this verdict.
    pub fn matches(&self, verdict: Verdict, tool_use: &ToolUse<'_>) -> bool {
        self.matches_spelled(verdict, tool_use, tool_use.spellings().as_ref())
    }

    pub(super) fn matches_spelled(
        &self,
        verdict: Verdict,
        tool_use: &ToolUse<'_>,
        spellings: Option<&Spellings<'_>>,
    ) -> bool {
        self.condition.holds(tool_use.hints())
            && (self.pattern.matches_structure(tool_use.tool())
                || verdict != Verdict::Allow
                    && spellings.is_some_and(|spellings| self.pattern.matches_any(spellings)))
    }

    fn unconditional(pattern: Pattern) -> Self {
        Self {
            pattern,
            condition: Condition::default(),
        }
    }
}

impl FromStr for Rule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        check_text(text)?;
        if text.trim() != text {
            return Err(InvalidRule::SurroundingBlank);
        }
        let Some(rest) = text.strip_prefix(PREFIX) else {
            return Ok(Self::unconditional(Pattern::Name(text.into())));
        };
        let as_one_text = || Ok(Self::unconditional(Pattern::McpText(rest.into())));
        let (server, tool, reading) = match rest.split_once(SEPARATOR) {
            Some(("", "")) => return Err(InvalidRule::NoServer),
            Some((server, "")) => {
                let server = server.to_owned();
                return Err(InvalidRule::NoTool { server });
            }
            // So models see a server of whose name no character is left to them.
            Some(("", _)) => return as_one_text(),
            Some((server, tool)) => (server, tool, Reading::Text),
            None if rest.is_empty() => return Err(InvalidRule::NoServer),
            None if rest.contains('*') => return as_one_text(),
            // As one text this could match nothing, and a rule that does nothing is a trap.
            None => (rest, "*", Reading::ServerAlone),
        };
        Ok(Self::unconditional(Pattern::Server {
            server: server.into(),
            tool: tool.into(),
            reading,
        }))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pattern.fmt(formatter)?;
        let Condition {
            read_only,
            destructive,
        } = self.condition;
        let parts = [("read_only", read_only), ("destructive", destructive)];
        let given = parts
            .iter()
            .filter_map(|(key, value)| value.map(|value| (key, value)));
        for (word, (key, value)) in ["when", "and"].iter().zip(given) {
            write!(formatter, " {word} {key} = {value}")?;
        }
        Ok(())
    }
}

impl Condition {
    /// Whether a tool that says this of itself meets the condition.
    pub fn holds(self, hints: Hints) -> bool {
        let Self {
            read_only,
            destructive,
        } = self;
        read_only.is_none_or(|expected| expected == hints.is_read_only())
            && destructive.is_none_or(|expected| expected == hints.is_destructive())
    }
}

impl Pattern {
    /// The narrow reading, which is enough for an allow rule.
    fn matches_structure(&self, tool_ref: ToolRef<'_>) -> bool {
        match (self, tool_ref) {
            (Self::Name(pattern), ToolRef::BuiltIn { name }) => pattern.matches(name),
            (Self::Name(pattern), ToolRef::Mcp { .. }) => pattern.matches_everything(),
            (Self::McpText(pattern), ToolRef::Mcp { server, tool }) => {
                pattern.matches(&format!("{server}{STRUCTURAL_SEPARATOR}{tool}"))
            }
            (
                Self::Server {
                    server: server_pattern,
                    tool: tool_pattern,
                    reading: _,
                },
                ToolRef::Mcp { server, tool },
            ) => server_pattern.matches(server.as_str()) && tool_pattern.matches(tool.as_str()),
            (Self::McpText(_) | Self::Server { .. }, ToolRef::BuiltIn { .. }) => false,
        }
    }

    /// The wide reading, as text.
    fn matches_any(&self, spellings: &Spellings<'_>) -> bool {
        let whole = match self {
            Self::Name(pattern) => pattern.clone(),
            Self::McpText(pattern) => format!("{PREFIX}{pattern}").into(),
            Self::Server {
                server,
                tool,
                reading: Reading::Text | Reading::ServerAlone,
            } => format!("{PREFIX}{server}{SEPARATOR}{tool}").into(),
            Self::Server {
                reading: Reading::Exact,
                ..
            } => return false,
        };
        spellings.any(|spelling| whole.matches(spelling))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(pattern) => write!(formatter, "{pattern}"),
            Self::McpText(pattern) => write!(formatter, "{PREFIX}{pattern}"),
            Self::Server {
                server,
                tool,
                reading: Reading::Text,
            } => write!(formatter, "{PREFIX}{server}{SEPARATOR}{tool}"),
            Self::Server {
                server,
                tool: _,
                reading: Reading::ServerAlone,
            } => write!(formatter, "{PREFIX}{server}"),
            Self::Server {
                server,
                tool,
                reading: Reading::Exact,
            } => write!(formatter, "tool {tool} of server {server}"),
        }
    }
}

fn check_text(text: &str) -> Result<(), InvalidRule> {
    if text.trim().is_empty() {
        return Err(InvalidRule::Empty);
    }
    if text.len() > MAX_RULE_BYTES {
        return Err(InvalidRule::TooLong { bytes: text.len() });
    }
    if let Some(character) = text.chars().find(|character| character.is_control()) {
        return Err(InvalidRule::ControlCharacter { character });
    }
    Ok(())
}

#[cfg(test)]
#[path = "rule_tests.rs"]
mod tests;
