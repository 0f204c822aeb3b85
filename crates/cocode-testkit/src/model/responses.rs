//! The events of the Responses interface, in the order and with the members that are documented.

use serde_json::{Value, json};

use super::script::{Ending, ModelTurn, Part, StopWord};
use super::serve::{Naming, Step};

/// How many characters of arguments are in one event.
const ARGUMENTS_PIECE: usize = 8;

pub(super) fn steps(turn: &ModelTurn, naming: Naming<'_>) -> Vec<Step> {
    let mut stream = Stream {
        naming,
        steps: Vec::new(),
        output: Vec::new(),
        sequence: 0,
    };
    for name in ["response.created", "response.in_progress"] {
        let response = stream.response("in_progress", turn);
        stream.event(name, json!({ "response": response }));
    }
    for part in &turn.parts {
        match part {
            Part::Text(pieces) => stream.message(pieces, "output_text", "text"),
            Part::Thinking { text, signature } => stream.reasoning(text, signature),
            Part::Redacted(data) => stream.reasoning("", data),
            Part::Call {
                id,
                name,
                arguments,
            } => stream.call(id, name, arguments),
            Part::Hold(gate) => stream.steps.push(Step::Hold(*gate)),
            Part::Raw { name, data } => stream.steps.push(Step::Event {
                name: name.clone(),
                data: data.clone(),
            }),
            // This interface has no signs of life.
            Part::Ping => {}
        }
    }
    if let Some(StopWord::Refusal(why)) = &turn.stop {
        stream.message(std::slice::from_ref(why), "refusal", "refusal");
    }
    stream.end(turn)
}

/// Events in the making.
struct Stream<'a> {
    naming: Naming<'a>,
    steps: Vec<Step>,
    output: Vec<Value>,
    sequence: u64,
}

impl Stream<'_> {
    fn event(&mut self, name: &str, mut data: Value) {
        data["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        self.steps.push(Step::typed(data, name));
    }

    fn response(&self, status: &str, turn: &ModelTurn) -> Value {
        let mut response = json!({
            "id": format!("resp_{}", self.naming.number),
            "object": "response",
            "created_at": 1_700_000_000,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "model": self.naming.model,
            "output": self.output,
            "parallel_tool_calls": true,
            "store": false,
            "usage": null,
        });
        let usage = turn.usage;
        if status != "in_progress" && !usage.unsaid {
            let input = usage.input + usage.cache_read + usage.cache_write;
            response["usage"] = json!({
                "input_tokens": input,
                "input_tokens_details": { "cached_tokens": usage.cache_read },
                "output_tokens": usage.output,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": input + usage.output,
            });
        }
        response
    }

    fn id(&self, kind: &str) -> String {
        format!("{kind}_{}_{}", self.naming.number, self.output.len())
    }

    fn add(&mut self, item: &Value) {
        let index = self.output.len();
        self.event(
            "response.output_item.added",
            json!({ "output_index": index, "item": item }),
        );
    }

    fn done(&mut self, item: Value) {
        let index = self.output.len();
        self.event(
            "response.output_item.done",
            json!({ "output_index": index, "item": item }),
        );
        self.output.push(item);
    }

    /// A message of one part: text or a refusal.
    fn message(&mut self, pieces: &[String], kind: &str, member: &str) {
        let (id, index) = (self.id("msg"), self.output.len());
        let item = |content: Value, status: &str| {
            json!({
                "id": id,
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": content,
            })
        };
        let part = |said: &str| {
            let mut part = json!({ "type": kind });
            part[member] = json!(said);
            if kind == "output_text" {
                part["annotations"] = json!([]);
            }
            part
        };
        let place = json!({ "item_id": id, "output_index": index, "content_index": 0 });
        let with = |name: &str, value: Value| {
            let mut data = place.clone();
            data[name] = value;
            data
        };
        self.add(&item(json!([]), "in_progress"));
        self.event("response.content_part.added", with("part", part("")));
        for piece in pieces {
            self.event(
                &format!("response.{kind}.delta"),
                with("delta", json!(piece)),
            );
        }
        let whole = pieces.concat();
        self.event(&format!("response.{kind}.done"), with(member, json!(whole)));
        self.event("response.content_part.done", with("part", part(&whole)));
        self.done(item(json!([part(&whole)]), "completed"));
    }

    fn reasoning(&mut self, text: &str, encrypted: &str) {
        let (id, index) = (self.id("rs"), self.output.len());
        let summary = json!({ "type": "summary_text", "text": text });
        let item = |summary: Value| {
            json!({
                "id": id,
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": encrypted,
            })
        };
        self.add(&item(json!([])));
        if text.is_empty() {
            return self.done(item(json!([])));
        }
        let place = json!({ "item_id": id, "output_index": index, "summary_index": 0 });
        let with = |name: &str, value: Value| {
            let mut data = place.clone();
            data[name] = value;
            data
        };
        let empty = json!({ "type": "summary_text", "text": "" });
        self.event("response.reasoning_summary_part.added", with("part", empty));
        self.event(
            "response.reasoning_summary_text.delta",
            with("delta", json!(text)),
        );
        self.event(
            "response.reasoning_summary_text.done",
            with("text", json!(text)),
        );
        self.event(
            "response.reasoning_summary_part.done",
            with("part", summary.clone()),
        );
        self.done(item(json!([summary])));
    }

    fn call(&mut self, call_id: &str, name: &str, arguments: &str) {
        let (id, index) = (self.id("fc"), self.output.len());
        let item = |arguments: &str, status: &str| {
            json!({
                "id": id,
                "type": "function_call",
                "status": status,
                "arguments": arguments,
                "call_id": call_id,
                "name": name,
            })
        };
        self.add(&item("", "in_progress"));
        let letters: Vec<char> = arguments.chars().collect();
        for piece in letters.chunks(ARGUMENTS_PIECE) {
            let piece: String = piece.iter().collect();
            let delta = json!({ "item_id": id, "output_index": index, "delta": piece });
            self.event("response.function_call_arguments.delta", delta);
        }
        let done = json!({ "item_id": id, "output_index": index, "arguments": arguments });
        self.event("response.function_call_arguments.done", done);
        self.done(item(arguments, "completed"));
    }

    fn end(mut self, turn: &ModelTurn) -> Vec<Step> {
        match &turn.ending {
            Ending::Error { kind, message } => {
                let mut response = self.response("failed", turn);
                response["error"] = json!({ "code": kind, "message": message });
                self.event("response.failed", json!({ "response": response }));
            }
            // What is cut off or missing is the end of the last item.
            Ending::Early | Ending::Stall => {
                let last = self.steps.last();
                if matches!(last, Some(Step::Event { name, .. }) if name == "response.output_item.done")
                {
                    self.steps.pop();
                }
            }
            Ending::CutOff => {}
            Ending::Proper => {
                let reason = match &turn.stop {
                    Some(StopWord::MaxTokens) => Some("max_output_tokens"),
                    Some(StopWord::ContentFilter) => Some("content_filter"),
                    Some(StopWord::Other(word)) => Some(word.as_str()),
                    Some(StopWord::Refusal(_)) | None => None,
                };
                let status = if reason.is_some() {
                    "incomplete"
                } else {
                    "completed"
                };
                let mut response = self.response(status, turn);
                if let Some(reason) = reason {
                    response["incomplete_details"] = json!({ "reason": reason });
                }
                self.event(
                    &format!("response.{status}"),
                    json!({ "response": response }),
                );
            }
        }
        self.steps
    }
}
