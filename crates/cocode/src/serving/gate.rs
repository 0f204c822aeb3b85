//! The rules for tools as the gateway asks them, replaced when the files change.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use cocode_client::Annotations;
use cocode_config::{Config, SettingOrigin};
use cocode_core::{Authority, RuleSet, ServerName, ToolName, ToolUse, Verdict};
use cocode_gateway::Gate;
use tokio::sync::watch;

use crate::gate::hints;

/// The rules that hold now.
#[derive(Debug)]
pub(crate) struct Rules {
    current: RwLock<Arc<Current>>,
    /// How often they have changed.
    changes: watch::Sender<u64>,
}

#[derive(Debug)]
struct Current {
    /// The rules for every server that a file names.
    of: BTreeMap<String, RuleSet<SettingOrigin>>,
    /// The rules for a server that no file names any more, and that is about to go.
    otherwise: RuleSet<SettingOrigin>,
    is_open: bool,
}

impl Rules {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            current: RwLock::new(Arc::new(Current::of(config))),
            changes: watch::Sender::default(),
        }
    }

    /// From now on the rules of this configuration hold.
    pub(crate) fn replace(&self, config: &Config) {
        let current = Arc::new(Current::of(config));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        self.changes.send_modify(|count| *count += 1);
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }
}

impl Current {
    fn of(config: &Config) -> Self {
        let names = config.servers.keys();
        let of: BTreeMap<_, _> = names
            .map(|name| (name.clone(), config.rules_for(name)))
            .collect();
        let otherwise = config.rules();
        let is_open = is_open(&otherwise) && of.values().all(is_open);
        Self {
            of,
            otherwise,
            is_open,
        }
    }
}

/// Whether nothing is ever denied or asked about. Answers count only where something is asked.
fn is_open(rules: &RuleSet<SettingOrigin>) -> bool {
    let allows = |verdict: Verdict| verdict == Verdict::Allow;
    let default = |authority| {
        rules
            .default_of(authority)
            .is_none_or(|(verdict, _)| allows(verdict))
    };
    rules.rules().all(|entry| allows(entry.kind))
        && default(Authority::User)
        && default(Authority::Organization)
}

impl Gate for Rules {
    fn is_open(&self) -> bool {
        self.current().is_open
    }

    fn changes(&self) -> Option<watch::Receiver<u64>> {
        Some(self.changes.subscribe())
    }

    fn decide(&self, server: &ServerName, tool: &str, annotations: Annotations) -> Verdict {
        let current = self.current();
        let rules = current.of.get(server.as_str());
        let name = ToolName::new(tool);
        let wanted = ToolUse::mcp(server, &name).with_hints(hints(annotations));
        rules.unwrap_or(&current.otherwise).decide(&wanted).verdict
    }
}
