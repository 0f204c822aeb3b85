//! What the built-in server says: its tools and their output, as the protocol has them.

use cocode_core::{Era, Revision};
use cocode_tools::{Block, ToolDefinition, ToolOutput, Workspace};
use serde_json::{Map, Value, json};

/// How long clients may rely on the list of tools, which never changes while this process lives.
const LIST_TTL_MS: u64 = 5 * 60 * 1000;

/// The result of `initialize`.
pub(super) fn initialized(requested: &str, tools: &Workspace) -> Value {
    let known: Option<Revision> = requested.parse().ok();
    let revision = known.filter(|revision| revision.era() == Era::Legacy);
    json!({
        "protocolVersion": revision.unwrap_or(Revision::LATEST_LEGACY).as_str(),
        "capabilities": capabilities(),
        "serverInfo": info(),
        "instructions": instructions(tools),
    })
}

/// The result of `server/discover`.
pub(super) fn discovered(tools: &Workspace) -> Value {
    json!({
        "supportedVersions": revisions(),
        "capabilities": capabilities(),
        "instructions": instructions(tools),
        "_meta": { "io.modelcontextprotocol/serverInfo": info() },
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
    })
}

/// The result of `tools/list`.
pub(super) fn listed(tools: &Workspace, era: Era) -> Value {
    let definitions = tools.definitions();
    let list: Vec<Value> = definitions.into_iter().map(described).collect();
    match era {
        Era::Legacy => json!({ "tools": list }),
        Era::Modern => json!({ "tools": list, "ttlMs": LIST_TTL_MS, "cacheScope": "private" }),
    }
}

/// The result of a call.
pub(super) fn called(output: ToolOutput) -> Value {
    let ToolOutput {
        content,
        structured,
        is_error,
        // The tools of a gateway have no sandbox.
        denial: _,
        changes: _,
    } = output;
    let content: Vec<Value> = content.into_iter().map(block).collect();
    let mut result = json!({ "content": content, "isError": is_error });
    if let Some(structured) = structured {
        result["structuredContent"] = structured;
    }
    result
}

/// The result of a call with arguments that the tool does not take: for the model, who can mend them.
pub(super) fn refused(message: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": message }], "isError": true })
}

/// A result as an era has it.
pub(super) fn of_era(result: Value, era: Era) -> Value {
    match (result, era) {
        (Value::Object(members), Era::Modern) => {
            let mut complete = Map::new();
            complete.insert("resultType".into(), json!("complete"));
            complete.extend(members);
            Value::Object(complete)
        }
        (result, _) => result,
    }
}

/// Every revision, the newest first.
pub(super) fn revisions() -> Vec<&'static str> {
    let all = Revision::ALL.into_iter().rev();
    all.map(Revision::as_str).collect()
}

fn capabilities() -> Value {
    json!({ "tools": {} })
}

fn info() -> Value {
    json!({
        "name": "cocode-workspace",
        "title": "Workspace tools of cocode",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn instructions(tools: &Workspace) -> String {
    format!(
        "Tools for the files below {}. Paths are relative to that directory, and nothing outside of \
         it can be reached.",
        tools.root().display()
    )
}

fn described(definition: ToolDefinition) -> Value {
    let ToolDefinition {
        name,
        title,
        description,
        input_schema,
        output_schema,
        read_only,
        destructive,
        idempotent,
    } = definition;
    let mut tool = json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": input_schema,
        "annotations": {
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            // Commands can do anything; the other tools see files of the workspace alone.
            "openWorldHint": name == "shell",
        },
    });
    if let Some(schema) = output_schema {
        tool["outputSchema"] = schema;
    }
    tool
}

fn block(block: Block) -> Value {
    match block {
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::Image { data_base64, mime } => {
            json!({ "type": "image", "data": data_base64, "mimeType": mime })
        }
    }
}
