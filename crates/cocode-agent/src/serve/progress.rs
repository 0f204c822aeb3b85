//! What happens in a turn, told to whoever waits for it: reports of progress, in a few words each.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cocode_wire::encode;
use cocode_wire::serve::Sink;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use crate::company::{Listener, Notice};
use crate::describe::describe;

/// What a model writes, and what tools tell, is reported at most so often.
const OFTEN: Duration = Duration::from_millis(500);
/// Something is reported at least so often: clients give up on what is silent.
const SELDOM: Duration = Duration::from_secs(20);
/// So many characters of what a model writes are reported at once.
const MAX_CHARS: usize = 200;

/// Where reports go.
pub(super) struct Way {
    /// To the client, with the request that waits.
    pub(super) stream: Arc<dyn Sink>,
    /// What they name; without it, none are wanted.
    pub(super) token: Option<Value>,
}

/// Reports on one turn. While no request waits for it, there is nobody to report to.
pub(super) struct Reporter {
    state: Mutex<State>,
}

struct State {
    way: Option<Way>,
    /// Reports so far: each says a larger number than the one before.
    count: u64,
    /// What was said last, and when.
    said: String,
    said_at: Instant,
    /// When something was said that is only said so often.
    chatted_at: Option<Instant>,
    /// What the model has written and nobody was told.
    written: String,
    /// The tools that work now, by the model's names of the calls.
    working: BTreeMap<String, String>,
}

impl Reporter {
    pub(super) fn new(way: Way) -> Self {
        Self {
            state: Mutex::new(State {
                way: Some(way),
                count: 0,
                said: "starting".to_owned(),
                said_at: Instant::now(),
                chatted_at: None,
                written: String::new(),
                working: BTreeMap::new(),
            }),
        }
    }

    /// Another request waits from now on.
    pub(super) fn redirect(&self, way: Way) {
        let mut state = self.lock();
        state.way = Some(way);
        state.said_at = Instant::now();
    }

    /// Nobody waits any more: nothing may be reported after the answer.
    pub(super) fn close(&self) {
        self.lock().way = None;
    }

    /// Says something.
    pub(super) fn say(&self, words: &str) {
        self.lock().say(words);
    }

    /// Says from time to time that the turn goes on. Never ends.
    pub(super) async fn keep_alive(&self) {
        loop {
            let due = self.lock().said_at + SELDOM;
            sleep_until(due).await;
            let mut state = self.lock();
            if state.said_at + SELDOM <= Instant::now() {
                let words = state.said.clone();
                state.tell(&format!("still at it: {words}"));
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn say(&mut self, words: &str) {
        words.clone_into(&mut self.said);
        self.tell(words);
    }

    /// Says something of which there is much, if it is time for it.
    fn chat(&mut self, words: &str) {
        let now = Instant::now();
        if self.chatted_at.is_none_or(|at| at + OFTEN <= now) {
            self.chatted_at = Some(now);
            self.say(words);
        }
    }

    fn tell(&mut self, words: &str) {
        self.said_at = Instant::now();
        let Some(Way { stream, token }) = &self.way else {
            return;
        };
        let Some(token) = token else {
            return;
        };
        self.count += 1;
        let params = json!({ "progressToken": token, "progress": self.count, "message": words });
        let params = params.to_string();
        let told = encode::notification("notifications/progress", Some(params.as_bytes()));
        if !stream.send(Bytes::from(told)) {
            tracing::debug!("a report of progress was not taken");
        }
    }

    fn writes(&mut self, text: &str) {
        self.written.push_str(text);
        let now = Instant::now();
        if self.chatted_at.is_some_and(|at| at + OFTEN > now) {
            return;
        }
        let written = std::mem::take(&mut self.written);
        let line = written.lines().map(str::trim).find(|line| !line.is_empty());
        if let Some(line) = line {
            self.chat(&format!("writes: {}", shortened(line)));
        }
    }

    fn progressed(&mut self, id: &str, done: f64, total: Option<f64>, message: Option<&str>) {
        let Some(tool) = self.working.get(id) else {
            return;
        };
        let how_far = match (message, total) {
            (Some(message), _) => shortened(message),
            (None, Some(total)) => format!("{done} of {total}"),
            (None, None) => format!("{done}"),
        };
        let words = format!("{tool}: {how_far}");
        self.chat(&words);
    }
}

impl Listener for Reporter {
    fn hear(&self, notice: &Notice) {
        let mut state = self.lock();
        match notice {
            Notice::Asking { step, .. } => state.say(&format!("thinking (step {step})")),
            Notice::Text(text) => state.writes(text),
            Notice::Restarting { why, .. } => {
                state.written.clear();
                state.say(&format!("asks the model again: {}", shortened(why)));
            }
            Notice::Replied { .. } => state.written.clear(),
            Notice::CallBegun(call) => {
                state.working.insert(call.id.clone(), call.name.clone());
                state.say(&format!("calls {}", describe(call)));
            }
            Notice::CallProgressed {
                id,
                done,
                total,
                message,
            } => state.progressed(id, *done, *total, message.as_deref()),
            Notice::CallEnded {
                id,
                tool,
                is_error,
                took,
                ..
            } => {
                state.working.remove(id);
                let how = if *is_error { "failed after" } else { "done in" };
                state.say(&format!("{tool} {how} {:.1} s", took.as_secs_f64()));
            }
            Notice::Compacting => state.say("sums up the conversation, which became too long"),
            Notice::Compacted { before, after } => {
                state.say(&format!("summed up: {after} tokens, and {before} before"));
            }
            Notice::Warning(what) => state.say(&format!("warning: {}", shortened(what))),
            // What a model thinks is its own; that it writes a call is said when it makes it; and the
            // end is the answer itself.
            Notice::Reasoning(_) | Notice::Writing { .. } | Notice::Ended(_) => {}
        }
    }
}

/// The first line of a text, as far as it is short.
fn shortened(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(MAX_CHARS).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
