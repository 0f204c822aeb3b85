//! Calls that were counted and wait to be written.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use cocode_core::{ServerName, ToolName};

use super::MAX_WAITING_TOOLS;

/// Calls by server and tool.
pub(super) type Counts = BTreeMap<ServerName, BTreeMap<ToolName, Count>>;

/// Calls of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) calls: u64,
    pub(super) last: SystemTime,
}

/// What is written at once.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) counts: Counts,
    /// The number of the last call in it.
    last: u64,
}

/// Calls that wait.
#[derive(Debug, Default)]
pub(super) struct Counter {
    state: Mutex<State>,
    /// Something waits, somebody is in a hurry, or nothing will come any more.
    changed: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: Counts,
    n_tools: usize,
    /// How many calls there were.
    counted: u64,
    /// Everything up to this number was written, or could not be.
    written: u64,
    /// Somebody waits for everything to be written.
    is_urgent: bool,
    is_closed: bool,
}

impl Counter {
    pub(super) fn count(&self, server: &ServerName, tool: &ToolName, at: SystemTime) {
        let mut state = self.state();
        let was_empty = state.waiting.is_empty();
        let calls = 1;
        if !state.add(server, tool, Count { calls, last: at }) {
            return;
        }
        state.counted += 1;
        drop(state);
        if was_empty {
            self.changed.notify_one();
        }
    }

    /// Waits for calls, and then for more of them to be written with the first. Nothing comes after
    /// the end.
    pub(super) fn next(&self, patience: Duration) -> Option<Batch> {
        let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let waited = self.changed.wait_while(self.state(), is_idle);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        let has_time = |state: &mut State| !state.is_urgent && !state.is_closed;
        let waited = self.changed.wait_timeout_while(state, patience, has_time);
        let (mut state, _outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_urgent = false;
        if state.waiting.is_empty() {
            return None;
        }
        state.n_tools = 0;
        Some(Batch {
            counts: std::mem::take(&mut state.waiting),
            last: state.counted,
        })
    }

    /// A batch was written, or could not be: then it waits again, unless this is the end.
    pub(super) fn done(&self, batch: &Batch, is_written: bool) {
        let mut state = self.state();
        state.written = batch.last;
        if !is_written && !state.is_closed {
            for (server, tools) in &batch.counts {
                for (tool, count) in tools {
                    state.add(server, tool, *count);
                }
            }
        }
        drop(state);
        self.written.notify_all();
    }

    /// Waits until everything is written that was counted by now.
    pub(super) fn flush(&self, deadline: Instant) -> bool {
        let mut state = self.state();
        let last = state.counted;
        if state.written >= last {
            return true;
        }
        state.is_urgent = true;
        self.changed.notify_one();
        let remaining = deadline.saturating_duration_since(Instant::now());
        let is_behind = |state: &mut State| state.written < last;
        let waited = self.written.wait_timeout_while(state, remaining, is_behind);
        let (_state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        !outcome.timed_out()
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether there is room for it.
    fn add(&mut self, server: &ServerName, tool: &ToolName, count: Count) -> bool {
        let known = self
            .waiting
            .get_mut(server)
            .and_then(|tools| tools.get_mut(tool));
        if let Some(known) = known {
            known.calls += count.calls;
            known.last = known.last.max(count.last);
            return true;
        }
        if self.n_tools >= MAX_WAITING_TOOLS {
            return false;
        }
        self.n_tools += 1;
        let tools = self.waiting.entry(server.clone()).or_default();
        tools.insert(tool.clone(), count);
        true
    }
}
