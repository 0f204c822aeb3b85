//! The bounded queue between those who log and the one who writes.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use super::line::Text;
use super::{MAX_QUEUED_LOG_BYTES, MAX_QUEUED_LOG_RECORDS};

/// Something to be written.
pub(super) struct Record {
    pub(super) server: Arc<str>,
    pub(super) at: SystemTime,
    pub(super) source: String,
    pub(super) text: Text,
}

/// Everything that waited.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) records: VecDeque<Record>,
    /// How many records there was no room for, by server. They came after all of `records`.
    pub(super) lost: BTreeMap<Arc<str>, u64>,
    /// The number of the last thing in it.
    last: u64,
}

/// Records that wait.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    /// Something waits, or nothing will any more.
    filled: Condvar,
    /// Something was written.
    emptied: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Batch,
    bytes: usize,
    /// Everything up to this number was written, or could not be.
    written: u64,
    is_closed: bool,
}

impl Queue {
    /// Takes a record, or counts it if there is no room.
    pub(super) fn push(&self, record: Record) {
        let mut state = self.state();
        let bytes = record.text.text.len();
        let is_full = state.waiting.records.len() >= MAX_QUEUED_LOG_RECORDS
            || state.bytes + bytes > MAX_QUEUED_LOG_BYTES;
        if is_full {
            *state.waiting.lost.entry(record.server).or_default() += 1;
        } else {
            state.bytes += bytes;
            state.waiting.records.push_back(record);
        }
        state.waiting.last += 1;
        drop(state);
        self.filled.notify_one();
    }

    /// Waits for records; nothing comes after the queue was closed and is empty.
    pub(super) fn next(&self) -> Option<Batch> {
        let state = self.state();
        let is_idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let waited = self.filled.wait_while(state, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.waiting.is_empty() {
            return None;
        }
        state.bytes = 0;
        let last = state.waiting.last;
        let rest = Batch {
            last,
            ..Batch::default()
        };
        Some(std::mem::replace(&mut state.waiting, rest))
    }

    /// A batch was written.
    pub(super) fn done(&self, batch: &Batch) {
        self.state().written = batch.last;
        self.emptied.notify_all();
    }

    /// Waits until everything is written that waits now.
    pub(super) fn flush(&self, deadline: Instant) -> bool {
        let state = self.state();
        let last = state.waiting.last;
        let remaining = deadline.saturating_duration_since(Instant::now());
        let is_behind = |state: &mut State| state.written < last;
        let waited = self.emptied.wait_timeout_while(state, remaining, is_behind);
        let (_state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        !outcome.timed_out()
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.filled.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.records.is_empty() && self.lost.is_empty()
    }
}
