//! Rules for somebody who may do less than everybody may.

use super::decision::Decision;
use super::rule_set::RuleSet;
use super::tool_use::ToolUse;

/// The rules for everybody, and those of one who may do less. Each set decides apart, and the stricter
/// verdict holds: nobody's own rules allow what the rules for everybody deny or ask about.
///
/// ```
/// use cocode_core::{Authority, Narrowed, RuleEntry, RuleSet, ToolName, ToolUse, Verdict};
///
/// let mut own = RuleSet::new();
/// let rule = "mcp__github__delete_*".parse()?;
/// own.push(RuleEntry { kind: Verdict::Deny, authority: Authority::User, rule, origin: "ci" });
/// let rules = Narrowed::new(RuleSet::new(), own);
///
/// let server = "github".parse()?;
/// let tool = ToolName::new("delete_repo");
/// assert_eq!(rules.decide(&ToolUse::mcp(&server, &tool)).verdict, Verdict::Deny);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Narrowed<O> {
    general: RuleSet<O>,
    own: RuleSet<O>,
}

impl<O> Narrowed<O> {
    /// Rules for everybody, and those of one.
    pub fn new(general: RuleSet<O>, own: RuleSet<O>) -> Self {
        Self { general, own }
    }

    /// Whether nothing is ever denied or asked about.
    pub fn is_open(&self) -> bool {
        self.general.is_open() && self.own.is_open()
    }

    /// Decides about one use of a tool. Where both sets come to the same, that for everybody is named.
    pub fn decide(&self, tool_use: &ToolUse<'_>) -> Decision<'_, O> {
        let general = self.general.decide(tool_use);
        let own = self.own.decide(tool_use);
        if own.verdict > general.verdict {
            own
        } else {
            general
        }
    }
}

#[cfg(test)]
#[path = "narrowed_tests.rs"]
mod tests;
