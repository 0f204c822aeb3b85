//! What tools cost a model, by the estimate of `mcp budget`: counted once for every list that a server
//! gives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cocode_client::{Catalog, CatalogTool};
use cocode_core::{ServerName, ServerSpec, ToolName};

use super::interior::Interior;
use crate::budget::cost::Cost;
use crate::toolbox::ToolEntry;

/// The costs of the tools of all servers, as long as their lists are the same.
#[derive(Debug, Default)]
pub(super) struct Costs(Mutex<BTreeMap<ServerName, Known>>);

#[derive(Clone, Debug)]
struct Known {
    /// Whose costs they are. Held, so that no other is taken for it.
    catalog: Arc<Catalog>,
    costs: ServerCosts,
}

/// The costs of the tools of one server.
#[derive(Clone, Debug)]
pub(super) struct ServerCosts(Arc<BTreeMap<ToolName, u64>>);

impl ServerCosts {
    pub(super) fn tokens(&self, tool: &ToolName) -> u64 {
        self.0.get(tool).copied().unwrap_or_default()
    }
}

impl Costs {
    pub(super) fn of(&self, server: &ServerName, catalog: &Arc<Catalog>) -> ServerCosts {
        let known = self.lock().get(server).cloned();
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.catalog, catalog)) {
            return known.costs;
        }
        let tools = catalog.server(server).map(|listed| &listed.tools);
        let costs = tools.into_iter().flatten().map(|tool| {
            let cost = Cost::of_tool(server.as_str(), &ToolEntry::of(&tool.tool));
            (tool.name.clone(), cost.tokens)
        });
        let costs = ServerCosts(Arc::new(costs.collect()));
        let known = Known {
            catalog: Arc::clone(catalog),
            costs: costs.clone(),
        };
        self.lock().insert(server.clone(), known);
        costs
    }

    /// Forgets servers that are gone.
    pub(super) fn keep(&self, is_there: impl Fn(&str) -> bool) {
        self.lock().retain(|server, _| is_there(server.as_str()));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServerName, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Interior {
    /// Whether clients see a tool.
    pub(super) fn is_seen(&self, spec: &ServerSpec, tool: &CatalogTool) -> bool {
        let name = tool.name.as_str();
        let annotations = tool.tool.annotations;
        let verdict = || self.rules.decide(&spec.name, name, annotations);
        spec.tools.admits(name) && verdict().allows_listing()
    }
}
