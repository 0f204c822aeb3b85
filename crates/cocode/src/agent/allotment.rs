//! Which of the configured servers an agent has.

use std::sync::Arc;

use cocode_config::{Config, State};
use cocode_core::ServerSpec;

use crate::itself::{VARIABLE, is_cocode};
use crate::serving::Selection;
use crate::workspace::Workspace;

/// Which servers are an agent's. Of others it does not even know the names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allotment {
    /// Those that a gateway serves, where the agent is part of one.
    selection: Selection,
    /// Of these, what this principal may use.
    principal: Option<Arc<str>>,
    /// Not those that are cocode, or agents would begin agents without end.
    without_cocode: bool,
}

impl Allotment {
    /// All of them. An agent that is itself a server of cocode does without those that are cocode.
    pub(crate) fn of(workspace: &Workspace) -> Self {
        let variables = &workspace.environment.variables;
        Self {
            without_cocode: variables.text(VARIABLE).is_some(),
            ..Self::default()
        }
    }

    /// Those that a gateway serves this principal.
    #[must_use]
    pub(crate) fn at_gateway(self, selection: Selection, principal: Option<Arc<str>>) -> Self {
        Self {
            selection,
            principal,
            ..self
        }
    }

    /// The specifications of those that are ready.
    pub(super) fn specs(&self, config: &Config) -> Vec<ServerSpec> {
        let ready = config.servers.values().filter_map(|server| {
            let State::Ready(spec) = &server.state else {
                return None;
            };
            self.has(config, spec).then(|| (**spec).clone())
        });
        ready.collect()
    }

    /// Whether a server is among them.
    pub(super) fn has(&self, config: &Config, spec: &ServerSpec) -> bool {
        let name = spec.name.as_str();
        let principal = self.principal.as_deref();
        let theirs = principal.and_then(|principal| config.settings.gateway.principal(principal));
        if !self.selection.has(name) || theirs.is_some_and(|theirs| !theirs.may_use(name)) {
            return false;
        }
        let configured = config.servers.get(name);
        let is_ours = |server: &cocode_config::Server| is_cocode(&server.winner.found.entry, &[]);
        !(self.without_cocode && configured.is_none_or(is_ours))
    }
}
