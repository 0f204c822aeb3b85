//! The tools of a toolbox itself: how they are shown, and what models say to them.

use cocode_core::{
    DEFAULT_FOUND, Dialect, FoundDetail, Loading, MAX_FOUND, ProviderTool, SearchedServer,
    TOOL_CALL, TOOL_SEARCH, ToolSource, tool_call_definition, tool_search_for,
};
use serde_json::Value;

use super::shelf::write_source;

/// What `tool_search` is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Query {
    pub(super) text: String,
    pub(super) limit: usize,
    pub(super) server: Option<String>,
    pub(super) detail: FoundDetail,
}

/// `tool_search`, for a way of coming to tools.
pub(super) fn search_tool<'a>(
    servers: impl IntoIterator<Item = SearchedServer<'a>>,
    loading: Loading,
    dialect: Dialect,
) -> Option<ProviderTool> {
    let definition = tool_search_for(servers, loading, dialect.max_description_chars());
    written(TOOL_SEARCH, &definition, dialect)
}

/// `tool_call`.
pub(super) fn call_tool(dialect: Dialect) -> Option<ProviderTool> {
    written(TOOL_CALL, tool_call_definition(), dialect)
}

fn written(name: &str, definition: &str, dialect: Dialect) -> Option<ProviderTool> {
    let definition: Value = serde_json::from_str(definition).unwrap_or_default();
    let source = ToolSource {
        name,
        description: definition.get("description").and_then(Value::as_str),
        input_schema: definition.get("inputSchema").unwrap_or(&Value::Null),
    };
    let written = write_source(&source, dialect);
    written
        .inspect_err(|error| tracing::error!(name, %error, "a tool of our own cannot be written"))
        .ok()
}

impl Query {
    /// Reads the arguments of `tool_search`; what is wrong with them is said to the model.
    pub(super) fn read(arguments: &Value) -> Result<Self, String> {
        let Value::Object(members) = arguments else {
            return Err("The arguments are no object.".to_owned());
        };
        let mut query = Self {
            text: String::new(),
            limit: DEFAULT_FOUND,
            server: None,
            detail: FoundDetail::Full,
        };
        for (key, value) in members {
            match (key.as_str(), value) {
                ("query", Value::String(text)) => query.text.clone_from(text),
                ("server" | "limit" | "detail", Value::Null) => {}
                ("server", Value::String(server)) => query.server = Some(server.clone()),
                ("query" | "server", _) => return Err(format!("`{key}` is a text.")),
                ("limit", limit) => {
                    let limit = whole(limit);
                    let limit = limit.filter(|limit| (1..=MAX_FOUND).contains(limit));
                    query.limit = limit
                        .ok_or_else(|| format!("`limit` is a number from 1 to {MAX_FOUND}."))?;
                }
                ("detail", Value::String(detail)) if detail == "full" => {}
                ("detail", Value::String(detail)) if detail == "names" => {
                    query.detail = FoundDetail::Names;
                }
                ("detail", _) => return Err("`detail` is \"full\" or \"names\".".to_owned()),
                (other, _) => {
                    return Err(format!(
                        "`{other}` is no argument of `{TOOL_SEARCH}`: it takes query, limit and \
                         server."
                    ));
                }
            }
        }
        if query.text.trim().is_empty() {
            return Err("`query` says in a few words what the tool should do.".to_owned());
        }
        Ok(query)
    }
}

/// Reads the arguments of `tool_call`: the name of a tool, and its arguments.
pub(super) fn unwrapped(arguments: &Value) -> Result<(&str, Value), String> {
    let Value::Object(members) = arguments else {
        return Err("The arguments are no object.".to_owned());
    };
    let known = ["name", "arguments"];
    if let Some(other) = members.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!(
            "`{other}` is no argument of `{TOOL_CALL}`: it takes the name of a tool, and the \
             arguments of that tool as one object in `arguments`."
        ));
    }
    let Some(name) = members.get("name").and_then(Value::as_str) else {
        return Err(format!("`{TOOL_CALL}` needs the `name` of a tool."));
    };
    match members.get("arguments").unwrap_or(&Value::Null) {
        inner @ (Value::Object(_) | Value::Null) => Ok((name, inner.clone())),
        _ => {
            Err("`arguments` is one object with the arguments of the tool, and no text.".to_owned())
        }
    }
}

/// A whole number, which some write as `5.0`.
fn whole(value: &Value) -> Option<usize> {
    let text = value.as_number()?.to_string();
    text.strip_suffix(".0").unwrap_or(&text).parse().ok()
}

#[cfg(test)]
#[path = "own_tests.rs"]
mod tests;
