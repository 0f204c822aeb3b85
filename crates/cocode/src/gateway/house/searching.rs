//! Finds tools of all servers by what they are for, as `mcp search` does.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use cocode_admin::model::FoundTool;
use cocode_client::Catalog;
use cocode_core::{ServerName, ToolIndex, ToolName};

use super::interior::Interior;
use crate::gateway::servers::Present;
use crate::toolbox::{ServerTools, ToolEntry, Toolbox};

/// All tools that clients see, ready to be searched, as long as nothing changes.
#[derive(Debug)]
pub(super) struct Searched {
    generation: u64,
    gate_changes: u64,
    catalogs: Vec<Arc<Catalog>>,
    toolbox: Toolbox,
    index: ToolIndex,
}

impl Interior {
    pub(super) fn search(&self, query: &str, limit: usize) -> Vec<FoundTool> {
        let searched = self.searched();
        let hits = searched.index.search(query, limit);
        let found: Vec<(&str, &ToolEntry, f64)> = if query.trim().is_empty() {
            searched.first(limit)
        } else {
            let found = hits.iter().filter_map(|hit| {
                let tool = searched.toolbox.tool(&hit.server, &hit.tool)?;
                Some((&*hit.server, tool, hit.score))
            });
            found.collect()
        };
        let names = self.view.tool_names();
        let names: BTreeMap<(&str, &str), &Arc<str>> = names
            .iter()
            .map(|(shown, server, tool)| ((server.as_str(), tool.as_str()), shown))
            .collect();
        let described = found.into_iter().filter_map(|(server, tool, score)| {
            let shown = names.get(&(server, tool.name.as_str()));
            let (server, name): (ServerName, _) =
                (server.parse().ok()?, ToolName::new(tool.name.as_str()));
            let catalog = self.view.manager(&server)?.catalog();
            Some(FoundTool {
                qualified_name: match shown {
                    Some(shown) => shown.to_string(),
                    None => catalog.name_of(&server, name.as_str())?.to_string(),
                },
                tokens: self.costs.of(&server, &catalog).tokens(&name),
                server: server.to_string(),
                name: tool.name.clone(),
                description: tool.description.clone(),
                score,
            })
        });
        described.collect()
    }

    /// The index of what there is now.
    fn searched(&self) -> Arc<Searched> {
        let present = self.present();
        // First what may change meanwhile: then the next look sees that it has.
        let changes = self.rules.changes();
        let gate_changes = changes.map_or(0, |changes| *changes.borrow());
        let catalogs: Vec<_> = present
            .specs
            .iter()
            .filter_map(|spec| Some(self.view.manager(&spec.name)?.catalog()))
            .collect();
        let mut known = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |known: &&Arc<Searched>| {
            let same = |(one, other): (&Arc<Catalog>, &Arc<Catalog>)| Arc::ptr_eq(one, other);
            known.generation == present.generation
                && known.gate_changes == gate_changes
                && known.catalogs.len() == catalogs.len()
                && known.catalogs.iter().zip(&catalogs).all(same)
        };
        if let Some(known) = known.as_ref().filter(is_current) {
            return Arc::clone(known);
        }
        let toolbox = self.toolbox(&present, &catalogs);
        let searched = Arc::new(Searched {
            generation: present.generation,
            gate_changes,
            catalogs,
            index: toolbox.index(),
            toolbox,
        });
        *known = Some(Arc::clone(&searched));
        searched
    }

    fn toolbox(&self, present: &Present, catalogs: &[Arc<Catalog>]) -> Toolbox {
        let servers = present.specs.iter().filter_map(|spec| {
            let listed = catalogs
                .iter()
                .find_map(|catalog| catalog.server(&spec.name))?;
            let seen = listed.tools.iter().filter(|tool| self.is_seen(spec, tool));
            Some(ServerTools {
                name: spec.name.to_string(),
                about: spec
                    .description
                    .clone()
                    .or_else(|| listed.instructions.clone()),
                always_load: spec.always_load,
                tools: seen.map(|tool| ToolEntry::of(&tool.tool)).collect(),
            })
        });
        Toolbox {
            servers: servers.collect(),
            unknown: Vec::new(),
        }
    }
}

impl Searched {
    /// The first tools, by server and name.
    fn first(&self, limit: usize) -> Vec<(&str, &ToolEntry, f64)> {
        let all = self.toolbox.servers.iter().flat_map(|server| {
            let tools = server.tools.iter();
            tools.map(|tool| (server.name.as_str(), tool, 0.0))
        });
        all.take(limit).collect()
    }
}
