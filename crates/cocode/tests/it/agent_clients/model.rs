//! A model that does what it is told, so that the client decides what happens in a conversation.

use cocode_testkit::{ModelFormat, ModelScript, ModelTurn, ScriptedModel};
use serde_json::{Value, json};

/// A model for any number of conversations: `run COMMAND` calls the shell, `recall` repeats all that the
/// user has said so far, and everything else is said back. What a tool gives is passed on.
pub(super) fn start() -> ScriptedModel {
    let script = ModelScript::new().forever_computed(|request| answer(&request.json()));
    script.start(ModelFormat::Anthropic)
}

fn answer(body: &Value) -> ModelTurn {
    let messages = body["messages"].as_array().unwrap();
    let last = &messages.last().unwrap()["content"];
    let last = blocks(last).last();
    if let Some(result) = last.filter(|block| block["type"] == "tool_result") {
        let given: Vec<&str> = blocks(&result["content"]).iter().map(text).collect();
        return ModelTurn::new().text(&format!("given: {}", given.join(" ").trim()));
    }
    let said: Vec<&str> = messages
        .iter()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| blocks(&message["content"]).iter().map(text).next_back())
        .filter(|text| !text.is_empty())
        .collect();
    let last = said.last().copied().unwrap_or_default();
    match last.split_once(' ') {
        Some(("run", command)) => {
            let call = format!("call_{}", messages.len());
            ModelTurn::new().call(&call, "shell", &json!({ "command": command }))
        }
        _ if last == "recall" => ModelTurn::new().text(&format!("said: {}", said.join(" | "))),
        _ => ModelTurn::new().text(&format!("heard: {last}")),
    }
}

fn blocks(content: &Value) -> &[Value] {
    let blocks = content.as_array().map(Vec::as_slice);
    blocks.unwrap_or(std::slice::from_ref(content))
}

fn text(block: &Value) -> &str {
    block["text"]
        .as_str()
        .or(block.as_str())
        .unwrap_or_default()
}
