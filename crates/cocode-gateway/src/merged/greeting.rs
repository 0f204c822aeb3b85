//! What all servers together say about themselves. It is said at once, whoever is there by then.

use std::sync::Arc;

use cocode_core::{Era, ServerName};
use cocode_wire::{RawJson, RpcError};

use super::Merged;
use super::snapshot::Snapshot;
use crate::audience::Hears;
use crate::caller::Caller;
use crate::downstream::Downstream;
use crate::hello::Presentation;
use crate::reply::Reply;
use crate::searching::{Announced, Choice};
use crate::view::Inner;

/// The extension whose tasks are passed on.
const TASKS: &str = "io.modelcontextprotocol/tasks";
/// Bytes of what one server says about its use.
const MAX_INSTRUCTIONS_OF_ONE: usize = 4 * 1024;
/// Bytes of what all servers say about their use.
const MAX_INSTRUCTIONS: usize = 32 * 1024;

impl Merged {
    /// Welcomes a client, who hears of changes from now on.
    pub(super) fn greet(
        &self,
        client: &Arc<Downstream>,
        caller: &Caller,
    ) -> Result<Reply, RpcError> {
        let (view, snapshot) = self.current()?;
        let capabilities = caller.behalf.capabilities.as_ref();
        let announced = Announced::in_capabilities(capabilities)?.or(client.announced());
        let hears = Hears::all(snapshot.lists.clone(), Choice::open(announced));
        self.audience.join(client, hears).attend(&view);
        Ok(of(&view, &snapshot, Era::Legacy).initialized(caller.revision))
    }
}

/// What all servers together say about themselves. Whether they can tell of changes, complete, or
/// log, nobody knows before they are there: those that cannot are treated as if they had nothing to
/// say.
pub(super) fn of(view: &Inner, snapshot: &Snapshot, era: Era) -> Presentation {
    let mut capabilities = serde_json::json!({
        "tools": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
    });
    let mut all = snapshot.all_capabilities();
    let has_tasks = all.any(|(_, can)| can.extensions.iter().any(|name| name == TASKS));
    if has_tasks && era == Era::Modern {
        capabilities["extensions"] = serde_json::json!({ TASKS: {} });
    }
    let info = serde_json::json!({
        "name": "cocode",
        "title": "cocode gateway",
        "version": env!("CARGO_PKG_VERSION"),
    });
    let empty = || RawJson::from(Box::<serde_json::value::RawValue>::default());
    Presentation {
        capabilities: RawJson::of(&capabilities).unwrap_or_else(|_| empty()),
        info: RawJson::of(&info).unwrap_or_else(|_| empty()),
        instructions: instructions(view).and_then(|text| RawJson::of(&text).ok()),
        // It depends on who is there.
        freshness: (0, "private"),
    }
}

/// What the servers that are known say about their use, each under its name.
fn instructions(view: &Inner) -> Option<String> {
    let mut text = String::new();
    for (name, entry) in &*view.servers() {
        let catalog = entry.instance.manager().catalog();
        let listed = catalog.server(name).filter(|listed| listed.is_offered);
        let said = listed.and_then(|listed| listed.instructions.as_deref());
        let Some(said) = said.map(str::trim).filter(|said| !said.is_empty()) else {
            continue;
        };
        let part = section(name, said);
        if text.len() + part.len() > MAX_INSTRUCTIONS {
            tracing::debug!(server = %name, "no room for what the server says about its use");
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&part);
    }
    (!text.is_empty()).then_some(text)
}

fn section(name: &ServerName, said: &str) -> String {
    let end = said.floor_char_boundary(MAX_INSTRUCTIONS_OF_ONE);
    let (shown, rest) = said.split_at(end);
    let more = if rest.is_empty() { "" } else { " […]" };
    format!("## {name}\n\n{shown}{more}")
}

#[cfg(test)]
mod tests {
    use super::{MAX_INSTRUCTIONS_OF_ONE, section};

    #[test]
    fn what_a_server_says_about_its_use_is_under_its_name_and_bounded() {
        let name = "files".parse().unwrap();
        assert_eq!(section(&name, "Read."), "## files\n\nRead.");
        let long = "é".repeat(MAX_INSTRUCTIONS_OF_ONE);
        let cut = section(&name, &long);
        assert!(cut.ends_with("é […]"), "{cut}");
        assert!(cut.len() < MAX_INSTRUCTIONS_OF_ONE + 32);
    }
}
