//! Tools that are written in a file, which needs no server and no configuration.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use serde_json::value::RawValue;

use super::input::{bad_file, read as read_file};
use super::{ServerTools, ToolEntry, Toolbox};
use crate::error::CliError;
use crate::printer::Printer;
use crate::text::plain;

/// What a file is to be.
const WHAT: &str = "catalog of tools";
const HINT: &str = "a catalog is a list of items such as {\"server\": \"files\", \"name\": \"read_file\", \
     \"description\": \"Reads a file\", \"inputSchema\": {\"type\": \"object\"}}; the first item is [0], \
     and description and inputSchema may be missing";

type Item<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Reads a catalog. Whatever is wrong with an item is said with its place.
pub(super) fn read(path: &Path, printer: &Printer) -> Result<Toolbox, CliError> {
    let bytes = read_file(path)?;
    let toolbox = parse(&bytes).map_err(|wrong| bad_file(path, WHAT, wrong).hint(HINT))?;
    if toolbox.servers.is_empty() {
        printer.warn("the catalog is empty: there is nothing in it");
    }
    Ok(toolbox)
}

/// The tools, or what is wrong with them.
fn parse(bytes: &[u8]) -> Result<Toolbox, String> {
    let items: &RawValue =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    let items: Vec<&RawValue> = serde_json::from_str(items.get())
        .map_err(|_no_list| format!("it is {}, and must be a list", kind(items)))?;
    let mut toolbox = Toolbox::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    // Where each tool was listed first.
    let mut listed: HashMap<(usize, String), usize> = HashMap::new();
    for (index, item) in items.into_iter().enumerate() {
        let members: Item<'_> = serde_json::from_str(item.get())
            .map_err(|_no_object| format!("[{index}] is {}, and must be an object", kind(item)))?;
        let server = required(&members, index, "server")?;
        let tool = ToolEntry {
            name: required(&members, index, "name")?,
            title: optional(&members, index, "title")?,
            description: optional(&members, index, "description")?,
            input_schema: schema(&members, index)?,
        };
        let place = *places.entry(server).or_insert_with_key(|server| {
            toolbox.servers.push(ServerTools {
                name: server.clone(),
                ..ServerTools::default()
            });
            toolbox.servers.len() - 1
        });
        let Some(server) = toolbox.servers.get_mut(place) else {
            continue;
        };
        if let Some(first) = listed.insert((place, tool.name.clone()), index) {
            let (server, tool) = (plain(&server.name), plain(&tool.name));
            return Err(format!(
                "[{index}] is the tool `{tool}` of `{server}`, which [{first}] is already: remove \
                 one of them, or give it another name"
            ));
        }
        server.tools.push(tool);
    }
    Ok(toolbox)
}

fn required(members: &Item<'_>, index: usize, key: &str) -> Result<String, String> {
    match optional(members, index, key)? {
        Some(text) if text.is_empty() => Err(format!("[{index}].{key} is empty, and must not be")),
        Some(text) => Ok(text),
        None => Err(format!("[{index}] has no `{key}`, which must be a text")),
    }
}

fn optional(members: &Item<'_>, index: usize, key: &str) -> Result<Option<String>, String> {
    let Some(value) = members.get(key) else {
        return Ok(None);
    };
    serde_json::from_str(value.get())
        .map_err(|_no_text| format!("[{index}].{key} is {}, and must be a text", kind(value)))
}

fn schema(members: &Item<'_>, index: usize) -> Result<Option<String>, String> {
    const KEY: &str = "inputSchema";
    match members.get(KEY) {
        None => Ok(None),
        Some(value) if value.get() == "null" => Ok(None),
        Some(value) if value.get().starts_with('{') => Ok(Some(value.get().to_owned())),
        Some(value) => Err(format!(
            "[{index}].{KEY} is {}, and must be an object",
            kind(value)
        )),
    }
}

/// What JSON this is, for people.
pub(crate) fn kind(value: &RawValue) -> &'static str {
    match value.get().bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
