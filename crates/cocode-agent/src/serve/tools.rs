//! The two tools as clients see them.

use cocode_core::{ApprovalPolicy, SandboxMode};
use serde_json::{Value, json};

/// Begins a conversation.
pub(super) const BEGIN: &str = "cocode";
/// Goes on with one.
pub(super) const REPLY: &str = "cocode-reply";

/// The arguments of [`BEGIN`].
pub(super) const BEGIN_KEYS: &[&str] = &[
    "prompt",
    "model",
    "profile",
    "cwd",
    "approval-policy",
    "sandbox",
    "config",
    "base-instructions",
    "developer-instructions",
    "compact-prompt",
];
/// The arguments of [`REPLY`].
pub(super) const REPLY_KEYS: &[&str] = &["session_id", "message"];

/// Both of them.
pub(super) fn definitions() -> Value {
    json!([begin(), reply()])
}

fn begin() -> Value {
    json!({
        "name": BEGIN,
        "title": "Begin a conversation with the cocode agent",
        "description": "Lets an agent work on a task in a directory, with tools of its own, until it \
            is done. Returns its answer, and a session_id by which cocode-reply goes on with the \
            same conversation.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": text("What the agent is to do."),
                "model": text("The model, if not the configured one."),
                "profile": text("A profile of the configuration."),
                "cwd": text("The directory to work in."),
                "approval-policy": {
                    "type": "string",
                    "enum": ApprovalPolicy::WORDS,
                    "description": "When a person is asked before something is done.",
                },
                "sandbox": {
                    "type": "string",
                    "enum": SandboxMode::WORDS,
                    "description": "What the tools of the agent may touch.",
                },
                "config": {
                    "type": "object",
                    "additionalProperties": true,
                    "description": "More settings, by the names that they have in the configuration.",
                },
                "base-instructions": text("What the model is told instead of the usual instructions."),
                "developer-instructions": text("What the model is told besides."),
                "compact-prompt": text(
                    "What the model is told when a conversation that became too long is summed up."
                ),
            },
            "required": ["prompt"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "session_id": text("The conversation, for cocode-reply."),
                "response": text("What the agent answers."),
            },
            "required": ["session_id", "response"],
        },
        "annotations": annotations(),
    })
}

fn reply() -> Value {
    json!({
        "name": REPLY,
        "title": "Go on with a conversation",
        "description": "Says more in a conversation that cocode began, and lets the agent work on it \
            until it is done.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "session_id": text("The conversation, as cocode returned it."),
                "message": text("What to say."),
            },
            "required": ["session_id", "message"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": { "response": text("What the agent answers.") },
            "required": ["response"],
        },
        "annotations": annotations(),
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// An agent may do anything that its sandbox lets it do.
fn annotations() -> Value {
    json!({
        "readOnlyHint": false,
        "destructiveHint": true,
        "idempotentHint": false,
        "openWorldHint": true,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{BEGIN_KEYS, REPLY_KEYS, begin, reply};

    #[test]
    fn the_schemas_name_exactly_the_arguments_that_are_read() {
        for (tool, keys) in [(begin(), BEGIN_KEYS), (reply(), REPLY_KEYS)] {
            let properties = tool.pointer("/inputSchema/properties").unwrap();
            let mut named: Vec<&String> = properties.as_object().unwrap().keys().collect();
            let mut keys: Vec<&str> = keys.to_vec();
            named.sort();
            keys.sort_unstable();
            assert_eq!(named, keys);
            let required = tool.pointer("/inputSchema/required").unwrap();
            let required = required.as_array().unwrap();
            let is_known = |key: &Value| keys.contains(&key.as_str().unwrap());
            assert!(required.iter().all(is_known), "{required:?}");
        }
    }
}
