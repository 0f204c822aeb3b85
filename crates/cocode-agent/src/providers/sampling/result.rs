//! What a client answers to `sampling/createMessage`.

use serde_json::Value;

use super::super::exchange::text;
use crate::content::{Arguments, Block, ToolCall};
use crate::model::Usage;
use crate::provider::{Delta, Reply, Stop};

/// The most blocks of one answer.
const MAX_BLOCKS: usize = 10_000;

/// Reads an answer, or says what is wrong with it. Clients do not tell how many tokens it took.
pub(super) fn read(answer: &Value) -> Result<Reply, String> {
    let blocks = match answer.get("content") {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        Some(block @ Value::Object(_)) => std::slice::from_ref(block),
        _ => return Err("it has no content".into()),
    };
    if blocks.len() > MAX_BLOCKS {
        return Err(format!("it has more than {MAX_BLOCKS} blocks"));
    }
    let content: Vec<Block> = blocks.iter().filter_map(block).collect();
    let has_calls = content
        .iter()
        .any(|block| matches!(block, Block::ToolCall(_)));
    let stop = match text(answer, "/stopReason") {
        "maxTokens" => Stop::MaxTokens,
        _ if has_calls => Stop::ToolCalls,
        "" | "endTurn" | "stopSequence" | "toolUse" => Stop::Done,
        "refusal" => Stop::Refused(None),
        other => Stop::Other(other.to_owned()),
    };
    let model = text(answer, "/model");
    Ok(Reply {
        content,
        stop,
        usage: Usage::default(),
        model: (!model.is_empty()).then(|| model.to_owned()),
    })
}

/// Tells a reply that came whole, as others tell theirs piece by piece.
pub(super) fn tell(reply: &Reply, on_delta: &mut (dyn FnMut(Delta) + Send)) {
    for block in &reply.content {
        match block {
            Block::Text { text } => on_delta(Delta::Text(text.clone())),
            Block::ToolCall(call) => {
                let name = call.name.clone();
                on_delta(Delta::ToolCall { name });
            }
            Block::Image { .. } | Block::Reasoning { .. } | Block::ToolResult(_) => {}
        }
    }
}

fn block(block: &Value) -> Option<Block> {
    let own = |pointer: &str| text(block, pointer).to_owned();
    match text(block, "/type") {
        "text" => Some(Block::text(own("/text"))).filter(|block| block.as_text() != Some("")),
        "image" => Some(Block::Image {
            media_type: own("/mimeType"),
            data: own("/data"),
        }),
        "tool_use" => Some(Block::ToolCall(ToolCall {
            id: own("/id"),
            name: own("/name"),
            arguments: Arguments::Json(block.get("input").cloned().unwrap_or_default()),
        })),
        // Sound, and what will be invented.
        _ => None,
    }
}
