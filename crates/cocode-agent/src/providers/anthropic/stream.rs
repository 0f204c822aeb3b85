//! A reply of the Messages interface, event by event.

use cocode_wire::StreamEvent;
use serde_json::{Value, json};

use super::super::complaint::Complaint;
use super::super::exchange::{Fault, OnDelta, Progress, Reader, json as parse, number, text};
use super::super::history::is_cut_off;
use crate::content::{Arguments, Block, ToolCall};
use crate::model::Usage;
use crate::provider::{Delta, Reply, Stop};

/// The most blocks of one reply.
const MAX_BLOCKS: usize = 10_000;

/// A reply while it comes.
pub(super) struct Incoming {
    provider: String,
    blocks: Vec<Part>,
    stop: Option<Value>,
    usage: Usage,
    model: Option<String>,
}

/// A block of a reply while it comes.
struct Part {
    index: u64,
    kind: Kind,
    ended: bool,
}

enum Kind {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted {
        data: Value,
    },
    Call {
        id: String,
        name: String,
        written: String,
    },
    /// Something that only the provider itself has use for.
    Other,
}

impl Incoming {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            blocks: Vec::new(),
            stop: None,
            usage: Usage::default(),
            model: None,
        }
    }

    fn start(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Fault> {
        if self.blocks.len() == MAX_BLOCKS {
            return Err(Fault::NotUnderstood(format!(
                "it has more than {MAX_BLOCKS} blocks"
            )));
        }
        let own = |pointer: &str| text(event, pointer).to_owned();
        let kind = match text(event, "/content_block/type") {
            "text" => Kind::Text(own("/content_block/text")),
            "thinking" => Kind::Thinking {
                text: own("/content_block/thinking"),
                signature: own("/content_block/signature"),
            },
            "redacted_thinking" => {
                let data = event.pointer("/content_block/data");
                Kind::Redacted {
                    data: data.cloned().unwrap_or_default(),
                }
            }
            "tool_use" => {
                let name = own("/content_block/name");
                on_delta(Delta::ToolCall { name: name.clone() });
                // The input comes in pieces; some that copy the interface send it here, whole.
                let input = event.pointer("/content_block/input");
                let input =
                    input.filter(|input| input.as_object().is_some_and(|own| !own.is_empty()));
                Kind::Call {
                    id: own("/content_block/id"),
                    name,
                    written: input.map(Value::to_string).unwrap_or_default(),
                }
            }
            _ => Kind::Other,
        };
        match &kind {
            Kind::Text(text) if !text.is_empty() => on_delta(Delta::Text(text.clone())),
            Kind::Thinking { text, .. } if !text.is_empty() => {
                on_delta(Delta::Reasoning(text.clone()));
            }
            _ => {}
        }
        let index = number(event, "/index");
        self.blocks.push(Part {
            index,
            kind,
            ended: false,
        });
        Ok(())
    }

    fn part(&mut self, event: &Value) -> Result<&mut Part, Fault> {
        let index = number(event, "/index");
        let part = self
            .blocks
            .iter_mut()
            .rev()
            .find(|part| part.index == index);
        part.ok_or_else(|| Fault::NotUnderstood(format!("block {index} goes on before it begins")))
    }

    fn delta(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Fault> {
        let part = self.part(event)?;
        match (text(event, "/delta/type"), &mut part.kind) {
            ("text_delta", Kind::Text(said)) => {
                let more = text(event, "/delta/text");
                said.push_str(more);
                on_delta(Delta::Text(more.to_owned()));
            }
            ("thinking_delta", Kind::Thinking { text: thought, .. }) => {
                let more = text(event, "/delta/thinking");
                thought.push_str(more);
                on_delta(Delta::Reasoning(more.to_owned()));
            }
            ("signature_delta", Kind::Thinking { signature, .. }) => {
                signature.push_str(text(event, "/delta/signature"));
            }
            ("input_json_delta", Kind::Call { written, .. }) => {
                written.push_str(text(event, "/delta/partial_json"));
            }
            // Citations, and what will be invented.
            _ => {}
        }
        Ok(())
    }

    /// Numbers are totals; a later one counts in place of an earlier.
    fn count(&mut self, usage: Option<&Value>) {
        let Some(usage) = usage else { return };
        for (name, total) in [
            ("input_tokens", &mut self.usage.input),
            ("output_tokens", &mut self.usage.output),
            ("cache_read_input_tokens", &mut self.usage.cache_read),
            ("cache_creation_input_tokens", &mut self.usage.cache_write),
        ] {
            if let Some(tokens) = usage.get(name).and_then(Value::as_u64) {
                *total = tokens;
            }
        }
    }

    fn stop(&self) -> Stop {
        let stop = self.stop.as_ref();
        let reason = stop
            .map(|stop| text(stop, "/stop_reason"))
            .unwrap_or_default();
        match reason {
            "end_turn" | "stop_sequence" => Stop::Done,
            "tool_use" => Stop::ToolCalls,
            "max_tokens" | "model_context_window_exceeded" => Stop::MaxTokens,
            "refusal" => {
                let why = stop.map(|stop| text(stop, "/stop_details/explanation"));
                Stop::Refused(why.filter(|why| !why.is_empty()).map(str::to_owned))
            }
            other => Stop::Other(other.to_owned()),
        }
    }
}

impl Reader for Incoming {
    fn take(&mut self, event: &StreamEvent, on_delta: OnDelta<'_>) -> Result<Progress, Fault> {
        let event = parse(event)?;
        match text(&event, "/type") {
            "message_start" => {
                self.count(event.pointer("/message/usage"));
                let model = text(&event, "/message/model");
                self.model = (!model.is_empty()).then(|| model.to_owned());
            }
            "content_block_start" => self.start(&event, on_delta)?,
            "content_block_delta" => self.delta(&event, on_delta)?,
            "content_block_stop" => self.part(&event)?.ended = true,
            "message_delta" => {
                self.stop = event.get("delta").cloned();
                self.count(event.get("usage"));
            }
            "message_stop" => return Ok(Progress::End),
            "error" => return Err(Fault::Complaint(Complaint::of_event(&event))),
            // Signs of life, and what will be invented.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn finish(self) -> Result<Reply, Fault> {
        let stop = self.stop();
        if stop == Stop::Other(String::new()) {
            return Err(Fault::NotUnderstood("it does not say why it ends".into()));
        }
        let Self {
            provider,
            mut blocks,
            usage,
            model,
            ..
        } = self;
        let cut =
            |part: &Part| matches!(&part.kind, Kind::Call { written, .. } if is_cut_off(written));
        if stop == Stop::MaxTokens && blocks.last().is_some_and(cut) {
            blocks.pop();
        }
        let content = blocks
            .into_iter()
            .filter_map(|part| block(part, &provider))
            .collect();
        Ok(Reply {
            content,
            stop,
            usage,
            model,
        })
    }

    fn said(self) -> Vec<Block> {
        let Self {
            provider, blocks, ..
        } = self;
        // A call or a thought that has not ended cannot be given back.
        let whole = |part: &Part| part.ended || matches!(part.kind, Kind::Text(_));
        let whole = blocks.into_iter().filter(whole);
        whole.filter_map(|part| block(part, &provider)).collect()
    }
}

fn block(part: Part, provider: &str) -> Option<Block> {
    let provider = provider.to_owned();
    match part.kind {
        Kind::Text(text) if text.is_empty() => None,
        Kind::Text(text) => Some(Block::Text { text }),
        Kind::Thinking { text, signature } => {
            let opaque = json!({ "type": "thinking", "signature": signature });
            let opaque = (!signature.is_empty()).then_some(opaque);
            Some(Block::Reasoning {
                text,
                provider,
                opaque,
            })
        }
        Kind::Redacted { data } => {
            let opaque = Some(json!({ "type": "redacted_thinking", "data": data }));
            Some(Block::Reasoning {
                text: String::new(),
                provider,
                opaque,
            })
        }
        Kind::Call { id, name, written } => {
            let arguments = Arguments::read(&written);
            Some(Block::ToolCall(ToolCall {
                id,
                name,
                arguments,
            }))
        }
        Kind::Other => None,
    }
}
