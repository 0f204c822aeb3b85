//! The rules for tools, as the gateway asks for them: the same that stand before every call of the
//! command line, and always those of now.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use cocode_client::Annotations;
use cocode_config::{Config, SettingOrigin};
use cocode_core::{Authority, RuleSet, ServerName, ToolName, ToolUse, Verdict};

use crate::gate::hints;

type Set = RuleSet<SettingOrigin>;

/// Stands between clients and tools. Can be given other rules at any time.
pub(crate) struct Rules {
    now: RwLock<Arc<Snapshot>>,
}

struct Snapshot {
    /// Nothing is ever refused, and nobody has to ask.
    is_open: bool,
    /// What holds for servers whose remembered answers count.
    own: Set,
    /// What holds for each of the others that a file names.
    foreign: BTreeMap<ServerName, Set>,
    /// What holds for servers that no file names.
    unlisted: Set,
}

impl Rules {
    pub(crate) fn new(config: &Config) -> Self {
        let now = RwLock::new(Arc::new(Snapshot::of(config)));
        Self { now }
    }

    /// From now on the rules of this configuration hold.
    pub(crate) fn replace(&self, config: &Config) {
        let snapshot = Arc::new(Snapshot::of(config));
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn now(&self) -> Arc<Snapshot> {
        let now = self.now.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&now)
    }
}

impl Snapshot {
    fn of(config: &Config) -> Self {
        let own = config.rules();
        let names = config.servers.keys();
        let foreign = names.filter(|name| !config.remembers_answers_for(name));
        let foreign = foreign
            .filter_map(|name| Some((name.parse().ok()?, config.rules_for(name))))
            .collect();
        Self {
            is_open: is_open(&own),
            own,
            foreign,
            unlisted: config.rules_for(super::BUILT_IN),
        }
    }
}

/// Whether rules allow everything. What was answered counts only where something is to be asked.
fn is_open(rules: &Set) -> bool {
    let allows = |verdict: Verdict| verdict == Verdict::Allow;
    let defaults = [Authority::Organization, Authority::User];
    let mut defaults = defaults.into_iter().filter_map(|of| rules.default_of(of));
    rules.rules().all(|entry| allows(entry.kind)) && defaults.all(|(verdict, _)| allows(verdict))
}

impl cocode_gateway::Gate for Rules {
    fn is_open(&self) -> bool {
        self.now().is_open
    }

    fn decide(&self, server: &ServerName, tool: &str, annotations: Annotations) -> Verdict {
        let now = self.now();
        let rules = if server.as_str() == super::BUILT_IN {
            &now.unlisted
        } else {
            now.foreign.get(server).unwrap_or(&now.own)
        };
        let name = ToolName::new(tool);
        let wanted = ToolUse::mcp(server, &name).with_hints(hints(annotations));
        rules.decide(&wanted).verdict
    }
}
