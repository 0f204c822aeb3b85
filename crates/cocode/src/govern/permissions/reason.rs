//! Whose a rule is, and what people are told of why a call is asked about or denied. What stands in
//! for something broken is nobody's rule, and a file that waits for approval is not the user's.

use std::path::PathBuf;

use cocode_config::{Config, POLICY_SCOPE, SettingOrigin};
use cocode_core::{Authority, DecidedBy, Decision, Rule, RuleEntry, Verdict};

/// What is known of the places where rules are written.
#[derive(Debug)]
pub(crate) struct Reasons {
    broken: Vec<SettingOrigin>,
    policy_is_broken: bool,
    pending: Vec<PathBuf>,
}

/// Whose a rule or a default is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Organization,
    User,
    /// It is in a file of the work tree that is not approved.
    Project,
    /// Nobody's: something there is broken.
    Broken,
}

impl Owner {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::User => "yours",
            Self::Project => "the project's",
            Self::Broken => "broken",
        }
    }
}

/// Why, in one sentence without its full stop, and the place if the sentence does not have it.
pub(crate) struct Reason<'a> {
    pub(crate) text: String,
    pub(crate) place: Option<&'a SettingOrigin>,
}

impl Reasons {
    pub(crate) fn of(config: &Config) -> Self {
        let pending = config.pending_settings.iter();
        Self {
            broken: config.settings.permissions.broken().to_vec(),
            policy_is_broken: config.policy.is_broken(),
            pending: pending.map(|file| file.path.clone()).collect(),
        }
    }

    pub(super) fn owner_of(&self, entry: &RuleEntry<SettingOrigin>) -> Owner {
        self.owner(entry.authority, Some(&entry.rule), &entry.origin)
    }

    /// Whose a rule is, or a default if there is no rule.
    pub(super) fn owner(
        &self,
        authority: Authority,
        rule: Option<&Rule>,
        origin: &SettingOrigin,
    ) -> Owner {
        if rule.is_some_and(|rule| self.is_stand_in(rule, origin)) {
            return Owner::Broken;
        }
        let mut pending = self.pending.iter();
        match authority {
            Authority::Organization => Owner::Organization,
            Authority::User if pending.any(|file| **file == *origin.origin.file) => Owner::Project,
            Authority::User => Owner::User,
        }
    }

    /// Whose the rule or the default is that decided.
    pub(crate) fn decider(&self, decision: &Decision<'_, SettingOrigin>) -> Owner {
        match decision.by {
            DecidedBy::Rule {
                rule,
                origin,
                authority,
            } => self.owner(authority, Some(rule), origin),
            DecidedBy::Default {
                set: Some((authority, origin)),
            } => self.owner(authority, None, origin),
            DecidedBy::Default { set: None } | DecidedBy::Answer { .. } => Owner::User,
        }
    }

    pub(crate) fn why<'a>(&self, decision: &Decision<'a, SettingOrigin>) -> Reason<'a> {
        let place = decision.origin();
        let verdict = decision.verdict;
        let (happened, consequence) = match verdict {
            Verdict::Allow => ("allowed", "is allowed"),
            Verdict::Ask => ("asked", "asks"),
            Verdict::Deny => ("denied", "is denied"),
        };
        if let DecidedBy::Answer {
            asking: Some((rule, asks)),
            ..
        } = decision.by
            && self.owner(Authority::User, Some(rule), asks) == Owner::Project
        {
            let text = format!(
                "{happened} because of your remembered answer (the project's rule `{rule}` asks)"
            );
            return Reason { text, place };
        }
        match (self.decider(decision), decision.rule(), place) {
            (Owner::Broken, _, Some(broken)) => Reason {
                text: format!(
                    "{happened} because something is broken in {broken} that may have been a rule, \
                     and so every tool {consequence}: `cocode config check` says what to mend"
                ),
                place: None,
            },
            (Owner::Project, Some((rule, _)), _) => Reason {
                text: format!("{happened} because of the project's rule `{rule}`"),
                place,
            },
            (Owner::Project, None, _) => Reason {
                text: format!(
                    "{happened} because no rule matches and the project's default is to {verdict}"
                ),
                place,
            },
            _ => Reason {
                text: decision.reason(),
                place,
            },
        }
    }

    fn is_stand_in(&self, rule: &Rule, origin: &SettingOrigin) -> bool {
        let of_policy = self.policy_is_broken && origin.scope == POLICY_SCOPE;
        of_policy || self.broken.contains(origin) && rule.to_string() == "*"
    }
}
