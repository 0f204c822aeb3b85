//! A conversation as chat completions take it.

use serde_json::{Map, Value, json};

use super::super::history::{call_id, data_url, max_output_tokens, visible};
use super::OutputLimit;
use crate::content::{Block, Message, Role, ToolCall, ToolResult};
use crate::provider::ModelRequest;

/// The longest name of a call that `OpenAI` takes here.
const MAX_CALL_ID_CHARS: usize = 40;

pub(super) fn body(request: &ModelRequest<'_>, provider: &str, limit: OutputLimit) -> Value {
    let ModelRequest {
        model,
        system,
        messages,
        tools,
        max_output_tokens: wanted,
        conversation: _,
    } = *request;
    let mut said = Vec::new();
    if !system.is_empty() {
        said.push(json!({ "role": "system", "content": system }));
    }
    for message in messages {
        match message.role {
            Role::User => user_messages(message, model.vision, &mut said),
            Role::Assistant => said.extend(assistant_message(message, provider)),
        }
    }
    let mut body = json!({
        "model": model.name,
        "messages": said,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(|tool| tool.chat_definition()).collect();
    }
    if let Some(most) = max_output_tokens(model, wanted) {
        let member = match limit {
            OutputLimit::MaxTokens => "max_tokens",
            OutputLimit::MaxCompletionTokens => "max_completion_tokens",
        };
        body[member] = json!(most);
    }
    body
}

/// What the tools and a person say: first a message for every result, then one with the images of the
/// results, which those have no room for, and with what the person says.
fn user_messages(message: &Message, vision: bool, said: &mut Vec<Value>) {
    let mut parts = Vec::new();
    for block in &message.content {
        if let Block::ToolResult(result) = block {
            let (text, images) = tool_output(result, vision);
            said.push(json!({ "role": "tool", "tool_call_id": id(&result.id), "content": text }));
            if !images.is_empty() {
                parts.push(text_part(&format!("What the call {} shows:", result.id)));
                parts.extend(images);
            }
        }
    }
    parts.extend(visible(&message.content, vision).filter_map(|block| part(&block)));
    if parts.is_empty() {
        return;
    }
    // Many servers understand nothing but text, so text alone is no list.
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| part.get("text")?.as_str())
        .collect();
    let content = match texts {
        Some(texts) => json!(texts.join("\n\n")),
        None => Value::Array(parts),
    };
    said.push(json!({ "role": "user", "content": content }));
}

fn tool_output(result: &ToolResult, vision: bool) -> (String, Vec<Value>) {
    let parts = visible(&result.content, vision).filter_map(|block| part(&block));
    let is_image = |part: &Value| part.get("image_url").is_some();
    let (images, texts): (Vec<Value>, Vec<Value>) = parts.partition(is_image);
    let texts: Vec<&str> = texts
        .iter()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    (texts.join("\n"), images)
}

/// What the model said, if anything is left of it.
fn assistant_message(message: &Message, provider: &str) -> Option<Value> {
    let texts: Vec<&str> = message.content.iter().filter_map(Block::as_text).collect();
    let text = texts.join("\n\n");
    let calls: Vec<Value> = message.tool_calls().map(call).collect();
    let mut said = Map::new();
    said.insert("role".into(), json!("assistant"));
    if !text.is_empty() {
        said.insert("content".into(), json!(text));
    } else if calls.is_empty() {
        return None;
    } else {
        said.insert("content".into(), Value::Null);
    }
    if !calls.is_empty() {
        // Models that think go on with their thoughts after a call. Those of earlier answers are of no
        // use to them, and some servers refuse them.
        if let Some((member, thoughts)) = thoughts(&message.content, provider) {
            said.insert(member, json!(thoughts));
        }
        said.insert("tool_calls".into(), Value::Array(calls));
    }
    Some(Value::Object(said))
}

/// The member that thoughts came in, and the thoughts.
fn thoughts(content: &[Block], provider: &str) -> Option<(String, String)> {
    let mut member = None;
    let mut thoughts = String::new();
    for block in content {
        if let Block::Reasoning {
            text,
            provider: whose,
            opaque: Some(opaque),
        } = block
            && whose == provider
        {
            member = opaque.get("member").and_then(Value::as_str).or(member);
            thoughts.push_str(text);
        }
    }
    Some((member?.to_owned(), thoughts))
}

/// The arguments are always an object: servers put them into templates that take nothing else.
fn call(call: &ToolCall) -> Value {
    json!({
        "id": id(&call.id),
        "type": "function",
        "function": {
            "name": call.name,
            "arguments": call.arguments.to_object().to_string(),
        },
    })
}

/// The model's name for a call, as it is where that is possible: some models read it.
fn id(own: &str) -> String {
    if own.is_empty() || own.chars().count() > MAX_CALL_ID_CHARS {
        call_id(own, MAX_CALL_ID_CHARS)
    } else {
        own.to_owned()
    }
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(text_part(text)),
        Block::Image { media_type, data } => Some(json!({
            "type": "image_url",
            "image_url": { "url": data_url(media_type, data) },
        })),
        _ => None,
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
