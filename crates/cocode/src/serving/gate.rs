//! The rules for tools as the gateway asks them, for everybody or for one who may do less, replaced when
//! the files change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use cocode_client::Annotations;
use cocode_config::{Config, PrincipalSettings, SettingOrigin};
use cocode_core::{Decision, Narrowed, RuleSet, ServerName, ToolName, ToolUse, Verdict};
use cocode_gateway::Gate;
use tokio::sync::watch;

use crate::gate::hints;
use crate::govern::permissions::reason::Reasons;

/// The rules that hold now.
#[derive(Debug)]
pub(crate) struct Rules {
    /// For whom; the rules for everybody, if for nobody in particular.
    principal: Option<Arc<str>>,
    current: RwLock<Arc<Current>>,
    /// How often they have changed.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Current {
    /// The rules for every server that a file names.
    of: BTreeMap<String, Narrowed<SettingOrigin>>,
    /// The rules for a server that no file names: one within this process, or one that is about to go.
    otherwise: RuleSet<SettingOrigin>,
    /// What whoever they are for may do of that.
    principal: Option<PrincipalSettings>,
    is_open: bool,
    /// What is known of the places where rules are written.
    reasons: Reasons,
}

impl Rules {
    pub(crate) fn of(config: &Config, principal: Option<Arc<str>>) -> Self {
        let current = Current::of(config, principal.as_deref());
        Self {
            principal,
            current: RwLock::new(Arc::new(current)),
            changes: watch::Sender::default(),
        }
    }

    /// From now on the rules of this configuration hold.
    pub(crate) fn replace(&self, config: &Config) {
        let current = Arc::new(Current::of(config, self.principal.as_deref()));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        self.changes.send_modify(|count| *count += 1);
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Current {
    fn of(config: &Config, principal: Option<&str>) -> Self {
        let rules = |server: &String| match principal {
            Some(principal) => config.rules_of(principal, server),
            None => Narrowed::new(config.rules_for(server), RuleSet::new()),
        };
        let names = config.servers.keys();
        let of: BTreeMap<_, _> = names.map(|name| (name.clone(), rules(name))).collect();
        let otherwise = config.rules();
        let principal = principal.and_then(|name| config.settings.gateway.principal(name));
        let is_open =
            principal.is_none() && otherwise.is_open() && of.values().all(Narrowed::is_open);
        Self {
            of,
            otherwise,
            principal: principal.map(Cow::into_owned),
            is_open,
            reasons: Reasons::of(config),
        }
    }

    fn decide(&self, server: &ServerName, wanted: &ToolUse<'_>) -> Verdict {
        if let Some(rules) = self.of.get(server.as_str()) {
            return rules.decide(wanted).verdict;
        }
        let general = self.otherwise.decide(wanted).verdict;
        let own = self.principal.as_ref().map(|principal| {
            let rules = principal.rules_for(server.as_str());
            rules.decide(wanted).verdict
        });
        own.map_or(general, |own| general.max(own))
    }

    /// Why that is decided, with the place of the rule.
    fn reason(&self, server: &ServerName, wanted: &ToolUse<'_>) -> String {
        let told = |decision: &Decision<'_, SettingOrigin>| {
            let why = self.reasons.why(decision);
            match why.place {
                Some(place) => format!("{} ({place})", why.text),
                None => why.text,
            }
        };
        if let Some(rules) = self.of.get(server.as_str()) {
            return told(&rules.decide(wanted));
        }
        let general = self.otherwise.decide(wanted);
        let own = self.principal.as_ref();
        let own = own.map(|principal| principal.rules_for(server.as_str()));
        let own = own.as_ref().map(|rules| rules.decide(wanted));
        match own {
            Some(own) if own.verdict > general.verdict => told(&own),
            _ => told(&general),
        }
    }
}

impl Gate for Rules {
    fn is_open(&self) -> bool {
        self.current().is_open
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn decide(&self, server: &ServerName, tool: &str, annotations: Annotations) -> Verdict {
        let name = ToolName::new(tool);
        let wanted = ToolUse::mcp(server, &name).with_hints(hints(annotations));
        self.current().decide(server, &wanted)
    }

    fn reason(&self, server: &ServerName, tool: &str, annotations: Annotations) -> Option<String> {
        let name = ToolName::new(tool);
        let wanted = ToolUse::mcp(server, &name).with_hints(hints(annotations));
        Some(self.current().reason(server, &wanted))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cocode_client::Annotations;
    use cocode_config::{Config, Places};
    use cocode_core::Verdict;
    use cocode_gateway::Gate as _;

    use super::Rules;

    /// The configuration of a user who has one server, and these settings.
    fn config(directory: &Path, settings: &str) -> Config {
        let user = directory.join("user");
        std::fs::create_dir_all(&user).unwrap();
        let servers = "[mcp_servers.git]\ncommand = 'git'\n";
        std::fs::write(user.join("mcp.toml"), servers).unwrap();
        std::fs::write(user.join("config.toml"), settings).unwrap();
        let places = Places {
            system: directory.join("system"),
            user,
            state: directory.join("state"),
            directory: None,
            explicit: Vec::new(),
        };
        Config::load(&places, &|_| None)
    }

    fn verdict(rules: &Rules, server: &str, tool: &str) -> Verdict {
        let server = server.parse().unwrap();
        rules.decide(&server, tool, Annotations::default())
    }

    #[test]
    fn one_may_do_less_than_everybody_also_with_servers_that_no_file_names() {
        let directory = tempfile::tempdir().unwrap();
        let settings = "[permissions]\ndeny = ['mcp__git__reset']\n\
                        [gateway.principals.ci]\nservers = ['git']\nask = ['mcp__git__push']\n";
        let config = config(directory.path(), settings);
        let (everybody, ci) = (
            Rules::of(&config, None),
            Rules::of(&config, Some("ci".into())),
        );
        let ana = Rules::of(&config, Some("ana".into()));
        for (server, tool, of_all, of_ci) in [
            ("git", "log", Verdict::Allow, Verdict::Allow),
            ("git", "push", Verdict::Allow, Verdict::Ask),
            ("git", "reset", Verdict::Deny, Verdict::Deny),
            ("workspace", "read", Verdict::Allow, Verdict::Deny),
        ] {
            assert_eq!(verdict(&everybody, server, tool), of_all, "{server} {tool}");
            assert_eq!(verdict(&ana, server, tool), of_all, "{server} {tool}");
            assert_eq!(verdict(&ci, server, tool), of_ci, "{server} {tool}");
        }
    }

    #[test]
    fn rules_are_open_for_those_whom_nothing_is_kept_from() {
        let directory = tempfile::tempdir().unwrap();
        let narrow = config(directory.path(), "[gateway.principals.ci]\nservers = []\n");
        assert!(Rules::of(&narrow, None).is_open());
        assert!(Rules::of(&narrow, Some("ana".into())).is_open());
        let ci = Rules::of(&narrow, Some("ci".into()));
        assert!(!ci.is_open());
        // What changes in the files counts for the same one.
        ci.replace(&config(directory.path(), ""));
        assert!(ci.is_open());
    }
}
