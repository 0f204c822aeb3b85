//! A conversation as a document for people.

use std::collections::BTreeMap;

use crate::content::{Block, text_of};
use crate::describe::describe;
use crate::record::{Record, StoredAnswer};
use crate::store::Stored;
use crate::utc::utc;

/// So many characters of the result of a call are shown.
const MAX_RESULT_CHARS: usize = 4_000;
/// Bytes of the document. If there are more, what was first is left out.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A conversation as Markdown: what was said, what was done, and what came of it.
pub fn render_markdown(stored: &Stored) -> String {
    let head = head(stored);
    let mut writer = Writer::default();
    for (_, record) in &stored.records {
        if let Some(piece) = writer.piece(record) {
            writer.pieces.push(piece);
        }
    }
    if let Some(first) = stored.unread.first() {
        writer.pieces.push(format!(
            "*({} records are missing here, the first with the number {}: a newer version of cocode \
             wrote them)*",
            stored.unread.len(),
            first.number
        ));
    }
    if let Some(draft) = &stored.draft {
        let said = said(draft);
        writer
            .pieces
            .push(format!("## Agent\n\n{said}\n\n*(has not ended)*"));
    }
    let mut left = MAX_BYTES.saturating_sub(head.len());
    let mut kept: Vec<&str> = Vec::new();
    for piece in writer.pieces.iter().rev() {
        let Some(rest) = left.checked_sub(piece.len() + 2) else {
            kept.push("*(what was before is left out)*");
            break;
        };
        left = rest;
        kept.push(piece);
    }
    kept.reverse();
    format!("{head}\n\n{}\n", kept.join("\n\n"))
}

fn head(stored: &Stored) -> String {
    let summary = &stored.summary;
    let title = match summary.title.trim() {
        "" => "Conversation",
        title => title,
    };
    let mut text = format!("# {title}\n\n- Conversation: {}\n", summary.id);
    let mut line = |name: &str, value: String| {
        text.extend(["- ", name, ": ", &value, "\n"]);
    };
    line("Began", utc(summary.began));
    line("Last used", utc(summary.used));
    line("Directory", code_span(&summary.cwd.display().to_string()));
    line("Turns", summary.turns.to_string());
    let usage = summary.usage;
    let tokens = format!("{} read, {} written", usage.read(), usage.output);
    line("Tokens", tokens);
    if summary.cost > 0.0 {
        line("Cost", format!("${:.4}", summary.cost));
    }
    if summary.is_closed {
        line("State", "finished".to_owned());
    }
    text.truncate(text.trim_end().len());
    text
}

#[derive(Default)]
struct Writer {
    pieces: Vec<String>,
    /// The tools of the calls, by the model's names of the calls.
    tools: BTreeMap<String, String>,
}

impl Writer {
    fn piece(&mut self, record: &Record) -> Option<String> {
        Some(match record {
            Record::Asked { content } => format!("## Person\n\n{}", said(content)),
            Record::Replied { content, model, .. } => {
                let said = said(content);
                if said.is_empty() {
                    return None;
                }
                match model.as_str() {
                    "" => format!("## Agent\n\n{said}"),
                    model => format!("## Agent ({model})\n\n{said}"),
                }
            }
            Record::BrokeOff { content } => {
                format!("## Agent\n\n{}\n\n*(broke off)*", said(content))
            }
            Record::CallBegun { call, .. } => {
                self.tools.insert(call.id.clone(), call.name.clone());
                format!("**Calls** {}", code_span(&describe(call)))
            }
            Record::ApprovalAsked { why, .. } => format!("*A person was asked, because {why}.*"),
            Record::ApprovalAnswered { answer, .. } => {
                format!("*{}*", answered(*answer))
            }
            Record::CallEnded {
                id,
                content,
                is_error,
                milliseconds,
            } => self.ended(id, content, *is_error, *milliseconds),
            Record::Compacted { summary, .. } => {
                format!("## Summary of what was before\n\n{summary}")
            }
            Record::Nudged { text } => format!("*The agent was told:* {text}"),
            Record::Changed { .. } => "*The settings are others from here on.*".to_owned(),
            Record::Ended { how } => format!("*The turn is not done: {}.*", how.problem()?),
            Record::Closed => "*The conversation is finished.*".to_owned(),
        })
    }

    fn ended(&self, id: &str, content: &[Block], is_error: bool, milliseconds: u64) -> String {
        let tool = self.tools.get(id).map_or("tool", String::as_str);
        let how = if is_error { "failed" } else { "done" };
        let seconds = std::time::Duration::from_millis(milliseconds).as_secs_f64();
        let head = format!("{} {how} after {seconds:.1} s", code_span(tool));
        let text = said(content);
        let mut shown: String = text.chars().take(MAX_RESULT_CHARS).collect();
        if shown.len() < text.len() {
            shown.push_str("\n[…]");
        }
        if shown.trim().is_empty() {
            return head;
        }
        let fence = "`".repeat(longest_ticks(&shown).max(2) + 1);
        format!("{head}:\n\n{fence}\n{}\n{fence}", shown.trim_end())
    }
}

fn answered(answer: StoredAnswer) -> &'static str {
    match answer {
        StoredAnswer::Once => "They said yes.",
        StoredAnswer::Always => "They said yes, from now on.",
        StoredAnswer::Refused => "They said no.",
        StoredAnswer::Stopped => "They said no, and stopped.",
        StoredAnswer::Unasked => "Nobody could be asked.",
    }
}

/// What is said in blocks, but for calls and thoughts.
fn said(blocks: &[Block]) -> String {
    let images = blocks.iter().filter_map(|block| match block {
        Block::Image { media_type, .. } => Some(format!("*(an image, {media_type})*")),
        _ => None,
    });
    let text = text_of(blocks);
    let text = (!text.trim().is_empty()).then(|| text.trim_end().to_owned());
    let pieces: Vec<String> = text.into_iter().chain(images).collect();
    pieces.join("\n\n")
}

/// Text that is shown as it is, whatever ticks are in it.
fn code_span(text: &str) -> String {
    let ticks = longest_ticks(text);
    let fence = "`".repeat(ticks + 1);
    let gap = if ticks == 0 { "" } else { " " };
    format!("{fence}{gap}{text}{gap}{fence}")
}

fn longest_ticks(text: &str) -> usize {
    let runs = text.split(|character| character != '`');
    runs.map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
