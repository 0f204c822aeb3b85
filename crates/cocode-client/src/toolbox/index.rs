//! The index of all tools that can be shown: begun with the first search, and brought up to date
//! server by server with later ones.

use std::sync::Arc;

use cocode_core::{Hit, ToolIndex, ToolText};

use super::options::ToolboxOptions;
use super::shelf::Shelf;
use crate::manager::{Catalog, ServerCatalog};

/// Tools, ready to be searched.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    tools: ToolIndex,
    /// What it was made from.
    of: Arc<Catalog>,
}

impl Index {
    /// Reads the servers that are other than they were.
    pub(super) fn catch_up(
        &mut self,
        catalog: &Arc<Catalog>,
        shelf: &Shelf,
        options: &ToolboxOptions,
    ) {
        if Arc::ptr_eq(&self.of, catalog) {
            return;
        }
        for before in self.of.servers() {
            if catalog.server(&before.name).is_none() {
                self.tools.remove_server(before.name.as_str());
            }
        }
        for server in catalog.servers() {
            let before = self.of.server(&server.name);
            if before.is_some_and(|before| before.has_tools_like(server)) {
                continue;
            }
            if !server.is_offered {
                self.tools.remove_server(server.name.as_str());
                continue;
            }
            let tools = server.tools.iter().filter(|tool| {
                let name = catalog.name_of(&server.name, tool.name.as_str());
                name.is_some_and(|name| shelf.get(name.as_str()).is_some())
            });
            let texts = tools.map(|tool| ToolText {
                name: tool.name.as_str(),
                title: tool.tool.title.as_deref(),
                description: tool.tool.description.as_deref(),
                input_schema: Some(tool.tool.input_schema.as_str()),
            });
            let about = about(server, options);
            self.tools.set_server(server.name.as_str(), about, texts);
        }
        self.of = Arc::clone(catalog);
    }

    /// The tools that fit a query best, of one server or of all.
    pub(super) fn search(&self, query: &str, server: Option<&str>, limit: usize) -> Vec<Hit> {
        self.tools.search_among(query, limit, |of, _| {
            server.is_none_or(|server| server == of)
        })
    }
}

/// What a server is for: in the words of whoever configured it, or else its own.
pub(super) fn about<'a>(server: &'a ServerCatalog, options: &'a ToolboxOptions) -> Option<&'a str> {
    let told = options.about.get(&server.name).map(String::as_str);
    let said = [told, server.instructions.as_deref()];
    let mut said = said.into_iter().flatten().map(str::trim);
    said.find(|said| !said.is_empty())
}
