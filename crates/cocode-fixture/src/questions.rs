//! What the tools ask of clients, and the answers.

use rmcp::model::{
    ClientCapabilities, CreateMessageResult, ElicitResult, InputRequest, ListRootsResult,
};
use serde_json::{Value, json};

/// Asks the user to fill in a form with the given properties, all of which are required.
pub(crate) fn form(message: &str, properties: &Value) -> InputRequest {
    let required: Vec<&String> = properties
        .as_object()
        .map(|properties| properties.keys().collect())
        .unwrap_or_default();
    request(json!({
        "method": "elicitation/create",
        "params": {
            "message": message,
            "requestedSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
            },
        },
    }))
}

/// Asks the user to open a page.
pub(crate) fn page(message: &str, id: &str, url: &str) -> InputRequest {
    request(json!({
        "method": "elicitation/create",
        "params": { "mode": "url", "message": message, "elicitationId": id, "url": url },
    }))
}

/// Asks the client's model.
pub(crate) fn sampling(prompt: &str) -> InputRequest {
    request(json!({
        "method": "sampling/createMessage",
        "params": {
            "messages": [{ "role": "user", "content": { "type": "text", "text": prompt } }],
            "maxTokens": 100,
        },
    }))
}

/// Asks for the client's roots.
pub(crate) fn roots() -> InputRequest {
    request(json!({ "method": "roots/list" }))
}

fn request(value: Value) -> InputRequest {
    serde_json::from_value(value).expect("rmcp understands the questions of this file")
}

/// Whether a client with these capabilities can be asked.
pub(crate) fn can_answer(capabilities: &ClientCapabilities, question: &InputRequest) -> bool {
    match question {
        InputRequest::CreateMessage(_) => capabilities.sampling.is_some(),
        InputRequest::Elicitation(_) => capabilities.elicitation.is_some(),
        InputRequest::ListRoots(_) => capabilities.roots.is_some(),
        _ => false,
    }
}

/// The capability that a client needs for an answer.
pub(crate) fn needed(question: &InputRequest) -> ClientCapabilities {
    let builder = ClientCapabilities::builder();
    match question {
        InputRequest::CreateMessage(_) => builder.enable_sampling().build(),
        InputRequest::ListRoots(_) => builder.enable_roots().build(),
        _ => builder.enable_elicitation().build(),
    }
}

/// Whether something is an answer to a question at all.
pub(crate) fn is_answer(question: &InputRequest, answer: &Value) -> bool {
    let answer = answer.clone();
    match question {
        InputRequest::CreateMessage(_) => {
            serde_json::from_value::<CreateMessageResult>(answer).is_ok()
        }
        InputRequest::Elicitation(_) => serde_json::from_value::<ElicitResult>(answer).is_ok(),
        InputRequest::ListRoots(_) => serde_json::from_value::<ListRootsResult>(answer).is_ok(),
        _ => false,
    }
}

/// What the user did, for people: the action and what was filled in.
pub(crate) fn action_and_content(answer: &Value) -> String {
    let action = answer["action"].as_str().unwrap_or_default();
    let content = answer.get("content").unwrap_or(&Value::Null);
    format!("action={action}, content={content}")
}

/// A text that the user filled in; empty if they declined.
pub(crate) fn filled_in<'a>(answer: &'a Value, property: &str) -> &'a str {
    answer["content"][property].as_str().unwrap_or_default()
}

/// The text of the client's model.
pub(crate) fn sampled(answer: &Value) -> &str {
    answer["content"]["text"].as_str().unwrap_or_default()
}

/// The URIs of the client's roots.
pub(crate) fn root_uris(answer: &Value) -> String {
    let roots = answer["roots"].as_array().map(Vec::as_slice);
    let uris: Vec<&str> = roots
        .unwrap_or_default()
        .iter()
        .filter_map(|root| root["uri"].as_str())
        .collect();
    uris.join(", ")
}
