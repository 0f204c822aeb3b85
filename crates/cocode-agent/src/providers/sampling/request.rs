//! A conversation as the parameters of `sampling/createMessage`.

use serde_json::{Value, json};

use super::super::history::{DEFAULT_MAX_OUTPUT_TOKENS, max_output_tokens, visible};
use crate::content::{Block, Message, Role, ToolCall, ToolResult, text_of};
use crate::provider::ModelRequest;

pub(super) fn params(request: &ModelRequest<'_>, hints: &[String], takes_tools: bool) -> Value {
    let ModelRequest {
        model,
        system,
        messages,
        tools,
        max_output_tokens: wanted,
        conversation: _,
    } = *request;
    let mut said = Vec::new();
    for message in messages {
        if takes_tools {
            with_tools(message, model.vision, &mut said);
        } else {
            without_tools(message, model.vision, &mut said);
        }
    }
    let most = max_output_tokens(model, wanted).unwrap_or(DEFAULT_MAX_OUTPUT_TOKENS);
    let mut params = json!({ "messages": said, "maxTokens": most });
    if !system.is_empty() {
        params["systemPrompt"] = json!(system);
    }
    let hints: Vec<Value> = std::iter::once(&model.name)
        .filter(|name| !name.is_empty())
        .chain(hints)
        .map(|name| json!({ "name": name }))
        .collect();
    if !hints.is_empty() {
        params["modelPreferences"] = json!({ "hints": hints });
    }
    if takes_tools && !tools.is_empty() {
        let tools = tools.iter().map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters,
            })
        });
        params["tools"] = tools.collect();
        params["toolChoice"] = json!({ "mode": "auto" });
    }
    params
}

/// Messages with results of tools hold nothing else, and come right after the calls.
fn with_tools(message: &Message, vision: bool, said: &mut Vec<Value>) {
    let (results, others): (Vec<Block>, Vec<Block>) =
        visible(&message.content, vision).partition(|block| matches!(block, Block::ToolResult(_)));
    for blocks in [results, others] {
        let blocks: Vec<Value> = blocks
            .iter()
            .filter_map(|block| content(block, vision))
            .collect();
        say(message.role, blocks, said);
    }
}

/// One block for each message, and calls in words: the conversation may have begun with another model.
fn without_tools(message: &Message, vision: bool, said: &mut Vec<Value>) {
    for block in visible(&message.content, vision) {
        let block = match &block {
            Block::ToolCall(ToolCall {
                name, arguments, ..
            }) => Block::text(format!(
                "(The tool {name} was called with {}.)",
                arguments.to_text()
            )),
            Block::ToolResult(result) => {
                let seen: Vec<Block> = visible(&result.content, false).collect();
                Block::text(format!("(A tool answered: {})", text_of(&seen)))
            }
            other => other.clone(),
        };
        let block = content(&block, vision);
        say(message.role, block.into_iter().collect(), said);
    }
}

fn say(role: Role, mut blocks: Vec<Value>, said: &mut Vec<Value>) {
    let role = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let content = match blocks.len() {
        0 => return,
        1 => blocks.remove(0),
        _ => Value::Array(blocks),
    };
    said.push(json!({ "role": role, "content": content }));
}

fn content(block: &Block, vision: bool) -> Option<Value> {
    match block {
        Block::Text { text } if text.is_empty() => None,
        Block::Text { text } => Some(json!({ "type": "text", "text": text })),
        Block::Image { media_type, data } => Some(json!({
            "type": "image",
            "data": data,
            "mimeType": media_type,
        })),
        // MCP has no thoughts.
        Block::Reasoning { .. } => None,
        Block::ToolCall(call) => Some(json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": call.arguments.to_object(),
        })),
        Block::ToolResult(result) => Some(tool_result(result, vision)),
    }
}

fn tool_result(result: &ToolResult, vision: bool) -> Value {
    let content: Vec<Value> = visible(&result.content, vision)
        .filter_map(|block| match &block {
            Block::Text { .. } | Block::Image { .. } => content(&block, vision),
            _ => None,
        })
        .collect();
    let mut value = json!({
        "type": "tool_result",
        "toolUseId": result.id,
        "content": content,
    });
    if result.is_error {
        value["isError"] = json!(true);
    }
    value
}
