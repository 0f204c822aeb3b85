//! Reaches everything that a gateway serves: servers that stand in files, the built-in tools, the agent.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use cocode_client::{Answer, Connector, ReachError, Reached};
use cocode_core::{Reach, ServerSpec};

use super::agent::AgentPlace;
use super::builtin::BuiltIn;
use crate::error::{CliError, Code};
use crate::itself::is_own_address;
use crate::reach::{Configured, for_manager};

#[derive(Debug)]
pub(crate) struct Ways {
    pub(crate) configured: Arc<Configured>,
    pub(crate) built_in: Option<Arc<BuiltIn>>,
    /// The agent of whoever these are the ways of.
    pub(crate) agent: Option<AgentPlace>,
    /// Where the gateway itself listens, once it does.
    pub(crate) own: Arc<OnceLock<SocketAddr>>,
    /// Whose they are, if not the owner's.
    pub(crate) principal: Option<Arc<str>>,
}

impl Ways {
    /// Those of clients that are served without a gateway.
    pub(crate) fn new(configured: Configured, built_in: Option<BuiltIn>) -> Self {
        Self {
            configured: Arc::new(configured),
            built_in: built_in.map(Arc::new),
            agent: None,
            own: Arc::default(),
            principal: None,
        }
    }

    /// The ways of a principal. All servers are the same but for the agent, which is their own.
    pub(crate) fn of_principal(&self, principal: &Arc<str>) -> Self {
        let agent = self.agent.as_ref();
        Self {
            configured: Arc::clone(&self.configured),
            built_in: self.built_in.clone(),
            agent: agent.map(|agent| agent.of_principal(principal)),
            own: Arc::clone(&self.own),
            principal: Some(Arc::clone(principal)),
        }
    }

    fn built_in(&self, spec: &ServerSpec) -> Option<&BuiltIn> {
        self.built_in
            .as_deref()
            .filter(|built_in| built_in.is(spec))
    }

    fn agent(&self, spec: &ServerSpec) -> Option<&AgentPlace> {
        self.agent.as_ref().filter(|agent| agent.is(spec))
    }

    /// Whether it is within this process.
    fn is_here(&self, spec: &ServerSpec) -> bool {
        self.built_in(spec).is_some() || self.agent(spec).is_some()
    }

    fn is_itself(&self, spec: &ServerSpec) -> bool {
        match (&spec.reach, self.own.get()) {
            (Reach::Remote(remote), Some(own)) => is_own_address(&remote.url, *own),
            _ => false,
        }
    }
}

impl Connector for Ways {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        if let Some(agent) = self.agent(spec) {
            return Box::pin(async { agent.reach() });
        }
        match self.built_in(spec) {
            Some(built_in) => Box::pin(async { Ok(built_in.reach()) }),
            None if self.is_itself(spec) => {
                let message = format!(
                    "server `{}` is this gateway, which would serve itself without end",
                    spec.name
                );
                let error = CliError::new(Code::InvalidConfig, message)
                    .hint(format!("`cocode mcp remove {}` removes it", spec.name));
                Box::pin(async { Err(for_manager(error)) })
            }
            None => self.configured.reach(spec),
        }
    }

    fn identity(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        if self.is_here(spec) {
            return Some(Vec::new());
        }
        self.configured.identity(spec)
    }

    fn sharing(&self, spec: &ServerSpec) -> Option<Vec<String>> {
        if self.agent(spec).is_some() {
            let whose = self.principal.as_deref();
            return Some(
                whose
                    .map(|name| format!("agent of {name}"))
                    .into_iter()
                    .collect(),
            );
        }
        match self.built_in(spec) {
            Some(built_in) => Some(built_in.sharing()),
            None => self.configured.sharing(spec),
        }
    }

    fn admitted<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, ()> {
        if self.is_here(spec) {
            return Box::pin(std::future::pending());
        }
        self.configured.admitted(spec)
    }
}
