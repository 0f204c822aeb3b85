//! What a model is shown of a conversation: made from the records, and from nothing else, so that a
//! conversation goes on after a restart as if there had been none.

use cocode_core::{MAX_IMAGE_TOKENS, estimate_tokens};

use crate::content::{Block, Message, Role, ToolResult, text_of};
use crate::model::Usage;
use crate::record::{Ending, Record, Settings};

/// What the model is told of a call whose end nobody has seen.
pub(crate) const LOST_CALL: &str = "There is no result: the call was interrupted. Whatever it does \
    may or may not have been done; look before you do it again.";

/// What precedes the summary of what was before.
const SUMMARY: &str = "The conversation so far was summed up, because it became too long. This is \
    the summary:";

/// Stands behind what a model had said when it was interrupted.
const BROKEN_OFF: &str = "[interrupted here]";

/// The state of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Transcript {
    /// What it is held with now.
    pub(crate) settings: Settings,
    entries: Vec<Entry>,
    /// The number of the last record.
    pub(crate) last: u64,
    /// All that was used.
    pub(crate) usage: Usage,
    /// All that was paid, as far as prices are known.
    pub(crate) cost: f64,
    /// Tokens that the model saw and wrote last, and how many messages that were.
    pub(crate) seen: Option<(u64, usize)>,
    /// What a person asked for last, also if it was summed up since.
    pub(crate) last_request: Option<String>,
    /// The last summary.
    pub(crate) summary: Option<String>,
    /// Whether a turn has begun and not ended.
    pub(crate) is_open: bool,
    /// Whether nobody can go on with it.
    pub(crate) is_closed: bool,
    /// Whether it may have read data outside of its workspace.
    pub(crate) has_read_outside: bool,
}

/// A message, and the first record that it is made of.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    from: u64,
    message: Message,
    /// It begins a turn.
    begins_turn: bool,
}

impl Transcript {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            entries: Vec::new(),
            last: 0,
            usage: Usage::default(),
            cost: 0.0,
            seen: None,
            last_request: None,
            summary: None,
            is_open: false,
            is_closed: false,
            has_read_outside: false,
        }
    }

    /// The conversation that these records tell.
    pub(crate) fn replay<'a>(
        settings: Settings,
        records: impl IntoIterator<Item = (u64, &'a Record)>,
    ) -> Self {
        let mut transcript = Self::new(settings);
        for (number, record) in records {
            transcript.add(number, record);
        }
        transcript
    }

    /// Takes note of what happened.
    pub(crate) fn add(&mut self, number: u64, record: &Record) {
        self.last = number;
        match record {
            Record::Asked { content } => {
                self.is_open = true;
                self.last_request = Some(text_of(content));
                self.say(number, Role::User, content.clone(), true);
            }
            Record::Nudged { text } => {
                self.say(number, Role::User, vec![Block::text(text.as_str())], false);
            }
            Record::Replied {
                content,
                usage,
                cost,
                ..
            } => {
                self.spend(usage, *cost);
                if !content.is_empty() {
                    self.say(number, Role::Assistant, content.clone(), false);
                }
                // Who counts nothing leaves the counting to us.
                if usage.total() > 0 {
                    self.seen = Some((usage.total(), self.entries.len()));
                }
            }
            Record::BrokeOff { content } => {
                let said = content.iter().filter(|block| block.as_text().is_some());
                let mut said: Vec<Block> = said.cloned().collect();
                if !said.is_empty() {
                    said.push(Block::text(BROKEN_OFF));
                    self.say(number, Role::Assistant, said, false);
                }
            }
            Record::CallEnded {
                id,
                content,
                is_error,
                ..
            } => {
                let (id, content, is_error) = (id.clone(), content.clone(), *is_error);
                self.result(
                    number,
                    ToolResult {
                        id,
                        content,
                        is_error,
                    },
                );
            }
            Record::Compacted {
                summary,
                kept_from,
                usage,
                cost,
            } => {
                self.spend(usage, *cost);
                self.compact(number, summary, *kept_from);
            }
            Record::Changed { settings } => {
                // What was read in another workspace is outside of this one.
                self.has_read_outside |=
                    settings.cwd != self.settings.cwd && !self.entries.is_empty();
                self.settings = settings.clone();
            }
            Record::Ended { how } => {
                self.is_open = false;
                if let Ending::Refused(_) = how {
                    self.forget_turn();
                }
            }
            Record::Closed => self.is_closed = true,
            // Records of earlier versions say nothing of it.
            Record::CallBegun {
                call,
                reads_outside,
            } => self.has_read_outside |= *reads_outside || call.name == "shell",
            Record::ApprovalAsked { .. } | Record::ApprovalAnswered { .. } => {}
        }
    }

    /// The messages as a model is shown them: the roles take turns, the user begins, and every call
    /// has its result in the message that follows it.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let mut messages: Vec<Message> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let missing = match messages.last() {
                Some(last) => missing_results(last, Some(&entry.message)),
                None => Vec::new(),
            };
            let message = &entry.message;
            match messages.last_mut() {
                Some(last) if last.role == message.role => {
                    last.content.extend(message.content.iter().cloned());
                }
                _ if message.role == Role::User => {
                    let mut content = missing;
                    content.extend(message.content.iter().cloned());
                    messages.push(Message::user(content));
                }
                _ => messages.push(message.clone()),
            }
        }
        messages
    }

    /// About how many tokens the model would read: what it read last, as the provider counted it, and
    /// what has been said since.
    pub(crate) fn tokens(&self) -> u64 {
        let (known, from) = self.seen.unwrap_or((0, 0));
        let rest = self.entries.iter().skip(from);
        let rest = rest.flat_map(|entry| &entry.message.content);
        known.saturating_add(rest.map(block_tokens).sum())
    }

    /// Whether there is nothing to sum up but one message.
    pub(crate) fn is_single(&self) -> bool {
        self.entries.len() < 2
    }

    /// Calls of the last reply that have no result.
    pub(crate) fn open_calls(&self) -> Vec<crate::content::ToolCall> {
        let last = self
            .entries
            .iter()
            .rposition(|entry| entry.message.role == Role::Assistant);
        let Some(last) = last else {
            return Vec::new();
        };
        let (Some(entry), next) = (self.entries.get(last), self.entries.get(last + 1)) else {
            return Vec::new();
        };
        let answered = |id: &str| next.is_some_and(|next| answers(&next.message, id));
        let calls = entry.message.tool_calls();
        calls.filter(|call| !answered(&call.id)).cloned().collect()
    }

    /// The number of the last record that begins a turn and is not summed up.
    pub(crate) fn last_turn(&self) -> Option<u64> {
        let mut turns = self.entries.iter().rev().filter(|entry| entry.begins_turn);
        turns.next().map(|entry| entry.from)
    }

    /// What was said before this record, but for the summary of what was before that.
    pub(crate) fn said_before(&self, record: u64) -> impl DoubleEndedIterator<Item = &Message> {
        let skipped = usize::from(self.summary.is_some());
        let said = self.entries.iter().skip(skipped);
        said.filter(move |entry| entry.from < record)
            .map(|entry| &entry.message)
    }

    /// About how many tokens all that was said has, without what a model is told besides.
    pub(crate) fn said_tokens(&self) -> u64 {
        let said = self.entries.iter().flat_map(|entry| &entry.message.content);
        said.map(block_tokens).sum()
    }

    /// Whether a call of this id is in it.
    pub(crate) fn has_call(&self, id: &str) -> bool {
        let mut messages = self.entries.iter().map(|entry| &entry.message);
        messages.any(|message| message.tool_calls().any(|call| call.id == id))
    }

    /// Whether the last that was said begins a turn: nothing has followed yet.
    pub(crate) fn is_fresh_turn(&self) -> bool {
        self.entries.last().is_some_and(|entry| entry.begins_turn)
    }

    fn say(&mut self, from: u64, role: Role, content: Vec<Block>, begins_turn: bool) {
        let message = Message { role, content };
        self.entries.push(Entry {
            from,
            message,
            begins_turn,
        });
    }

    /// The results of one reply are one message, in the order of the calls.
    fn result(&mut self, number: u64, result: ToolResult) {
        let last = self.entries.last_mut();
        let results = last.filter(|entry| is_results(&entry.message));
        let Some(entry) = results else {
            let content = vec![Block::ToolResult(result)];
            self.say(number, Role::User, content, false);
            return;
        };
        entry.message.content.push(Block::ToolResult(result));
        let (Some(results), Some(reply)) = (
            self.entries.len().checked_sub(1),
            self.entries.len().checked_sub(2),
        ) else {
            return;
        };
        let Some(reply) = self.entries.get(reply) else {
            return;
        };
        let order: Vec<String> = reply
            .message
            .tool_calls()
            .map(|call| call.id.clone())
            .collect();
        if let Some(entry) = self.entries.get_mut(results) {
            entry.message.content.sort_by_key(|block| match block {
                Block::ToolResult(result) => order.iter().position(|id| *id == result.id),
                _ => None,
            });
        }
    }

    fn spend(&mut self, usage: &Usage, cost: Option<f64>) {
        self.usage += *usage;
        self.cost += cost.unwrap_or_default();
    }

    fn compact(&mut self, number: u64, summary: &str, kept_from: u64) {
        self.entries.retain(|entry| entry.from >= kept_from);
        self.summary = Some(summary.to_owned());
        let content = vec![Block::text(format!("{SUMMARY}\n\n{summary}"))];
        self.entries.insert(
            0,
            Entry {
                from: number,
                message: Message::user(content),
                begins_turn: false,
            },
        );
        self.seen = None;
    }

    /// A model that has refused goes on refusing while it is shown what it refused.
    fn forget_turn(&mut self) {
        if let Some(begin) = self.entries.iter().rposition(|entry| entry.begins_turn) {
            self.entries.truncate(begin);
        }
        self.seen = None;
    }
}

/// Results of the calls of a message that the next one does not have.
fn missing_results(message: &Message, next: Option<&Message>) -> Vec<Block> {
    let answered = |id: &str| next.is_some_and(|next| answers(next, id));
    let calls = message.tool_calls().filter(|call| !answered(&call.id));
    let missing = calls.map(|call| {
        Block::ToolResult(ToolResult {
            id: call.id.clone(),
            content: vec![Block::text(LOST_CALL)],
            is_error: true,
        })
    });
    missing.collect()
}

fn block_tokens(block: &Block) -> u64 {
    match block {
        Block::Text { text } | Block::Reasoning { text, .. } => estimate_tokens(text),
        Block::Image { .. } => MAX_IMAGE_TOKENS,
        Block::ToolCall(call) => estimate_tokens(&call.arguments.to_text()),
        Block::ToolResult(result) => result.content.iter().map(block_tokens).sum(),
    }
}

fn answers(message: &Message, id: &str) -> bool {
    let is_it = |block: &Block| matches!(block, Block::ToolResult(result) if result.id == id);
    message.content.iter().any(is_it)
}

fn is_results(message: &Message) -> bool {
    let is_result = |block: &Block| matches!(block, Block::ToolResult(_));
    message.role == Role::User && message.content.iter().all(is_result)
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
