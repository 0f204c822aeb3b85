//! What happens in a turn as lines of JSON, for programs. The format is in docs/agent.md.

use std::sync::{Arc, Mutex, PoisonError};

use cocode_agent::{Block, Conversation, Ending, Listener, Notice, TurnEnd, Usage};
use cocode_client::Manager;
use serde_json::{Value, json};

use crate::error::CliError;
use crate::printer::Printer;

pub(super) struct Events {
    printer: Arc<Printer>,
    /// The first event, until it is told: what does not even begin is no conversation.
    first: Mutex<Option<Value>>,
    /// Knows which server a tool belongs to.
    manager: Manager,
}

impl Events {
    /// Tells which conversation it is as soon as something happens in it.
    pub(super) fn new(
        printer: Arc<Printer>,
        conversation: &Conversation,
        manager: &Manager,
    ) -> Self {
        let settings = conversation.settings();
        let first = json!({
            "type": "conversation",
            "session_id": conversation.id().as_str(),
            "cwd": settings.cwd,
            "approval_policy": settings.approval.as_str(),
            "sandbox": settings.sandbox.as_str(),
        });
        let first = Mutex::new(Some(first));
        Self {
            printer,
            first,
            manager: manager.clone(),
        }
    }

    fn tell(&self, event: &Value) {
        // If nobody reads any more, the end of the turn says so.
        let _nobody_reads = self.printer.out(format!("{event}\n"));
    }
}

impl Listener for Events {
    fn hear(&self, notice: &Notice) {
        let first = {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.take()
        };
        if let Some(first) = first {
            self.tell(&first);
        }
        if let Some(event) = self.event(notice) {
            self.tell(&event);
        }
    }
}

impl Events {
    fn event(&self, notice: &Notice) -> Option<Value> {
        Some(match notice {
            Notice::Asking { step, model } => {
                json!({"type": "asking", "step": step, "model": model})
            }
            Notice::Text(text) => json!({"type": "text", "text": text}),
            Notice::Reasoning(text) => json!({"type": "reasoning", "text": text}),
            Notice::Restarting { why, after } => {
                json!({"type": "restarting", "why": why, "after_ms": millis(*after)})
            }
            Notice::Replied {
                content,
                usage: used,
                cost,
                context: (tokens, window),
            } => json!({
                "type": "replied",
                "content": blocks(content),
                "usage": usage(used),
                "cost_usd": cost,
                "context": {"tokens": tokens, "window": window},
            }),
            Notice::CallBegun(call) => json!({
                "type": "call_begun",
                "id": call.id,
                "tool": call.name,
                "server": self.server_of(&call.name),
                "arguments": call.arguments.to_object(),
            }),
            Notice::CallProgressed {
                id,
                done,
                total,
                message,
            } => json!({
                "type": "call_progressed", "id": id, "done": done, "total": total, "message": message,
            }),
            Notice::CallEnded {
                id,
                tool,
                content,
                is_error,
                took,
            } => json!({
                "type": "call_ended",
                "id": id,
                "tool": tool,
                "server": self.server_of(tool),
                "content": blocks(content),
                "is_error": is_error,
                "took_ms": millis(*took),
            }),
            Notice::Compacting => json!({"type": "compacting"}),
            Notice::Compacted { before, after } => {
                json!({"type": "compacted", "tokens_before": before, "tokens_after": after})
            }
            Notice::Warning(what) => json!({"type": "warning", "message": what}),
            // The end is told with all that belongs to it.
            _ => return None,
        })
    }

    /// The server of a tool; null for the tools of the agent itself.
    fn server_of(&self, tool: &str) -> Option<String> {
        let catalog = self.manager.catalog();
        Some(catalog.resolve(tool)?.server.to_string())
    }
}

/// The last event.
pub(super) fn ended(printer: &Printer, end: &TurnEnd) -> Result<(), CliError> {
    let TurnEnd {
        ending,
        text,
        steps,
        usage: used,
        cost,
    } = end;
    let (how, why) = match ending {
        Ending::Done => ("done", None),
        Ending::Refused(why) => ("refused", why.clone()),
        Ending::Interrupted => ("interrupted", None),
        Ending::TooManySteps(_) => ("too_many_steps", None),
        Ending::Looping => ("looping", None),
        Ending::Failed(why) => ("failed", Some(why.clone())),
    };
    let event = json!({
        "type": "ended",
        "ending": how,
        "why": why,
        "response": text,
        "steps": steps,
        "usage": usage(used),
        "cost_usd": cost,
    });
    printer.out(format!("{event}\n"))
}

fn usage(usage: &Usage) -> Value {
    let Usage {
        input,
        output,
        cache_read,
        cache_write,
    } = usage;
    json!({
        "input": input, "output": output, "cache_read": cache_read, "cache_write": cache_write,
    })
}

/// Blocks as they are stored, without what only the provider can read.
fn blocks(blocks: &[Block]) -> Value {
    let shown = blocks.iter().map(|block| match block {
        Block::Reasoning { text, .. } => json!({"type": "reasoning", "text": text}),
        other => serde_json::to_value(other).unwrap_or(Value::Null),
    });
    shown.collect()
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
