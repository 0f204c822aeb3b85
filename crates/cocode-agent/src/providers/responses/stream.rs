//! A reply of the Responses interface, event by event.

use std::collections::BTreeMap;

use cocode_wire::StreamEvent;
use serde_json::Value;

use super::super::complaint::Complaint;
use super::super::exchange::{Fault, OnDelta, Progress, Reader, json, number, text};
use super::super::history::is_cut_off;
use crate::content::{Arguments, Block, ToolCall};
use crate::model::Usage;
use crate::provider::{Delta, Reply, Stop};

/// The most items of one reply.
const MAX_ITEMS: usize = 10_000;

/// A reply while it comes.
pub(super) struct Incoming {
    provider: String,
    /// By their place in the reply.
    items: BTreeMap<u64, Item>,
    /// The response as the last event has it.
    end: Option<Value>,
}

enum Item {
    /// What is known of text that goes on.
    Text(String),
    /// An item that is whole.
    Done(Value),
}

impl Incoming {
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            items: BTreeMap::new(),
            end: None,
        }
    }

    fn put(&mut self, event: &Value, item: Item) -> Result<(), Fault> {
        if self.items.len() == MAX_ITEMS {
            return Err(Fault::NotUnderstood(format!(
                "it has more than {MAX_ITEMS} items"
            )));
        }
        self.items.insert(number(event, "/output_index"), item);
        Ok(())
    }

    fn said_more(&mut self, event: &Value, on_delta: OnDelta<'_>) -> Result<(), Fault> {
        let more = text(event, "/delta");
        on_delta(Delta::Text(more.to_owned()));
        match self.items.get_mut(&number(event, "/output_index")) {
            Some(Item::Text(said)) => said.push_str(more),
            Some(Item::Done(_)) => {}
            None => self.put(event, Item::Text(more.to_owned()))?,
        }
        Ok(())
    }

    /// All items that are whole, in their order: as they came, or as the last event has them.
    fn whole_items(&self) -> Vec<&Value> {
        let came: Vec<&Value> = self
            .items
            .values()
            .filter_map(|item| match item {
                Item::Done(item) => Some(item),
                Item::Text(_) => None,
            })
            .collect();
        let listed = self
            .end
            .as_ref()
            .and_then(|end| end.get("output")?.as_array());
        match listed {
            Some(listed) if came.is_empty() => listed.iter().collect(),
            _ => came,
        }
    }
}

impl Reader for Incoming {
    fn take(&mut self, event: &StreamEvent, on_delta: OnDelta<'_>) -> Result<Progress, Fault> {
        if event.data == "[DONE]" {
            return Ok(Progress::More);
        }
        let event = json(event)?;
        match text(&event, "/type") {
            "response.output_item.added" if text(&event, "/item/type") == "function_call" => {
                let name = text(&event, "/item/name").to_owned();
                on_delta(Delta::ToolCall { name });
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.said_more(&event, on_delta)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                on_delta(Delta::Reasoning(text(&event, "/delta").to_owned()));
            }
            // Paragraphs of a summary come one by one.
            "response.reasoning_summary_part.added" if number(&event, "/summary_index") > 0 => {
                on_delta(Delta::Reasoning("\n\n".to_owned()));
            }
            "response.output_item.done" => {
                let item = event.get("item").cloned().unwrap_or_default();
                self.put(&event, Item::Done(item))?;
            }
            "response.completed" | "response.incomplete" => {
                self.end = event.get("response").cloned();
                return Ok(Progress::End);
            }
            "response.failed" => {
                let error = event.pointer("/response/error").unwrap_or(&Value::Null);
                return Err(Fault::Complaint(Complaint::of_event(error)));
            }
            "error" => return Err(Fault::Complaint(Complaint::of_event(&event))),
            // What is said again when it is whole, and what will be invented.
            _ => {}
        }
        Ok(Progress::More)
    }

    fn finish(self) -> Result<Reply, Fault> {
        let items = self.whole_items();
        let refusal = items.iter().find_map(|item| refusal(item));
        let end = self.end.as_ref().unwrap_or(&Value::Null);
        let mut content: Vec<Block> = items
            .iter()
            .flat_map(|item| blocks(item, &self.provider))
            .collect();
        let has_calls = content
            .iter()
            .any(|block| matches!(block, Block::ToolCall(_)));
        let stop = match (
            text(end, "/status"),
            text(end, "/incomplete_details/reason"),
        ) {
            ("incomplete", "max_output_tokens") => Stop::MaxTokens,
            ("incomplete", "content_filter") => Stop::Refused(refusal),
            ("incomplete", other) => Stop::Other(other.to_owned()),
            _ if refusal.is_some() => Stop::Refused(refusal),
            _ if has_calls => Stop::ToolCalls,
            _ => Stop::Done,
        };
        let cut = |item: &&Value| {
            text(item, "/type") == "function_call" && is_cut_off(text(item, "/arguments"))
        };
        if stop == Stop::MaxTokens && items.last().is_some_and(cut) {
            content.pop();
        }
        let model = text(end, "/model");
        Ok(Reply {
            content,
            stop,
            usage: usage(end),
            model: (!model.is_empty()).then(|| model.to_owned()),
        })
    }

    fn said(self) -> Vec<Block> {
        let items = self.items.into_values();
        let said = items.flat_map(|item| match item {
            Item::Text(text) => vec![Block::Text { text }],
            Item::Done(item) => blocks(&item, &self.provider),
        });
        said.collect()
    }
}

/// What is read from a cache is part of what is read, in these numbers.
fn usage(response: &Value) -> Usage {
    let cached = number(response, "/usage/input_tokens_details/cached_tokens");
    Usage {
        input: number(response, "/usage/input_tokens").saturating_sub(cached),
        output: number(response, "/usage/output_tokens"),
        cache_read: cached,
        cache_write: 0,
    }
}

fn refusal(item: &Value) -> Option<String> {
    let parts = item.get("content")?.as_array()?;
    let words = parts.iter().find_map(|part| part.get("refusal")?.as_str());
    words.map(str::to_owned)
}

fn blocks(item: &Value, provider: &str) -> Vec<Block> {
    let parts = |name: &str| {
        item.get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    match text(item, "/type") {
        "message" => {
            let texts = parts("content").filter(|part| text(part, "/type") == "output_text");
            let texts = texts
                .map(|part| text(part, "/text"))
                .filter(|text| !text.is_empty());
            texts.map(Block::text).collect()
        }
        "function_call" => {
            vec![Block::ToolCall(ToolCall {
                id: text(item, "/call_id").to_owned(),
                name: text(item, "/name").to_owned(),
                arguments: Arguments::read(text(item, "/arguments")),
            })]
        }
        "reasoning" => {
            let texts: Vec<&str> = parts("summary")
                .chain(parts("content"))
                .map(|part| text(part, "/text"))
                .collect();
            // Without the encrypted part there is nothing to give back.
            let has_rest = !text(item, "/encrypted_content").is_empty();
            vec![Block::Reasoning {
                text: texts.join("\n\n"),
                provider: provider.to_owned(),
                opaque: has_rest.then(|| without_nothing(item)),
            }]
        }
        _ => Vec::new(),
    }
}

/// The item without members that hold nothing: what is given out with `null` is not taken back so.
/// A state of it is not taken back either.
fn without_nothing(item: &Value) -> Value {
    let members = item.as_object().into_iter().flatten();
    let kept = members.filter(|(name, value)| !value.is_null() && *name != "status");
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
