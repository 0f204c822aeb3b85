//! All rules and answers that apply, and how they lead to one decision.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{DecidedBy, Decision};
use super::rule::Rule;
use super::tool_use::{ToolRef, ToolUse};
use super::{Authority, Verdict};
use crate::names::{ServerName, ToolName};

/// The rules, defaults and remembered answers of all layers. `O` says where each came from, in
/// whatever way the caller tells its places apart.
///
/// A matching deny rule denies. Else a matching ask rule asks, else a matching allow rule allows,
/// else the default holds. The order of the rules changes only which of several equal ones is named
/// as the reason: an organization's before a user's, then the first.
///
/// Where the verdict is to ask, the [answer](Self::remember) someone gave before is taken instead,
/// but never in place of an organization's rule: that one is asked every time. A default is no rule
/// in this, whoever set it: as allow rules make exceptions to it, so do answers. For the same reason
/// an ask rule under a default of [`Verdict::Deny`] opens what it matches, as far as asking.
///
/// ```
/// use cocode_core::{Authority, RuleEntry, RuleSet, ToolName, ToolUse, Verdict};
///
/// let mut rules = RuleSet::new();
/// for (kind, text, line) in [
///     (Verdict::Allow, "mcp__github__*", 3),
///     (Verdict::Ask, "mcp__github__create_*", 4),
/// ] {
///     let rule = text.parse()?;
///     rules.push(RuleEntry { kind, authority: Authority::User, rule, origin: line });
/// }
///
/// let server = "github".parse()?;
/// let tool = ToolName::new("create_issue");
/// let decision = rules.decide(&ToolUse::mcp(&server, &tool));
/// assert_eq!(decision.verdict, Verdict::Ask);
/// assert_eq!(decision.origin(), Some(&4));
/// assert_eq!(decision.reason(), "asked because of your rule `mcp__github__create_*`");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct RuleSet<O> {
    entries: Vec<RuleEntry<O>>,
    default: Option<DefaultEntry<O>>,
    remembered: BTreeMap<ToolKey, (Answer, O)>,
}

/// A rule in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleEntry<O> {
    /// What the rule says of the tools it matches.
    pub kind: Verdict,
    /// Who wrote it.
    pub authority: Authority,
    /// The tools it is about.
    pub rule: Rule,
    /// Where it is written.
    pub origin: O,
}

/// What a person answered when asked about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// Yes.
    Allow,
    /// No.
    Deny,
}

#[derive(Debug, Clone)]
struct DefaultEntry<O> {
    verdict: Verdict,
    authority: Authority,
    origin: O,
}

/// A tool by its true name, owned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ToolKey {
    Mcp(ServerName, ToolName),
    BuiltIn(Arc<str>),
}

impl<O> RuleSet<O> {
    /// No rules, no answers, and a default of [`Verdict::Allow`].
    pub fn new() -> Self {
        Self {
            entries: Vec::new(),
            default: None,
            remembered: BTreeMap::new(),
        }
    }

    /// Adds a rule after those that are there.
    pub fn push(&mut self, entry: RuleEntry<O>) {
        self.entries.push(entry);
    }

    /// Sets what holds where no rule matches. Of several, the strictest stays, whoever set it.
    pub fn set_default(&mut self, verdict: Verdict, authority: Authority, origin: O) {
        let is_stronger = self
            .default
            .as_ref()
            .is_none_or(|current| (verdict, authority) > (current.verdict, current.authority));
        if is_stronger {
            self.default = Some(DefaultEntry {
                verdict,
                authority,
                origin,
            });
        }
    }

    /// Keeps the answer for exactly this tool, in place of the one given before.
    pub fn remember(&mut self, tool: ToolRef<'_>, answer: Answer, origin: O) {
        self.remembered.insert(ToolKey::new(tool), (answer, origin));
    }

    /// The rules, in order.
    pub fn rules(&self) -> impl Iterator<Item = &RuleEntry<O>> {
        self.entries.iter()
    }

    /// The answers, sorted by tool.
    pub fn answers(&self) -> impl Iterator<Item = (ToolRef<'_>, Answer, &O)> {
        self.remembered
            .iter()
            .map(|(key, (answer, origin))| (key.as_tool_ref(), *answer, origin))
    }

    /// What holds where no rule matches.
    pub fn default_verdict(&self) -> Verdict {
        self.default
            .as_ref()
            .map_or(Verdict::Allow, |default| default.verdict)
    }

    /// Decides about one use of a tool.
    pub fn decide(&self, tool_use: &ToolUse<'_>) -> Decision<'_, O> {
        let decision = self.decide_by_rules(tool_use);
        let is_organizations_rule =
            matches!(decision.by, DecidedBy::Rule { .. }) && decision.is_by_organization();
        if decision.verdict != Verdict::Ask || is_organizations_rule {
            return decision;
        }
        let Some((answer, origin)) = self.remembered.get(&ToolKey::new(tool_use.tool())) else {
            return decision;
        };
        Decision {
            verdict: answer.verdict(),
            by: DecidedBy::Answer {
                origin,
                asking: decision.rule(),
            },
        }
    }

    fn decide_by_rules(&self, tool_use: &ToolUse<'_>) -> Decision<'_, O> {
        let spellings = tool_use.spellings();
        let strongest = self
            .entries
            .iter()
            .filter(|entry| {
                entry
                    .rule
                    .matches_spelled(entry.kind, tool_use, spellings.as_ref())
            })
            .reduce(|first, next| {
                if next.strength() > first.strength() {
                    next
                } else {
                    first
                }
            });
        match strongest {
            Some(entry) => Decision {
                verdict: entry.kind,
                by: DecidedBy::Rule {
                    rule: &entry.rule,
                    origin: &entry.origin,
                    authority: entry.authority,
                },
            },
            None => Decision {
                verdict: self.default_verdict(),
                by: DecidedBy::Default {
                    set: self
                        .default
                        .as_ref()
                        .map(|default| (default.authority, &default.origin)),
                },
            },
        }
    }
}

impl<O> Default for RuleSet<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> Extend<RuleEntry<O>> for RuleSet<O> {
    fn extend<I: IntoIterator<Item = RuleEntry<O>>>(&mut self, entries: I) {
        self.entries.extend(entries);
    }
}

impl<O> RuleEntry<O> {
    /// Of the rules that match, the strongest decides.
    fn strength(&self) -> (Verdict, Authority) {
        (self.kind, self.authority)
    }
}

impl Answer {
    /// What the answer comes to.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Allow => Verdict::Allow,
            Self::Deny => Verdict::Deny,
        }
    }
}

impl ToolKey {
    fn new(tool: ToolRef<'_>) -> Self {
        match tool {
            ToolRef::Mcp { server, tool } => Self::Mcp(server.clone(), tool.clone()),
            ToolRef::BuiltIn { name } => Self::BuiltIn(name.into()),
        }
    }

    fn as_tool_ref(&self) -> ToolRef<'_> {
        match self {
            Self::Mcp(server, tool) => ToolRef::Mcp { server, tool },
            Self::BuiltIn(name) => ToolRef::BuiltIn { name },
        }
    }
}

#[cfg(test)]
#[path = "rule_set_tests.rs"]
mod tests;
