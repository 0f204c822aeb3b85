//! Changes the text of a JSON file of servers, with comments or without.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};

use super::splice::Refusal;
use crate::keys::{JSON_SERVERS, Key, SERVER};

/// A text and what is in it.
pub(super) struct JsonText {
    root: CstRootNode,
    object: CstObject,
}

impl JsonText {
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let no_object = || Refusal {
            key: String::new(),
            message: "the file is not a JSON object",
        };
        let text = if text.trim().is_empty() { "{}\n" } else { text };
        let root = CstRootNode::parse(text, &ParseOptions::default());
        let root = root.map_err(|_not_json| no_object())?;
        let object = root.object_value().ok_or_else(no_object)?;
        Ok(Self { root, object })
    }

    /// Adds a server after the others.
    pub(super) fn add(&self, name: &str, entry: CstInputValue) -> Result<String, Refusal> {
        let existing = JSON_SERVERS
            .iter()
            .find_map(|table| last(&self.object, table));
        let servers = match existing {
            Some(table) => table.object_value().ok_or_else(|| Refusal {
                key: table.decoded_name().unwrap_or_default(),
                message: "it is not an object here",
            })?,
            None => self.object.object_value_or_set(JSON_SERVERS[0]),
        };
        servers.append(name, entry);
        Ok(self.root.to_string())
    }

    /// Exchanges what is said about a server. Nothing, if there is no such server.
    pub(super) fn replace(&self, name: &str, entry: CstInputValue) -> Option<String> {
        let server = self.servers(name).pop()?;
        server.set_value(entry);
        Some(self.root.to_string())
    }

    /// Takes a server away, each time it is there.
    pub(super) fn remove(&self, name: &str) -> Option<String> {
        let servers = self.servers(name);
        if servers.is_empty() {
            return None;
        }
        for server in servers {
            server.remove();
        }
        Some(self.root.to_string())
    }

    /// Says whether a server is used. Nothing, if there is no such server.
    pub(super) fn set_enabled(&self, name: &str, is_enabled: bool) -> Option<String> {
        let server = self.servers(name).pop()?.object_value()?;
        let mut is_said = false;
        for property in server.properties() {
            let name = property.decoded_name().unwrap_or_default();
            let truth = match Key::find(SERVER, &name, true).map(|key| key.name) {
                Some("enabled") => is_enabled,
                Some("disabled") => !is_enabled,
                _ => continue,
            };
            let was = property.value().and_then(|value| value.as_boolean_lit());
            let is_right = was.is_some_and(|was| was.value() == truth);
            if is_enabled && !is_right {
                property.remove();
            } else {
                property.set_value(CstInputValue::Bool(truth));
                is_said = true;
            }
        }
        if !is_enabled && !is_said {
            server.append("disabled", CstInputValue::Bool(true));
        }
        Some(self.root.to_string())
    }

    /// All entries of this name, the one that counts last.
    fn servers(&self, name: &str) -> Vec<CstObjectProp> {
        let tables = JSON_SERVERS
            .iter()
            .filter_map(|table| last(&self.object, table)?.object_value());
        let servers = tables.flat_map(|table| table.properties());
        servers
            .filter(|server| server.decoded_name().as_deref() == Some(name))
            .collect()
    }
}

/// The property that counts.
fn last(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let mut properties = object.properties().into_iter().rev();
    properties.find(|property| property.decoded_name().as_deref() == Some(name))
}
