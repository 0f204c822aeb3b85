//! All rules and answers that apply, and how they lead to one decision.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{DecidedBy, Decision};
use super::rule::Rule;
use super::tool_use::{Spellings, ToolRef, ToolUse};
use super::{Authority, Verdict};
use crate::names::{ServerName, ToolName};

/// The rules, defaults and remembered answers of all layers. `O` says where each came from, in
/// whatever way the caller tells its places apart.
///
/// The two authorities decide apart, and the stricter verdict holds:
///
/// - The organization's part: a matching deny rule of its own denies. Else a matching ask rule asks,
///   else a matching allow rule allows, else its default holds. Without a default it has no opinion.
/// - The user's part: the same with the user's rules and default, which is [`Verdict::Allow`] if
///   nobody set it. Where this comes to asking, the [answer](Self::remember) that the user gave
///   before is taken instead.
///
/// So an organization's default of [`Verdict::Deny`] with a few allow rules is a list of what may
/// run: no rule and no answer of a user adds to it. What the organization wants asked is asked every
/// time, unless the user denies it. Nor does an organization's allow rule relax what a user asks
/// about or denies. Only within one part do rules make exceptions to the default: allow rules, and
/// under a default of [`Verdict::Deny`] ask rules too, which open what they match as far as asking.
///
/// The order of the rules changes only which of several equal ones is named as the reason: the
/// first. Where both parts come to the same, the organization's is named. Only where both allow, an
/// answer is named before a rule and a rule before a default, whoever wrote them.
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
    organization_default: Option<DefaultEntry<O>>,
    user_default: Option<DefaultEntry<O>>,
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
            organization_default: None,
            user_default: None,
            remembered: BTreeMap::new(),
        }
    }

    /// Adds a rule after those that are there.
    pub fn push(&mut self, entry: RuleEntry<O>) {
        self.entries.push(entry);
    }

    /// Sets what holds where no rule of this authority matches. Of several by the same authority,
    /// the strictest stays.
    pub fn set_default(&mut self, verdict: Verdict, authority: Authority, origin: O) {
        let default = match authority {
            Authority::User => &mut self.user_default,
            Authority::Organization => &mut self.organization_default,
        };
        if default
            .as_ref()
            .is_none_or(|current| verdict > current.verdict)
        {
            *default = Some(DefaultEntry { verdict, origin });
        }
    }

    /// Keeps the user's answer for exactly this tool, in place of the one given before.
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

    /// What an authority wants where none of its rules matches, and where that is written.
    pub fn default_of(&self, authority: Authority) -> Option<(Verdict, &O)> {
        let default = match authority {
            Authority::User => self.user_default.as_ref(),
            Authority::Organization => self.organization_default.as_ref(),
        };
        default.map(|default| (default.verdict, &default.origin))
    }

    /// Whether nothing is ever denied or asked about. Answers count only where something is asked.
    pub fn is_open(&self) -> bool {
        let allows = |verdict: Verdict| verdict == Verdict::Allow;
        let default = |authority| {
            let default = self.default_of(authority);
            default.is_none_or(|(verdict, _)| allows(verdict))
        };
        self.entries.iter().all(|entry| allows(entry.kind))
            && default(Authority::User)
            && default(Authority::Organization)
    }

    /// Decides about one use of a tool.
    pub fn decide(&self, tool_use: &ToolUse<'_>) -> Decision<'_, O> {
        let spellings = tool_use.spellings();
        let spellings = spellings.as_ref();
        let user = self.decide_for_user(tool_use, spellings);
        match self.decide_for(Authority::Organization, tool_use, spellings) {
            Some(organization) => stricter(organization, user),
            None => user,
        }
    }

    fn decide_for_user(
        &self,
        tool_use: &ToolUse<'_>,
        spellings: Option<&Spellings<'_>>,
    ) -> Decision<'_, O> {
        let decision = self
            .decide_for(Authority::User, tool_use, spellings)
            .unwrap_or(Decision {
                verdict: Verdict::Allow,
                by: DecidedBy::Default { set: None },
            });
        if decision.verdict != Verdict::Ask {
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

    /// What the rules and the default of one authority come to, unless it has no opinion.
    fn decide_for(
        &self,
        authority: Authority,
        tool_use: &ToolUse<'_>,
        spellings: Option<&Spellings<'_>>,
    ) -> Option<Decision<'_, O>> {
        let strictest = self
            .entries
            .iter()
            .filter(|entry| {
                entry.authority == authority
                    && entry.rule.matches_spelled(entry.kind, tool_use, spellings)
            })
            .reduce(|first, next| if next.kind > first.kind { next } else { first });
        if let Some(entry) = strictest {
            return Some(Decision {
                verdict: entry.kind,
                by: DecidedBy::Rule {
                    rule: &entry.rule,
                    origin: &entry.origin,
                    authority,
                },
            });
        }
        let (verdict, origin) = self.default_of(authority)?;
        Some(Decision {
            verdict,
            by: DecidedBy::Default {
                set: Some((authority, origin)),
            },
        })
    }
}

/// The stricter of the two parts. Where both come to the same, the one that people would look for.
fn stricter<'a, O>(organization: Decision<'a, O>, user: Decision<'a, O>) -> Decision<'a, O> {
    let is_users = match user.verdict.cmp(&organization.verdict) {
        Ordering::Greater => true,
        Ordering::Less => false,
        // Nobody needs to have allowed anything, so here it counts who did so on purpose.
        Ordering::Equal => {
            user.verdict == Verdict::Allow && user.by.purpose() > organization.by.purpose()
        }
    };
    if is_users { user } else { organization }
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
