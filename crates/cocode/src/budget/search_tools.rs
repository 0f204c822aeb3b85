//! The tools that models which search are shown in place of all others, as far as their size matters.

use crate::toolbox::{ServerTools, ToolEntry};

/// What `tool_search` says of one server at most.
const MAX_WORDS_CHARACTERS: usize = 120;

const SEARCH: &str = "Finds tools by what they are for. Most tools are not listed: search before you \
     say that something cannot be done, then call what was found with `tool_call`. Write the query as \
     a few words for what the tool does and what it works on, or the name of a tool.";
const SEARCH_SCHEMA: &str = r#"{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do, in a few words"},"limit":{"type":"integer","minimum":1,"maximum":20,"default":5,"description":"How many tools to find"},"server":{"type":"string","description":"Only tools of this server"},"detail":{"type":"string","enum":["full","names"],"default":"full","description":"Whole definitions, or only names with a sentence each"}},"required":["query"],"additionalProperties":false}"#;
const CALL: &str = "Calls a tool that `tool_search` has found. Its arguments have to fit the inputSchema \
     of that tool.";
const CALL_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string","description":"The name of the tool, as it was found"},"arguments":{"type":"object","description":"The arguments of the tool"}},"required":["name"],"additionalProperties":false}"#;

/// The definitions of `tool_search` and `tool_call`, for a model that searches these servers.
pub(super) fn definitions(servers: &[ServerTools]) -> [ToolEntry; 2] {
    let mut description = SEARCH.to_owned();
    if !servers.is_empty() {
        description.push_str(" Servers:");
    }
    for ServerTools { name, about, .. } in servers {
        description.push_str("\n- ");
        description.push_str(name);
        let about = about.as_deref().unwrap_or_default().lines().next();
        if let Some(about) = about.filter(|about| !about.is_empty()) {
            description.push_str(": ");
            description.extend(about.chars().take(MAX_WORDS_CHARACTERS));
        }
    }
    [
        definition("tool_search", description, SEARCH_SCHEMA),
        definition("tool_call", CALL.to_owned(), CALL_SCHEMA),
    ]
}

fn definition(name: &str, description: String, schema: &str) -> ToolEntry {
    ToolEntry {
        name: name.to_owned(),
        title: None,
        description: Some(description),
        input_schema: Some(schema.to_owned()),
    }
}
