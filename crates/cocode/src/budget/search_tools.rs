//! The tools that models which search are shown in place of all others, as far as their size matters.

use cocode_core::{SearchedServer, tool_call_definition, tool_search_definition};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::toolbox::{ServerTools, ToolEntry};

/// What models are told of a tool.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'a> {
    name: String,
    description: String,
    #[serde(borrow)]
    input_schema: &'a RawValue,
}

/// The definitions of `tool_search` and `tool_call`, for a model that searches these servers.
pub(super) fn definitions(servers: &[ServerTools]) -> Vec<ToolEntry> {
    let servers = servers.iter().map(|server| SearchedServer {
        name: &server.name,
        about: server.about.as_deref(),
    });
    let search = tool_search_definition(servers);
    let definitions = [search.as_str(), tool_call_definition()];
    definitions.into_iter().filter_map(entry).collect()
}

fn entry(definition: &str) -> Option<ToolEntry> {
    let definition: Definition<'_> = serde_json::from_str(definition).ok()?;
    Some(ToolEntry {
        name: definition.name,
        title: None,
        description: Some(definition.description),
        input_schema: Some(definition.input_schema.get().to_owned()),
    })
}
