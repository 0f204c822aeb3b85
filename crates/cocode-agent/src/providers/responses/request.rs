//! A conversation as the Responses interface takes it: a list of items.

use cocode_core::{Dialect, ProviderTool};
use serde_json::{Value, json};

use super::super::history::{call_id, data_url, max_output_tokens, visible};
use super::{Manner, OutputImages};
use crate::content::{Block, Message, Role, ToolResult};
use crate::provider::ModelRequest;

/// The longest name of a call, and the longest key of a cache, in characters.
const MAX_ID_CHARS: usize = 64;

/// The fewest tokens that the interface takes as a limit.
const MIN_OUTPUT_TOKENS: u64 = 16;

pub(super) fn body(request: &ModelRequest<'_>, provider: &str, manner: &Manner) -> Value {
    let ModelRequest {
        model,
        system,
        messages,
        tools,
        max_output_tokens: wanted,
        conversation,
    } = *request;
    let mut items = Vec::new();
    for message in messages {
        match message.role {
            Role::User => user_items(message, model.vision, manner.output_images, &mut items),
            Role::Assistant => assistant_items(message, provider, &mut items),
        }
    }
    let mut body = json!({
        "model": model.name,
        "input": items,
        "stream": true,
        "store": false,
    });
    if !system.is_empty() {
        body["instructions"] = json!(system);
    }
    if !conversation.is_empty() {
        body["prompt_cache_key"] = json!(call_id(conversation, MAX_ID_CHARS));
    }
    if let Some(most) = max_output_tokens(model, wanted) {
        body["max_output_tokens"] = json!(most.max(MIN_OUTPUT_TOKENS));
    }
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(|tool| definition(tool)).collect();
    }
    if let Some(reasoning) = &manner.reasoning {
        body["include"] = json!(["reasoning.encrypted_content"]);
        for (name, value) in [
            ("effort", &reasoning.effort),
            ("summary", &reasoning.summary),
        ] {
            if let Some(value) = value {
                body["reasoning"][name] = json!(value);
            }
        }
    }
    body
}

fn definition(tool: &ProviderTool) -> Value {
    match tool.dialect() {
        Dialect::OpenAi | Dialect::OpenAiStrict => tool.definition(),
        Dialect::Anthropic | Dialect::Gemini | Dialect::Plain => json!({
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": false,
        }),
    }
}

/// What the tools and a person say: first the outputs of calls, then a message, if there is any.
fn user_items(message: &Message, vision: bool, images: OutputImages, items: &mut Vec<Value>) {
    let mut parts = Vec::new();
    for block in &message.content {
        if let Block::ToolResult(result) = block {
            let (output, left) = output(result, vision, images);
            items.push(json!({
                "type": "function_call_output",
                "call_id": call_id(&result.id, MAX_ID_CHARS),
                "output": output,
            }));
            parts.extend(left);
        }
    }
    parts.extend(visible(&message.content, vision).filter_map(|block| part(&block)));
    if !parts.is_empty() {
        items.push(json!({ "type": "message", "role": "user", "content": parts }));
    }
}

/// The output of a call, and what has to be said after it.
fn output(result: &ToolResult, vision: bool, images: OutputImages) -> (Value, Vec<Value>) {
    let parts: Vec<Value> = visible(&result.content, vision)
        .filter_map(|block| part(&block))
        .collect();
    let is_image = |part: &Value| part.get("image_url").is_some();
    let (seen, read): (Vec<Value>, Vec<Value>) = parts.iter().cloned().partition(is_image);
    if !seen.is_empty() && images == OutputImages::Inside {
        return (Value::Array(parts), Vec::new());
    }
    let texts: Vec<&str> = read
        .iter()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    let output = json!(texts.join("\n"));
    if seen.is_empty() {
        return (output, Vec::new());
    }
    let told = format!("What the call {} shows:", call_id(&result.id, MAX_ID_CHARS));
    let told = json!({ "type": "input_text", "text": told });
    (output, std::iter::once(told).chain(seen).collect())
}

fn assistant_items(message: &Message, provider: &str, items: &mut Vec<Value>) {
    let mut own = Vec::new();
    for block in &message.content {
        match block {
            Block::Text { text } if !text.is_empty() => own.push(json!({
                "type": "message",
                "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            })),
            Block::ToolCall(call) => own.push(json!({
                "type": "function_call",
                "call_id": call_id(&call.id, MAX_ID_CHARS),
                "name": call.name,
                "arguments": call.arguments.to_object().to_string(),
            })),
            Block::Reasoning {
                provider: whose,
                opaque: Some(item),
                ..
            } if whose == provider => own.push(item.clone()),
            _ => {}
        }
    }
    // A thought without what it led to is refused.
    while own
        .last()
        .is_some_and(|item| item.get("type") == Some(&json!("reasoning")))
    {
        own.pop();
    }
    items.append(&mut own);
}

fn part(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(json!({ "type": "input_text", "text": text })),
        Block::Image { media_type, data } => Some(json!({
            "type": "input_image",
            "image_url": data_url(media_type, data),
            "detail": "auto",
        })),
        _ => None,
    }
}
