//! What principals may do, as data. Rules for tools are not among it: whoever knows tools has them.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use cocode_core::Wildcard;

use crate::principal::{Principal, PrincipalId};

/// What a principal may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrincipalPolicy {
    /// The servers that are there for them, by name, where `*` stands for anything; all, if not given.
    pub servers: Option<Vec<Wildcard>>,
    /// How many calls they may make in a minute; any number, if not given.
    pub calls_per_minute: Option<NonZeroU32>,
    /// How many of their calls may be going on at once; any number, if not given.
    pub max_concurrent: Option<NonZeroU32>,
    /// Whether they may manage the gateway, whatever their token says.
    pub is_admin: bool,
}

/// What each principal may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policies {
    /// Of those who have none of their own: the table `*`.
    pub default: PrincipalPolicy,
    /// Of single principals.
    pub named: BTreeMap<PrincipalId, PrincipalPolicy>,
}

impl PrincipalPolicy {
    /// Whether a server is there for them.
    pub fn allows_server(&self, server: &str) -> bool {
        let fits = |allowed: &Vec<Wildcard>| allowed.iter().any(|one| one.matches(server));
        self.servers.as_ref().is_none_or(fits)
    }
}

impl Policies {
    /// What this principal may do. What is said of everybody counts for those of whom nothing
    /// else is said, and is not mixed with what is.
    pub fn of(&self, principal: &PrincipalId) -> &PrincipalPolicy {
        self.named.get(principal).unwrap_or(&self.default)
    }

    /// Whether a principal may manage the gateway: their token lets them, or their policy.
    pub fn is_admin(&self, principal: &Principal) -> bool {
        principal.is_admin || self.of(&principal.id).is_admin
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cocode_core::Wildcard;

    use super::{Policies, PrincipalPolicy};
    use crate::principal::{Principal, PrincipalKind};

    fn servers(names: &[&str]) -> Vec<Wildcard> {
        names.iter().map(|name| Wildcard::new(*name)).collect()
    }

    #[test]
    fn servers_are_allowed_by_name_and_all_if_none_is_named() {
        let policy = PrincipalPolicy {
            servers: Some(servers(&["files", "team-*"])),
            ..PrincipalPolicy::default()
        };
        for (server, allowed) in [
            ("files", true),
            ("team-a", true),
            ("files2", false),
            ("", false),
        ] {
            assert_eq!(policy.allows_server(server), allowed, "{server}");
        }
        let nothing = PrincipalPolicy {
            servers: Some(servers(&[])),
            ..PrincipalPolicy::default()
        };
        assert!(!nothing.allows_server("files"));
        assert!(PrincipalPolicy::default().allows_server("files"));
    }

    #[test]
    fn what_is_said_of_everybody_counts_for_those_of_whom_nothing_else_is_said() {
        let policies = Policies {
            default: PrincipalPolicy {
                servers: Some(servers(&["public"])),
                is_admin: false,
                ..PrincipalPolicy::default()
            },
            named: [(
                "root".parse().unwrap(),
                PrincipalPolicy {
                    is_admin: true,
                    ..PrincipalPolicy::default()
                },
            )]
            .into(),
        };
        let principal = |name: &str, is_admin| Principal {
            id: name.parse().unwrap(),
            name: name.parse().unwrap(),
            kind: PrincipalKind::Token,
            scopes: Arc::default(),
            is_admin,
            until: None,
            credential: None,
        };
        let (root, alice) = (principal("root", false), principal("alice", false));
        assert!(policies.of(&root.id).allows_server("secret"));
        assert!(!policies.of(&alice.id).allows_server("secret"));
        assert!(policies.is_admin(&root));
        assert!(!policies.is_admin(&alice));
        assert!(policies.is_admin(&principal("alice", true)));
    }
}
