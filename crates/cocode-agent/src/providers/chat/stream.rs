//! A chat completion, chunk by chunk, or whole from servers that do not stream.

use cocode_wire::StreamEvent;
use serde_json::{Value, json};

use super::super::complaint::Complaint;
use super::super::exchange::{Fault, OnDelta, Progress, Reader, json as parse, number, text};
use super::super::history::is_cut_off;
use super::calls::{Calls, TooManyCalls};
use crate::content::Block;
use crate::model::Usage;
use crate::provider::{Delta, Reply, Stop};

/// The members that servers tell thoughts in.
const THOUGHT_MEMBERS: [&str; 2] = ["reasoning_content", "reasoning"];

/// A reply while it comes.
pub(super) struct Incoming {
    provider: String,
    text: String,
    thoughts: String,
    thought_member: &'static str,
    refusal: String,
    calls: Calls,
    finish: Option<String>,
    usage: Usage,
    model: Option<String>,
}

impl Incoming {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            text: String::new(),
            thoughts: String::new(),
            thought_member: "",
            refusal: String::new(),
            calls: Calls::default(),
            finish: None,
            usage: Usage::default(),
            model: None,
        }
    }

    /// Takes a chunk, or a whole completion, whose `said` is in another member.
    fn chunk(&mut self, chunk: &Value, said: &str, on_delta: OnDelta<'_>) -> Result<(), Fault> {
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Err(Fault::Complaint(Complaint::of_event(chunk)));
        }
        let model = text(chunk, "/model");
        if self.model.is_none() && !model.is_empty() {
            self.model = Some(model.to_owned());
        }
        if chunk.get("usage").is_some_and(Value::is_object) {
            self.usage = usage(chunk);
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            return Ok(());
        };
        if let Some(said) = choice.get(said) {
            self.said_more(said, on_delta)?;
        }
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(finish.to_owned());
        }
        Ok(())
    }

    fn said_more(&mut self, said: &Value, on_delta: OnDelta<'_>) -> Result<(), Fault> {
        for member in THOUGHT_MEMBERS {
            let more = text(said, &format!("/{member}"));
            // Some tell the same in both.
            if !more.is_empty() && ["", member].contains(&self.thought_member) {
                self.thought_member = member;
                self.thoughts.push_str(more);
                on_delta(Delta::Reasoning(more.to_owned()));
            }
        }
        let more = content_text(said.get("content").unwrap_or(&Value::Null));
        if !more.is_empty() {
            self.text.push_str(&more);
            on_delta(Delta::Text(more));
        }
        let more = text(said, "/refusal");
        if !more.is_empty() {
            self.refusal.push_str(more);
            on_delta(Delta::Text(more.to_owned()));
        }
        let pieces = said.get("tool_calls").and_then(Value::as_array);
        for piece in pieces.into_iter().flatten() {
            let begun = self.calls.take(piece);
            let begun = begun.map_err(|TooManyCalls| Fault::NotUnderstood(TooManyCalls::text()))?;
            if let Some(name) = begun {
                on_delta(Delta::ToolCall { name });
            }
        }
        Ok(())
    }

    fn stop(&self) -> Stop {
        let refusal = (!self.refusal.is_empty()).then(|| self.refusal.clone());
        match self.finish.as_deref().unwrap_or_default() {
            "length" | "model_length" | "max_tokens" => Stop::MaxTokens,
            "content_filter" => Stop::Refused(refusal),
            _ if refusal.is_some() => Stop::Refused(refusal),
            // Whatever a server says, calls are there to be made.
            _ if !self.calls.is_empty() => Stop::ToolCalls,
            "stop" | "end_turn" | "eos" | "tool_calls" | "function_call" | "" => Stop::Done,
            other => Stop::Other(other.to_owned()),
        }
    }

    fn into_blocks(self) -> Vec<Block> {
        let mut blocks = Vec::new();
        if !self.thoughts.is_empty() {
            blocks.push(Block::Reasoning {
                text: self.thoughts,
                provider: self.provider,
                opaque: Some(json!({ "member": self.thought_member })),
            });
        }
        if !self.text.is_empty() {
            blocks.push(Block::Text { text: self.text });
        }
        blocks.extend(self.calls.into_blocks());
        blocks
    }
}

impl Reader for Incoming {
    fn take(&mut self, event: &StreamEvent, on_delta: OnDelta<'_>) -> Result<Progress, Fault> {
        if event.data.trim_ascii() == b"[DONE]" {
            // Some say this even after an error that they could not say otherwise.
            let said_something = !self.text.is_empty() || !self.calls.is_empty();
            let is_end = self.is_whole() || said_something;
            return Ok(if is_end {
                Progress::End
            } else {
                Progress::More
            });
        }
        if event.name == "error" {
            return Err(Fault::Complaint(Complaint::of_event(&parse(event)?)));
        }
        self.chunk(&parse(event)?, "delta", on_delta)?;
        Ok(Progress::More)
    }

    fn take_whole(&mut self, reply: &Value, on_delta: OnDelta<'_>) -> Result<(), Fault> {
        if reply.pointer("/choices/0/message").is_none() {
            return Err(Fault::NotUnderstood("it is no chat completion".into()));
        }
        self.chunk(reply, "message", on_delta)
    }

    fn is_whole(&self) -> bool {
        self.finish.is_some()
    }

    fn finish(mut self) -> Result<Reply, Fault> {
        let stop = self.stop();
        if stop == Stop::MaxTokens {
            self.calls.drop_cut_off(is_cut_off);
        }
        let (usage, model) = (self.usage, self.model.take());
        let content = self.into_blocks();
        Ok(Reply {
            content,
            stop,
            usage,
            model,
        })
    }

    fn said(mut self) -> Vec<Block> {
        // Nothing tells whether the last call is whole, not even that it reads as if it were.
        self.calls.drop_cut_off(|_written| true);
        self.into_blocks()
    }
}

/// What is read from a cache is part of what is read, in these numbers.
fn usage(chunk: &Value) -> Usage {
    let cached = number(chunk, "/usage/prompt_tokens_details/cached_tokens");
    Usage {
        input: number(chunk, "/usage/prompt_tokens").saturating_sub(cached),
        output: number(chunk, "/usage/completion_tokens"),
        cache_read: cached,
        cache_write: 0,
    }
}

/// Content is text, or a list of parts of which those of text count.
fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text(part, "/text")).collect(),
        _ => String::new(),
    }
}
