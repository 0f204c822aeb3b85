//! What a rule is asked about: a tool, what it says of itself, and every way its name is spelled.

use crate::names::{ServerName, ToolName};
use crate::qualified::{self, QualifiedName};

/// A tool by its true name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolRef<'a> {
    /// A tool of an MCP server.
    Mcp {
        /// The server, as configured.
        server: &'a ServerName,
        /// The tool, as the server sent it.
        tool: &'a ToolName,
    },
    /// A tool of the agent itself, such as `shell`.
    BuiltIn {
        /// Its name.
        name: &'a str,
    },
}

/// What a tool says of itself: its annotations as the server sent them.
///
/// They are claims. A rule that allows because of them trusts the server to tell the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hints {
    /// `readOnlyHint`.
    pub read_only: Option<bool>,
    /// `destructiveHint`.
    pub destructive: Option<bool>,
}

/// The use of a tool that someone wants permission for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolUse<'a> {
    tool: ToolRef<'a>,
    hints: Hints,
    model_name: Option<&'a str>,
}

/// The texts under which an MCP tool can be meant. Built once for a decision, whatever the number
/// of rules.
#[derive(Debug)]
pub(super) struct Spellings<'a> {
    /// `mcp__{server}__{tool}`, nothing altered.
    verbatim: String,
    /// What models see, where that is not the verbatim text.
    qualified: Option<QualifiedName>,
    /// What models see according to the caller.
    model_name: Option<&'a str>,
}

impl Hints {
    /// Whether the tool changes nothing. Without a hint it may, as MCP has it.
    pub fn is_read_only(self) -> bool {
        self.read_only.unwrap_or(false)
    }

    /// Whether the tool may destroy something. Without a hint it may, as MCP has it, unless it is
    /// read-only. A tool that claims to be both is believed the worse.
    pub fn is_destructive(self) -> bool {
        self.destructive.unwrap_or(!self.is_read_only())
    }
}

impl<'a> ToolUse<'a> {
    /// The use of a tool that says nothing of itself.
    pub fn new(tool: ToolRef<'a>) -> Self {
        Self {
            tool,
            hints: Hints::default(),
            model_name: None,
        }
    }

    /// The use of an MCP tool that says nothing of itself.
    pub fn mcp(server: &'a ServerName, tool: &'a ToolName) -> Self {
        Self::new(ToolRef::Mcp { server, tool })
    }

    /// The use of a built-in tool.
    pub fn built_in(name: &'a str) -> Self {
        Self::new(ToolRef::BuiltIn { name })
    }

    /// Adds what the tool says of itself.
    #[must_use]
    pub fn with_hints(self, hints: Hints) -> Self {
        Self { hints, ..self }
    }

    /// Adds the name that models see, as given out by a [`NameTable`](crate::NameTable).
    ///
    /// The usual one is derived from the tool. Only a table knows the others, which it gives out
    /// when two hashes collide.
    #[must_use]
    pub fn with_model_name(self, name: &'a str) -> Self {
        Self {
            model_name: Some(name),
            ..self
        }
    }

    /// The tool.
    pub fn tool(&self) -> ToolRef<'a> {
        self.tool
    }

    /// What the tool says of itself.
    pub fn hints(&self) -> Hints {
        self.hints
    }

    /// The spellings of an MCP tool. Built-in tools have their name alone, and that is theirs.
    pub(super) fn spellings(&self) -> Option<Spellings<'a>> {
        let ToolRef::Mcp { server, tool } = self.tool else {
            return None;
        };
        let qualified = match qualified::plain(server, tool) {
            Some(_) => None,
            None => Some(qualified::hashed(server, tool, 0, qualified::sha256)),
        };
        Some(Spellings {
            verbatim: format!("mcp__{server}__{tool}"),
            qualified,
            model_name: self.model_name,
        })
    }
}

impl Spellings<'_> {
    pub(super) fn any(&self, matches: impl Fn(&str) -> bool) -> bool {
        matches(&self.verbatim)
            || self
                .qualified
                .as_ref()
                .is_some_and(|name| matches(name.as_str()))
            || self.model_name.is_some_and(matches)
    }
}

#[cfg(test)]
#[path = "tool_use_tests.rs"]
mod tests;
