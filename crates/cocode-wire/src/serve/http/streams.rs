//! The streams of one session: what was said on each, what the client has taken, and what is kept
//! so that a broken stream can go on where it broke.
//!
//! Pure bookkeeping behind one lock; nothing in here waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::asked::Questions;
use super::event_id::EventId;
use super::events;
use super::options::HttpLimits;
use crate::frame::Frame;
use crate::serve::service::{Answer, Serving, Sink};

/// The stream of messages that belong to no request.
pub(super) const STANDALONE: u64 = 0;

/// The work on a request, wherever it is being done at the moment.
pub(super) type Work = Arc<Mutex<Option<Serving>>>;

/// All streams of a session.
#[derive(Debug)]
pub(super) struct Streams {
    state: Mutex<State>,
    limits: HttpLimits,
    /// Whether events carry ids, and sent ones are kept.
    resumable: bool,
    /// See [`EventId::origin`].
    pub(super) origin: u32,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first.
    logs: BTreeMap<u64, Log>,
    last: u64,
    /// Events that were taken by the client, and are kept.
    kept_bytes: usize,
    kept_events: usize,
    /// Events that no client has taken yet.
    waiting_bytes: usize,
    asked: Questions,
    ended: bool,
}

/// One stream. The first event stands at place 1.
struct Log {
    events: VecDeque<Bytes>,
    /// The place of the first event that is still here.
    first: u64,
    /// The place of the first event that the client has not taken.
    unread: u64,
    waiting_bytes: usize,
    /// Nothing follows.
    finished: bool,
    /// Which reader has the stream; it went to another if this has changed.
    reader: u64,
    attached: bool,
    waker: Option<Waker>,
    work: Option<Work>,
    /// The requests that it is about; see [`EventId::about`].
    about: Box<str>,
}

/// Somebody's turn to read a stream.
pub(super) struct Turn {
    pub(super) reader: u64,
    /// The place of the last event that was taken before.
    pub(super) after: u64,
    /// The work that was done by whoever had the stream before.
    pub(super) work: Option<Work>,
}

impl Log {
    fn new(about: Box<str>) -> Self {
        Self {
            events: VecDeque::new(),
            first: 1,
            unread: 1,
            waiting_bytes: 0,
            finished: false,
            reader: 0,
            attached: false,
            waker: None,
            work: None,
            about,
        }
    }

    fn next_place(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn event(&self, place: u64) -> Option<&Bytes> {
        let index = usize::try_from(place.checked_sub(self.first)?).ok()?;
        self.events.get(index)
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Streams {
    pub(super) fn new(limits: HttpLimits, resumable: bool, origin: u32) -> Self {
        let mut state = State::default();
        state.logs.insert(STANDALONE, Log::new(Box::default()));
        Self {
            state: Mutex::new(state),
            limits,
            resumable,
            origin,
        }
    }

    /// A new stream, for the requests that it is about.
    pub(super) fn open(&self, about: Box<str>) -> u64 {
        let mut state = self.state();
        state.last += 1;
        let stream = state.last;
        if !state.ended {
            state.logs.insert(stream, Log::new(about));
        }
        stream
    }

    /// The event that gives a client a place in a stream before anything was said there.
    pub(super) fn priming(&self, stream: u64, place: u64) -> Bytes {
        let state = self.state();
        let log = state.logs.get(&stream);
        let about = log.map_or("", |log| &log.about);
        events::priming(self.id(stream, place, about))
    }

    fn id<'a>(&self, stream: u64, place: u64, about: &'a str) -> EventId<'a> {
        EventId {
            origin: self.origin,
            stream,
            place,
            about,
        }
    }

    /// Says where the work is done whose answer ends the stream.
    pub(super) fn set_work(&self, stream: u64, work: &Work) {
        if let Some(log) = self.state().logs.get_mut(&stream) {
            log.work = Some(Arc::clone(work));
        }
    }

    /// Sends a message, unless too much waits already.
    pub(super) fn send(&self, stream: u64, message: &[u8]) -> bool {
        let mut state = self.state();
        let crowded = state.waiting_bytes >= self.limits.max_undelivered;
        let Some(log) = state.logs.get(&stream) else {
            return false;
        };
        let full = log.waiting_bytes >= self.limits.max_queued || (crowded && !log.attached);
        if log.finished || full {
            return false;
        }
        state.asked.note(message);
        self.push(&mut state, stream, message);
        true
    }

    /// Whether this may be the answer to something that the client was asked here.
    pub(super) fn has_asked(&self, response: &Frame) -> bool {
        self.state().asked.may_be_answered_by(response)
    }

    /// Sends an answer on a stream that carries many. It is never dropped: there are no more of them
    /// than requests.
    pub(super) fn answer(&self, stream: u64, answer: &Answer) {
        if !answer.body.is_empty() {
            self.push(&mut self.state(), stream, &answer.body);
        }
    }

    /// Sends the answer, if there is one, and ends the stream.
    pub(super) fn finish(&self, stream: u64, answer: &Answer) {
        let mut state = self.state();
        let Some(log) = state.logs.get_mut(&stream).filter(|log| !log.finished) else {
            return;
        };
        log.finished = true;
        log.wake();
        if !answer.body.is_empty() {
            self.push(&mut state, stream, &answer.body);
            self.forget_abandoned(&mut state, stream);
        } else if log.events.is_empty() && !log.attached {
            // There is nothing to come back for.
            state.logs.remove(&stream);
        }
    }

    /// Takes over the reading of a stream, from where it was left or from after a place that the
    /// client names. `None` if there is no such stream.
    pub(super) fn attach(&self, stream: u64, after: Option<u64>) -> Option<Turn> {
        let mut state = self.state();
        let state = &mut *state;
        let log = state.logs.get_mut(&stream)?;
        log.reader += 1;
        log.attached = true;
        log.wake();
        if let Some(after) = after {
            // What the client has missed waits again.
            let again = after.saturating_add(1).clamp(log.first, log.unread);
            for place in again..log.unread {
                let size = log.event(place).map_or(0, Bytes::len);
                state.kept_bytes -= size;
                state.kept_events -= 1;
                state.waiting_bytes += size;
                log.waiting_bytes += size;
            }
            log.unread = again;
        }
        Some(Turn {
            reader: log.reader,
            after: log.unread - 1,
            work: log.work.take(),
        })
    }

    /// The reader is gone; the stream stays.
    pub(super) fn detach(&self, stream: u64, reader: u64) {
        let mut state = self.state();
        if let Some(log) = state.logs.get_mut(&stream)
            && log.reader == reader
        {
            log.attached = false;
            log.waker = None;
            if log.finished && log.events.is_empty() {
                state.logs.remove(&stream);
            }
        }
    }

    /// The next event for that reader. `None` when the stream has ended or another has it.
    pub(super) fn poll_read(
        &self,
        stream: u64,
        reader: u64,
        context: &Context<'_>,
    ) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        let state = &mut *state;
        let Some(log) = state.logs.get_mut(&stream) else {
            return Poll::Ready(None);
        };
        if log.reader != reader {
            return Poll::Ready(None);
        }
        let Some(event) = log.event(log.unread).cloned() else {
            if log.finished {
                return Poll::Ready(None);
            }
            log.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        log.unread += 1;
        log.waiting_bytes -= event.len();
        state.waiting_bytes -= event.len();
        state.kept_bytes += event.len();
        state.kept_events += 1;
        self.forget_old(state);
        Poll::Ready(Some(event))
    }

    /// Ends all streams.
    pub(super) fn end(&self) {
        let mut state = self.state();
        let mut logs = std::mem::take(&mut *state).logs;
        state.ended = true;
        drop(state);
        for log in logs.values_mut() {
            log.wake();
        }
    }

    fn push(&self, state: &mut State, stream: u64, message: &[u8]) {
        let Some(log) = state.logs.get_mut(&stream) else {
            return;
        };
        let place = log.next_place();
        let id = self.id(stream, place, &log.about);
        let id = self.resumable.then_some(id);
        let event = events::event(message, id);
        log.waiting_bytes += event.len();
        state.waiting_bytes += event.len();
        log.events.push_back(event);
        log.wake();
    }

    /// Drops the oldest events of those that the client has most likely got.
    fn forget_old(&self, state: &mut State) {
        let (max_bytes, max_events) = if self.resumable {
            (self.limits.max_replay_bytes, self.limits.max_replay_events)
        } else {
            (0, 0)
        };
        while state.kept_bytes > max_bytes || state.kept_events > max_events {
            // A large answer is what a connection breaks on, so the last one is kept all the same.
            let is_last = state.kept_events == 1 && self.resumable;
            if is_last && state.kept_bytes <= self.limits.max_undelivered {
                return;
            }
            let oldest = state
                .logs
                .iter_mut()
                .find(|(_, log)| log.first < log.unread);
            let Some((&stream, log)) = oldest else {
                return;
            };
            let size = log.events.pop_front().map_or(0, |event| event.len());
            log.first += 1;
            state.kept_bytes -= size;
            state.kept_events -= 1;
            if log.finished && log.events.is_empty() && !log.attached {
                state.logs.remove(&stream);
            }
        }
    }

    /// Drops whole streams that nobody reads, oldest first, when too much waits on such. The newest
    /// is spared, however large it is.
    fn forget_abandoned(&self, state: &mut State, newest: u64) {
        while state.waiting_bytes > self.limits.max_undelivered {
            let is_abandoned = |(stream, log): (&u64, &Log)| {
                let spared = *stream == STANDALONE || *stream == newest;
                (!spared && !log.attached && log.waiting_bytes > 0).then_some(*stream)
            };
            let Some(stream) = state.logs.iter().find_map(is_abandoned) else {
                return;
            };
            let Some(log) = state.logs.remove(&stream) else {
                return;
            };
            for place in log.first..log.unread {
                state.kept_bytes -= log.event(place).map_or(0, Bytes::len);
                state.kept_events -= 1;
            }
            state.waiting_bytes -= log.waiting_bytes;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Log {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Log")
            .field("first", &self.first)
            .field("unread", &self.unread)
            .field("events", &self.events.len())
            .field("finished", &self.finished)
            .finish_non_exhaustive()
    }
}

/// Reaches a client outside of its requests.
#[derive(Debug)]
pub(super) struct Outlet(pub(super) Arc<Streams>);

impl Sink for Outlet {
    fn send(&self, message: Bytes) -> bool {
        self.0.send(STANDALONE, &message)
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
