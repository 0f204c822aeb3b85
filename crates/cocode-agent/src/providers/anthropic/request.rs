//! A conversation as the Messages interface takes it.

use cocode_core::ProviderTool;
use serde_json::{Map, Value, json};

use super::super::history::{DEFAULT_MAX_OUTPUT_TOKENS, call_id, max_output_tokens, visible};
use super::Thinking;
use crate::content::{Block, Message, Role, ToolResult};
use crate::provider::ModelRequest;

/// The longest name of a call; the interface names no limit, and its own are half of this.
const MAX_CALL_ID_CHARS: usize = 64;

/// The fewest tokens that the interface takes for thinking.
const MIN_THINKING_TOKENS: u64 = 1024;

pub(super) fn body(request: &ModelRequest<'_>, provider: &str, thinking: Thinking) -> Value {
    let ModelRequest {
        model,
        system,
        messages,
        tools,
        max_output_tokens: wanted,
        conversation: _,
    } = *request;
    let max_tokens = max_output_tokens(model, wanted).unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS);
    let mut body = json!({
        "model": model.name,
        "max_tokens": max_tokens,
        "stream": true,
        "messages": turns(messages, provider, model.vision),
    });
    if !system.trim().is_empty() {
        body["system"] = json!([cached(json!({ "type": "text", "text": system }))]);
    }
    if !tools.is_empty() {
        let mut tools: Vec<Value> = tools.iter().map(|tool| definition(tool)).collect();
        if let Some(last) = tools.pop() {
            tools.push(cached(last));
        }
        body["tools"] = Value::Array(tools);
    }
    match thinking {
        Thinking::Adaptive => body["thinking"] = json!({ "type": "adaptive" }),
        // What is thought counts as written, and something has to be left for the reply.
        Thinking::Budget(wanted)
            if max_tokens > MIN_THINKING_TOKENS && !calls_without_thought(&body) =>
        {
            let budget = wanted.clamp(MIN_THINKING_TOKENS, max_tokens - 1);
            body["thinking"] = json!({ "type": "enabled", "budget_tokens": budget });
        }
        Thinking::Unsaid | Thinking::Budget(_) => {}
    }
    body
}

/// Whether the model waits for tools that it has called without a thought, as one of another provider
/// may have. The interface then refuses to let it think.
fn calls_without_thought(body: &Value) -> bool {
    let turns = body.get("messages").and_then(Value::as_array);
    let kind = |block: &Value| block.get("type").and_then(Value::as_str).map(str::to_owned);
    let last = turns.and_then(|turns| turns.iter().rfind(|turn| turn["role"] == "assistant"));
    let blocks = last.and_then(|turn| turn.get("content")?.as_array());
    let kinds: Vec<String> = blocks.into_iter().flatten().filter_map(kind).collect();
    let has_calls = kinds.iter().any(|kind| kind == "tool_use");
    has_calls && !kinds.first().is_some_and(|kind| kind.ends_with("thinking"))
}

fn definition(tool: &ProviderTool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    })
}

/// Marks the end of what the provider is to keep for the next request.
fn cached(mut block: Value) -> Value {
    block["cache_control"] = json!({ "type": "ephemeral" });
    block
}

/// The messages, with roles that take turns also where nothing is left of one.
fn turns(messages: &[Message], provider: &str, vision: bool) -> Vec<Value> {
    let mut turns: Vec<(Role, Vec<Value>)> = Vec::new();
    for message in messages {
        let blocks = match message.role {
            Role::User => user_blocks(&message.content, vision),
            Role::Assistant => assistant_blocks(&message.content, provider),
        };
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((role, said)) if *role == message.role => said.extend(blocks),
            _ => turns.push((message.role, blocks)),
        }
    }
    if let Some((Role::User, blocks)) = turns.last_mut()
        && let Some(last) = blocks.pop()
    {
        blocks.push(cached(last));
    }
    let turn = |(role, content)| match role {
        Role::User => json!({ "role": "user", "content": Value::Array(content) }),
        Role::Assistant => json!({ "role": "assistant", "content": Value::Array(content) }),
    };
    turns.into_iter().map(turn).collect()
}

/// What a person and the tools say: the results first, as the interface wants it.
fn user_blocks(content: &[Block], vision: bool) -> Vec<Value> {
    let results = content.iter().filter_map(|block| match block {
        Block::ToolResult(result) => Some(tool_result(result, vision)),
        _ => None,
    });
    let others = visible(content, vision).filter_map(|block| plain(&block));
    results.chain(others).collect()
}

fn tool_result(result: &ToolResult, vision: bool) -> Value {
    let content: Vec<Value> = visible(&result.content, vision)
        .filter_map(|block| plain(&block))
        .collect();
    let mut block = Map::new();
    block.insert("type".into(), json!("tool_result"));
    block.insert(
        "tool_use_id".into(),
        json!(call_id(&result.id, MAX_CALL_ID_CHARS)),
    );
    if !content.is_empty() {
        block.insert("content".into(), Value::Array(content));
    }
    if result.is_error {
        block.insert("is_error".into(), json!(true));
    }
    Value::Object(block)
}

fn assistant_blocks(content: &[Block], provider: &str) -> Vec<Value> {
    let blocks = content.iter().filter_map(|block| match block {
        Block::Reasoning {
            text,
            provider: whose,
            opaque: Some(opaque),
        } if whose == provider => thought(text, opaque),
        Block::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": call_id(&call.id, MAX_CALL_ID_CHARS),
            "name": call.name,
            "input": call.arguments.to_object(),
        })),
        other => plain(other),
    });
    let mut blocks: Vec<Value> = blocks.collect();
    // A message may not end with a thought: what was to follow it was cut off.
    let is_thought = |block: &Value| {
        let kind = block["type"].as_str().unwrap_or_default();
        matches!(kind, "thinking" | "redacted_thinking")
    };
    while blocks.last().is_some_and(is_thought) {
        blocks.pop();
    }
    blocks
}

/// A thought as it came: the interface checks that it is the same.
fn thought(text: &str, opaque: &Value) -> Option<Value> {
    match opaque.get("type")?.as_str()? {
        "thinking" => Some(json!({
            "type": "thinking",
            "thinking": text,
            "signature": opaque.get("signature")?,
        })),
        "redacted_thinking" => Some(json!({
            "type": "redacted_thinking",
            "data": opaque.get("data")?,
        })),
        _ => None,
    }
}

/// Text and images. Text of blanks alone is refused by the interface, so it is left out.
fn plain(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } if !text.trim().is_empty() => {
            Some(json!({ "type": "text", "text": text }))
        }
        Block::Image { media_type, data } => Some(json!({
            "type": "image",
            "source": { "type": "base64", "media_type": media_type, "data": data },
        })),
        _ => None,
    }
}
