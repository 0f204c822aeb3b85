//! The index of all tools: begun when somebody searches for the first time, and brought up to date
//! server by server when somebody searches again.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use cocode_client::Catalog;
use cocode_core::{Hit, ServerName, ServerSpec, ToolIndex, ToolText};

use super::snapshot::Snapshot;

/// Tools, ready to be searched, and of when they are.
#[derive(Default)]
pub(super) struct Index {
    tools: ToolIndex,
    /// What each server was known by.
    known: BTreeMap<ServerName, (Weak<Catalog>, Weak<ServerSpec>)>,
}

impl Index {
    /// The tools of a snapshot that fit a query best, of one server or of all. Only what is shown is
    /// found.
    pub(super) fn search(
        &mut self,
        snapshot: &Snapshot,
        query: &str,
        server: Option<&str>,
        limit: usize,
    ) -> Vec<Hit> {
        self.catch_up(snapshot);
        self.tools.search_among(query, limit, |of, tool| {
            server.is_none_or(|server| server == of) && snapshot.shown_name(of, tool).is_some()
        })
    }

    /// Reads what is other than it was.
    fn catch_up(&mut self, snapshot: &Snapshot) {
        let tools = &mut self.tools;
        self.known.retain(|name, _| {
            let is_there = snapshot.servers().any(|(spec, _)| spec.name == *name);
            if !is_there {
                tools.remove_server(name.as_str());
            }
            is_there
        });
        for (spec, catalog) in snapshot.servers() {
            let name = &spec.name;
            let is_known = self.known.get(name).is_some_and(|(known, by)| {
                known.as_ptr() == Arc::as_ptr(catalog) && by.as_ptr() == Arc::as_ptr(spec)
            });
            if is_known {
                continue;
            }
            let known = (Arc::downgrade(catalog), Arc::downgrade(spec));
            self.known.insert(name.clone(), known);
            let listed = catalog.server(name);
            let texts = listed.into_iter().flat_map(|listed| &listed.tools);
            let texts = texts.map(|tool| ToolText {
                name: tool.name.as_str(),
                title: tool.tool.title.as_deref(),
                description: tool.tool.description.as_deref(),
                input_schema: Some(tool.tool.input_schema.as_str()),
            });
            let about = snapshot.about(name.as_str());
            self.tools.set_server(name.as_str(), about, texts);
        }
    }
}
