//! What searching is measured with: many tools, and the plainest ranking that anybody would use.

pub(crate) mod bm25;
pub(crate) mod judged;
pub(crate) mod made_up;

use std::collections::BTreeMap;

use cocode_core::{ToolIndex, ToolText};
use serde::Deserialize;
use serde_json::value::RawValue;

/// A tool as catalogs have it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Tool {
    pub(crate) server: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) input_schema: Option<Box<RawValue>>,
}

/// The tools of each server.
pub(crate) type Servers<'a> = BTreeMap<&'a str, Vec<ToolText<'a>>>;

/// The same by server, as an index wants them.
pub(crate) fn by_server(tools: &[Tool]) -> Servers<'_> {
    let mut servers: Servers<'_> = BTreeMap::new();
    for tool in tools {
        let all = servers.entry(tool.server.as_str()).or_default();
        all.push(ToolText {
            name: &tool.name,
            title: None,
            description: tool.description.as_deref(),
            input_schema: tool.input_schema.as_deref().map(RawValue::get),
        });
    }
    servers
}

/// An index of all of them.
pub(crate) fn indexed(servers: &Servers<'_>) -> ToolIndex {
    let mut index = ToolIndex::new();
    for (server, tools) in servers {
        index.set_server(server, None, tools.iter().copied());
    }
    index
}
