//! The chunks of chat completions, in the order and with the members that are documented.

use serde_json::{Value, json};

use super::script::{Ending, ModelTurn, Part, StopWord};
use super::serve::{Naming, Step};

/// How many characters of arguments are in one chunk.
const ARGUMENTS_PIECE: usize = 8;

pub(super) fn steps(turn: &ModelTurn, naming: Naming<'_>) -> Vec<Step> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": format!("chatcmpl-{}", naming.number),
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": naming.model,
            "choices": [{
                "index": 0,
                "delta": delta,
                "logprobs": null,
                "finish_reason": finish,
            }],
        })
    };
    let delta = |delta: Value| Step::data(&chunk(delta, Value::Null));
    let mut steps = vec![delta(json!({ "role": "assistant", "content": "" }))];
    let mut n_calls = 0;
    for part in &turn.parts {
        match part {
            Part::Text(pieces) => {
                steps.extend(
                    pieces
                        .iter()
                        .map(|piece| delta(json!({ "content": piece }))),
                );
            }
            Part::Thinking { text, .. } => {
                steps.push(delta(json!({ "reasoning_content": text })));
            }
            Part::Call {
                id,
                name,
                arguments,
            } => {
                let pieces = call(n_calls, id, name, arguments).into_iter();
                steps.extend(pieces.map(|piece| delta(json!({ "tool_calls": [piece] }))));
                n_calls += 1;
            }
            Part::Hold(gate) => steps.push(Step::Hold(*gate)),
            Part::Raw { name, data } => steps.push(Step::Event {
                name: name.clone(),
                data: data.clone(),
            }),
            // This interface has neither.
            Part::Redacted(_) | Part::Ping => {}
        }
    }
    match &turn.ending {
        Ending::Error { kind, message } => {
            let error = json!({ "message": message, "type": "server_error", "code": kind });
            steps.push(Step::data(&json!({ "error": error })));
        }
        Ending::Early | Ending::Stall | Ending::CutOff => {}
        Ending::Proper => {
            if let Some(StopWord::Refusal(why)) = &turn.stop {
                steps.push(delta(json!({ "refusal": why })));
            }
            steps.push(Step::data(&chunk(json!({}), json!(finish_reason(turn)))));
            if !turn.usage.unsaid {
                let mut last = chunk(json!({}), Value::Null);
                last["choices"] = json!([]);
                last["usage"] = usage(turn);
                steps.push(Step::data(&last));
            }
            steps.push(Step::Event {
                name: String::new(),
                data: "[DONE]".to_owned(),
            });
        }
    }
    steps
}

/// A call in pieces: first its name, then its arguments.
fn call(index: usize, id: &str, name: &str, arguments: &str) -> Vec<Value> {
    let begin = json!({
        "index": index,
        "id": id,
        "type": "function",
        "function": { "name": name, "arguments": "" },
    });
    let letters: Vec<char> = arguments.chars().collect();
    let pieces = letters.chunks(ARGUMENTS_PIECE).map(|piece| {
        let piece: String = piece.iter().collect();
        json!({ "index": index, "function": { "arguments": piece } })
    });
    std::iter::once(begin).chain(pieces).collect()
}

fn finish_reason(turn: &ModelTurn) -> &str {
    match &turn.stop {
        Some(StopWord::MaxTokens) => "length",
        Some(StopWord::ContentFilter) => "content_filter",
        Some(StopWord::Other(word)) => word,
        None if turn.has_calls() => "tool_calls",
        Some(StopWord::Refusal(_)) | None => "stop",
    }
}

fn usage(turn: &ModelTurn) -> Value {
    let usage = turn.usage;
    let input = usage.input + usage.cache_read + usage.cache_write;
    json!({
        "prompt_tokens": input,
        "completion_tokens": usage.output,
        "total_tokens": input + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cache_read },
    })
}
