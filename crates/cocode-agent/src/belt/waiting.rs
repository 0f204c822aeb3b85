//! Servers that are still being started: the first request to a model does not wait for them, and
//! the model can.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::{Manager, ServerName, StateKind};
use cocode_core::{Dialect, ProviderTool};
use serde_json::json;
use tokio::time::timeout;

use super::Outcome;

/// The tool by which a model waits.
pub(super) const NAME: &str = "wait_for_servers";

/// How long a model may wait at once.
const LONGEST: Duration = Duration::from_secs(30);

pub(super) fn definition(dialect: Dialect) -> Option<Arc<ProviderTool>> {
    let about = "Waits until the MCP servers that are still being started are there, at most half a \
        minute, and says which tools they have. Use it if you need a tool that is not there yet.";
    let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    super::own_tool(dialect, NAME, about, &schema)
}

/// Servers that may be there in a moment, and of which no tools are known.
pub(super) fn on_their_way(manager: &Manager) -> Vec<ServerName> {
    let catalog = manager.catalog();
    let is_unknown = |name: &ServerName| {
        let server = catalog.server(name);
        server.is_none_or(|server| server.tools.is_empty())
    };
    let coming = manager.status().into_iter().filter(|server| {
        let kind = server.state.kind();
        matches!(kind, StateKind::Starting | StateKind::Reconnecting) && is_unknown(&server.name)
    });
    coming.map(|server| server.name).collect()
}

pub(super) async fn wait(manager: &Manager) -> Outcome {
    // What has come up until then is told, whether all have or not.
    let _in_time = timeout(LONGEST, manager.wait_for_startup()).await;
    let catalog = manager.catalog();
    let told = manager.status().into_iter().map(|server| {
        let name = &server.name;
        let known = catalog.server(name).filter(|known| known.is_offered);
        match known.map(|known| known.tools.len()) {
            Some(tools) if tools > 0 => format!("`{name}` is there: {tools} tools."),
            _ => format!("`{name}` has no tools: it is {}.", server.state.kind()),
        }
    });
    Outcome::text(told.collect::<Vec<_>>().join("\n"))
}
