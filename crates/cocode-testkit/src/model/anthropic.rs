//! The events of the Messages interface, in the order and with the members that are documented.

use serde_json::{Value, json};

use super::script::{Ending, ModelTurn, Part, StopWord};
use super::serve::{Naming, Step};

/// How many characters of arguments are in one event.
const ARGUMENTS_PIECE: usize = 8;

pub(super) fn steps(turn: &ModelTurn, naming: Naming<'_>) -> Vec<Step> {
    let usage = turn.usage;
    let message = json!({
        "id": format!("msg_{}", naming.number),
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": naming.model,
        "stop_reason": null,
        "stop_sequence": null,
        "usage": {
            "input_tokens": usage.input,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read,
            "output_tokens": 1,
        },
    });
    let mut steps = vec![
        Step::typed(json!({ "message": message }), "message_start"),
        Step::typed(json!({}), "ping"),
    ];
    let mut index = 0;
    for part in &turn.parts {
        let Some((begin, deltas)) = block(part) else {
            steps.push(match part {
                Part::Hold(gate) => Step::Hold(*gate),
                Part::Raw { name, data } => Step::Event {
                    name: name.clone(),
                    data: data.clone(),
                },
                _ => Step::typed(json!({}), "ping"),
            });
            continue;
        };
        let begin = json!({ "index": index, "content_block": begin });
        steps.push(Step::typed(begin, "content_block_start"));
        for delta in deltas {
            let delta = json!({ "index": index, "delta": delta });
            steps.push(Step::typed(delta, "content_block_delta"));
        }
        steps.push(Step::typed(json!({ "index": index }), "content_block_stop"));
        index += 1;
    }
    match &turn.ending {
        Ending::Error { kind, message } => {
            let error = json!({ "error": { "type": kind, "message": message } });
            steps.push(Step::typed(error, "error"));
        }
        // What is cut off or missing is the end of the last block.
        Ending::CutOff | Ending::Early | Ending::Stall => {
            let is_end = |step: &Step| matches!(step, Step::Event { name, .. } if name == "content_block_stop");
            if turn.ending != Ending::CutOff && steps.last().is_some_and(is_end) {
                steps.pop();
            }
        }
        Ending::Proper => {
            let delta = json!({
                "delta": stop(turn),
                "usage": { "output_tokens": usage.output },
            });
            steps.push(Step::typed(delta, "message_delta"));
            steps.push(Step::typed(json!({}), "message_stop"));
        }
    }
    steps
}

/// How a block begins, and the pieces that follow.
fn block(part: &Part) -> Option<(Value, Vec<Value>)> {
    match part {
        Part::Text(pieces) => {
            let deltas = pieces
                .iter()
                .map(|piece| json!({ "type": "text_delta", "text": piece }));
            Some((json!({ "type": "text", "text": "" }), deltas.collect()))
        }
        Part::Thinking { text, signature } => {
            let begin = json!({ "type": "thinking", "thinking": "", "signature": "" });
            let deltas = vec![
                json!({ "type": "thinking_delta", "thinking": text }),
                json!({ "type": "signature_delta", "signature": signature }),
            ];
            Some((begin, deltas))
        }
        Part::Redacted(data) => Some((
            json!({ "type": "redacted_thinking", "data": data }),
            Vec::new(),
        )),
        Part::Call {
            id,
            name,
            arguments,
        } => {
            let begin = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
            // The first piece is empty, as it is with the real thing.
            let letters: Vec<char> = arguments.chars().collect();
            let pieces = letters
                .chunks(ARGUMENTS_PIECE)
                .map(|piece| piece.iter().collect::<String>());
            let pieces = std::iter::once(String::new()).chain(pieces);
            let deltas =
                pieces.map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }));
            Some((begin, deltas.collect()))
        }
        Part::Hold(_) | Part::Ping | Part::Raw { .. } => None,
    }
}

fn stop(turn: &ModelTurn) -> Value {
    let reason = match &turn.stop {
        Some(StopWord::MaxTokens) => "max_tokens",
        Some(StopWord::Refusal(_) | StopWord::ContentFilter) => "refusal",
        Some(StopWord::Other(word)) => word,
        None if turn.has_calls() => "tool_use",
        None => "end_turn",
    };
    let mut stop = json!({ "stop_reason": reason, "stop_sequence": null });
    if let Some(StopWord::Refusal(why)) = &turn.stop {
        stop["stop_details"] = json!({ "type": "refusal", "explanation": why });
    }
    stop
}
