//! What was decided about a tool, and why, for people to read.

use super::rule::Rule;
use super::{Authority, Verdict};

/// What was decided about the use of a tool.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision<'a, O> {
    /// What happens now.
    pub verdict: Verdict,
    /// What the verdict rests on.
    pub by: DecidedBy<'a, O>,
}

/// What a verdict rests on.
#[derive(Debug, PartialEq, Eq)]
pub enum DecidedBy<'a, O> {
    /// A rule.
    Rule {
        /// The rule.
        rule: &'a Rule,
        /// Where it is written.
        origin: &'a O,
        /// Who wrote it.
        authority: Authority,
    },
    /// A default: of its authority, no rule matches.
    Default {
        /// Who set the default and where, if anyone did.
        set: Option<(Authority, &'a O)>,
    },
    /// The answer that the user gave before, instead of asking again.
    Answer {
        /// Where the answer is kept.
        origin: &'a O,
        /// The user's rule that asks and where it is written, unless the user's default does.
        asking: Option<(&'a Rule, &'a O)>,
    },
}

impl<'a, O> Decision<'a, O> {
    /// The rule that decided and where it is written. Beside a remembered answer, the rule that
    /// asks.
    pub fn rule(&self) -> Option<(&'a Rule, &'a O)> {
        match self.by {
            DecidedBy::Rule { rule, origin, .. } => Some((rule, origin)),
            DecidedBy::Default { .. } => None,
            DecidedBy::Answer { asking, .. } => asking,
        }
    }

    /// Where to look in order to change the verdict, if it is written anywhere.
    pub fn origin(&self) -> Option<&'a O> {
        match self.by {
            DecidedBy::Rule { origin, .. } | DecidedBy::Answer { origin, .. } => Some(origin),
            DecidedBy::Default { set } => set.map(|(_, origin)| origin),
        }
    }

    /// Whether the organization decided, by a rule or by its default.
    pub fn is_by_organization(&self) -> bool {
        let authority = match self.by {
            DecidedBy::Rule { authority, .. } => Some(authority),
            DecidedBy::Default { set } => set.map(|(authority, _)| authority),
            DecidedBy::Answer { .. } => None,
        };
        authority == Some(Authority::Organization)
    }

    /// Why, in one sentence without its full stop. The origin is left for the caller to add.
    pub fn reason(&self) -> String {
        let verdict = self.verdict;
        let happened = match verdict {
            Verdict::Allow => "allowed",
            Verdict::Ask => "asked",
            Verdict::Deny => "denied",
        };
        match self.by {
            DecidedBy::Rule {
                rule, authority, ..
            } => {
                let owner = possessive(authority);
                format!("{happened} because of {owner} rule `{rule}`")
            }
            DecidedBy::Default { set } => {
                // A rule of the other authority may well match, without having decided.
                let (rule, owner) = match set {
                    None => ("no rule", "the"),
                    Some((Authority::User, _)) => ("no rule of yours", "your"),
                    Some((Authority::Organization, _)) => ("no rule of the organization", "its"),
                };
                format!("{happened} because {rule} matches and {owner} default is to {verdict}")
            }
            DecidedBy::Answer { asking, .. } => {
                let asks = match asking {
                    Some((rule, _)) => format!("your rule `{rule}` asks"),
                    None => "your default is to ask".to_owned(),
                };
                format!("{happened} because of your remembered answer ({asks})")
            }
        }
    }
}

impl<O> DecidedBy<'_, O> {
    /// How much it was said about this tool rather than about any: the more, the greater.
    pub(super) fn purpose(&self) -> u8 {
        match self {
            Self::Default { set: None } => 0,
            Self::Default { set: Some(_) } => 1,
            Self::Rule { .. } => 2,
            Self::Answer { .. } => 3,
        }
    }
}

fn possessive(authority: Authority) -> &'static str {
    match authority {
        Authority::User => "your",
        Authority::Organization => "the organization's",
    }
}
