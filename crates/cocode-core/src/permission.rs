//! Which tools may run: rules, the answers people gave, and the decision they lead to.
//!
//! [`RuleSet::decide`] is the one place where a tool is allowed, asked about or denied. Reading
//! rules from files, asking a person and storing the answer are the business of others.

mod decision;
mod narrowed;
mod rule;
mod rule_set;
mod tool_use;

pub use decision::{DecidedBy, Decision};
pub use narrowed::Narrowed;
pub use rule::{Condition, InvalidRule, MAX_RULE_BYTES, Rule};
pub use rule_set::{Answer, RuleEntry, RuleSet};
pub use tool_use::{Hints, ToolRef, ToolUse};

use std::fmt;

/// What happens to the use of a tool, from the most permissive to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// It runs if a person agrees.
    Ask,
    /// It does not run.
    Deny,
}

/// Who wrote a rule or set a default. Each decides apart, and the stricter verdict holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Authority {
    /// The person at the machine, in any file of theirs.
    User,
    /// The organization, in its policy.
    Organization,
}

impl Verdict {
    /// The word that files and commands use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Whether lists show the tool: what is denied anyway is hidden.
    pub fn allows_listing(self) -> bool {
        self != Self::Deny
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
