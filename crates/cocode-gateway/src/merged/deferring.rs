//! What is shown of the tools to those who search: the two tools that searching takes, and the tools
//! of servers that are always shown. Made when somebody needs it, once for each snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use cocode_client::ListKind;
use cocode_core::{
    SearchedServer, ServerName, TOOL_CALL, TOOL_SEARCH, ToolLoad, ToolName, definition_characters,
    tool_call_definition, tool_search_definition,
};
use cocode_wire::RawJson;

use super::pages::Pages;
use super::snapshot::{Snapshot, shown_as};

/// What a snapshot says to those who search.
#[derive(Debug, Default)]
pub(crate) struct Deferring {
    load: OnceLock<ToolLoad>,
    pages: OnceLock<Arc<Pages>>,
    shown: OnceLock<Shown>,
}

/// The names that tools are shown by: by server, and by the server's name for the tool.
type Shown = BTreeMap<ServerName, HashMap<ToolName, Arc<str>>>;

impl Snapshot {
    /// What all tools would take of the context window of a model.
    pub(super) fn load(&self) -> ToolLoad {
        *self.deferring.load.get_or_init(|| {
            let mut load = ToolLoad::default();
            for (shown, server, tool) in self.tools.iter() {
                let Some((spec, listed)) = self.offered(server.as_str()) else {
                    continue;
                };
                let Some(tool) = listed.tool(tool) else {
                    continue;
                };
                let description = tool.tool.description.as_deref();
                let schema = Some(tool.tool.input_schema.as_str());
                load.characters += definition_characters(shown, description, schema);
                load.deferrable += usize::from(!spec.always_load);
            }
            load
        })
    }

    /// The tools that are listed for those who search.
    pub(super) fn searched_tools(&self) -> &Arc<Pages> {
        let written = || {
            Arc::new(Pages::of(
                ListKind::Tools.member(),
                self.written_for_search(),
            ))
        };
        self.deferring.pages.get_or_init(written)
    }

    fn written_for_search(&self) -> Vec<RawJson> {
        let servers = self.deferred().map(|name| SearchedServer {
            name: name.as_str(),
            about: self.about(name.as_str()),
        });
        let own = [
            tool_search_definition(servers),
            tool_call_definition().to_owned(),
        ];
        let own = own
            .into_iter()
            .filter_map(|text| match RawJson::parse(text) {
                Ok(definition) => Some(definition),
                Err(error) => {
                    tracing::error!(%error, "a tool of our own is not described in JSON");
                    None
                }
            });
        let mut written: Vec<_> = own.collect();
        for (shown, server, tool) in self.tools.iter() {
            let Some((spec, listed)) = self.offered(server.as_str()) else {
                continue;
            };
            if !spec.always_load {
                continue;
            }
            if is_own(shown) {
                tracing::warn!(
                    %server, tool = %shown,
                    "a tool is not listed for clients that search, because its name is taken; they \
                     call it by `{TOOL_CALL}`"
                );
                continue;
            }
            let tool = listed.tool(tool);
            written.extend(tool.and_then(|tool| shown_as(&tool.tool.raw, &tool.tool.name, shown)));
        }
        written
    }

    /// The servers that have tools which are not listed for those who search.
    pub(super) fn deferred(&self) -> impl Iterator<Item = &ServerName> {
        let with_tools = self.shown().keys();
        with_tools.filter(|name| {
            let offered = self.offered(name.as_str());
            offered.is_some_and(|(spec, _)| !spec.always_load)
        })
    }

    /// What a server is for: in the words of whoever configured it, or else its own.
    pub(super) fn about(&self, server: &str) -> Option<&str> {
        let (spec, listed) = self.offered(server)?;
        let said = [spec.description.as_deref(), listed.instructions.as_deref()];
        let mut said = said.into_iter().flatten().map(str::trim);
        said.find(|said| !said.is_empty())
    }

    /// The name that a tool is shown by, if it is shown.
    pub(super) fn shown_name(&self, server: &str, tool: &str) -> Option<&Arc<str>> {
        self.offered(server)?;
        self.shown().get(server)?.get(tool)
    }

    /// Whether a server has tools that are shown.
    pub(super) fn has_shown(&self, server: &str) -> bool {
        self.offered(server).is_some() && self.shown().contains_key(server)
    }

    fn shown(&self) -> &Shown {
        self.deferring.shown.get_or_init(|| {
            let mut all = Shown::new();
            for (shown, server, tool) in self.tools.iter() {
                let of_server = all.entry(server.clone()).or_default();
                of_server.insert(tool.clone(), Arc::clone(shown));
            }
            all
        })
    }
}

/// Whether a name is that of one of the tools that searching takes.
pub(super) fn is_own(name: &str) -> bool {
    name == TOOL_SEARCH || name == TOOL_CALL
}
