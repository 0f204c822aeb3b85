//! The calls of late, how long they take, and how often they go wrong.

mod timings;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::bulletin::{Bulletin, News};
use crate::model::{Call, CallProgress, CallState, Latency};
use crate::moment::Moment;
use crate::schema::words;

pub(crate) use timings::{BUCKETS, Timings};

/// Calls that are remembered.
pub const MAX_CALLS_KEPT: usize = 1000;
/// Servers whose calls are counted by name. The rest are counted together, as [`OTHER_SERVERS`].
pub const MAX_COUNTED_SERVERS: usize = 256;
/// The name of the rest of the servers.
pub const OTHER_SERVERS: &str = "(other)";
/// How often the progress of one call is told.
const TELL_PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Characters of a text that somebody else has chosen.
const MAX_TEXT_CHARS: usize = 512;
/// Bytes that a text of an entry has room for without another allocation.
const TEXT_CAPACITY: usize = 64;

/// What a call is, when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCall {
    /// Who makes it.
    pub principal: String,
    /// The server, if there is one that has what is called.
    pub server: Option<String>,
    /// The method, such as `tools/call`.
    pub method: String,
    /// The name of the tool or prompt, or the address of the resource.
    pub name: String,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallEnding {
    /// With a result of so many bytes. One that asks for more input is one, too.
    Ok {
        /// How large it is.
        bytes: u64,
    },
    /// With a result that says that the tool failed.
    ToolError {
        /// How large it is.
        bytes: u64,
    },
    /// With an error.
    Error(String),
    /// Nobody wants it any more.
    Cancelled,
    /// Rules, limits or a person did not let it through.
    Denied(String),
}

words! {
    /// Why somebody was turned away before anything was begun for them.
    pub enum TurnedAway {
        /// They did not show who they are.
        Authentication = "authentication",
        /// They wanted too much at once, or in too short a time.
        Limit = "limit",
    }
}

/// The book of calls. Cloning shares it.
#[derive(Clone, Debug)]
pub struct CallBook(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    pages: Mutex<Pages>,
    bulletin: Bulletin,
}

#[derive(Debug, Default)]
struct Pages {
    next_id: u64,
    in_flight: u64,
    /// Always [`MAX_CALLS_KEPT`] entries, which are used again: if each call allocated its own among the
    /// memory of sessions, the heap could not shrink when these end. Those without an id are unused.
    calls: VecDeque<Arc<Mutex<Call>>>,
    servers: BTreeMap<String, Timings>,
    turned_away: BTreeMap<TurnedAway, u64>,
}

impl CallBook {
    /// An empty book, whose calls are told here.
    pub fn new(bulletin: Bulletin) -> Self {
        Self(Arc::new(Shared {
            pages: Mutex::new(Pages {
                calls: (0..MAX_CALLS_KEPT).map(|_| blank()).collect(),
                ..Pages::default()
            }),
            bulletin,
        }))
    }

    /// A call begins. It lasts until [`OngoingCall::end`]; dropping it before means that nobody wants
    /// it any more.
    pub fn begin(&self, new: NewCall) -> OngoingCall {
        let NewCall {
            principal,
            server,
            method,
            name,
        } = new;
        let mut pages = self.0.lock();
        pages.next_id += 1;
        pages.in_flight += 1;
        let mut call = pages.calls.pop_front().unwrap_or_else(blank);
        if Arc::get_mut(&mut call).is_none() {
            // The oldest call is still under way, and keeps its entry.
            call = blank();
        }
        let mut fields = entry(&call);
        replace(&mut fields.id, &pages.next_id.to_string());
        replace(&mut fields.principal, &bounded(principal));
        replace(&mut fields.server, &server.unwrap_or_default());
        replace(&mut fields.method, &bounded(method));
        replace(&mut fields.name, &bounded(name));
        fields.at = Moment::now();
        fields.state = CallState::Running;
        (fields.milliseconds, fields.bytes) = (None, None);
        (fields.error, fields.progress) = (None, None);
        drop(fields);
        pages.calls.push_back(Arc::clone(&call));
        drop(pages);
        self.0.tell(&call);
        OngoingCall {
            shared: Arc::clone(&self.0),
            call,
            begun: Mutex::new(Instant::now()),
            told: Mutex::new(None),
            is_over: false,
        }
    }

    /// Counts somebody who was turned away.
    pub fn turn_away(&self, why: TurnedAway) {
        *self.0.lock().turned_away.entry(why).or_default() += 1;
    }

    /// How often somebody was turned away.
    pub(crate) fn turned_away(&self, why: TurnedAway) -> u64 {
        let pages = self.0.lock();
        pages.turned_away.get(&why).copied().unwrap_or_default()
    }

    /// Forgets how long the calls of a server took, since there is no such server any more.
    pub fn forget_server(&self, name: &str) {
        self.0.lock().servers.remove(name);
    }

    /// The calls of late, the newest first.
    pub fn recent(&self, limit: usize) -> Vec<Call> {
        let pages = self.0.lock();
        let newest = pages.calls.iter().rev().take(limit);
        let newest = newest.map(|call| entry(call).clone());
        newest.take_while(|call| !call.id.is_empty()).collect()
    }

    /// How many calls are under way.
    pub fn in_flight(&self) -> u64 {
        self.0.lock().in_flight
    }

    /// How long calls take, by server.
    pub fn latencies(&self) -> Vec<Latency> {
        let pages = self.0.lock();
        let servers = pages.servers.iter();
        servers
            .map(|(name, timings)| timings.latency(name))
            .collect()
    }

    /// The counters of all servers.
    pub(crate) fn timings(&self) -> Vec<(String, Timings)> {
        let pages = self.0.lock();
        let servers = pages.servers.iter();
        servers
            .map(|(name, timings)| (name.clone(), timings.clone()))
            .collect()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, call: &Mutex<Call>) {
        self.bulletin
            .publish_with(|| News::Call(Box::new(entry(call).clone())));
    }
}

impl Pages {
    fn timings(&mut self, server: &str) -> &mut Timings {
        let is_counted =
            self.servers.contains_key(server) || self.servers.len() < MAX_COUNTED_SERVERS;
        let name = if is_counted { server } else { OTHER_SERVERS };
        self.servers.entry(name.to_owned()).or_default()
    }
}

/// A call under way.
#[derive(Debug)]
pub struct OngoingCall {
    shared: Arc<Shared>,
    call: Arc<Mutex<Call>>,
    /// When its server was asked.
    begun: Mutex<Instant>,
    /// When progress was last told.
    told: Mutex<Option<Instant>>,
    is_over: bool,
}

impl OngoingCall {
    /// The call came further. Not every step is told, but the next list of calls knows the last one.
    pub fn progress(&self, progress: CallProgress) {
        let message = progress.message.map(bounded);
        entry(&self.call).progress = Some(CallProgress {
            message,
            ..progress
        });
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TELL_PROGRESS_EVERY) {
            *told = Some(Instant::now());
            drop(told);
            self.shared.tell(&self.call);
        }
    }

    /// Its server is asked only now: until here somebody had to allow the call, which takes as long as it
    /// takes.
    pub fn allowed(&self) {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The call is over.
    pub fn end(mut self, ending: CallEnding) {
        self.finish(ending);
    }

    fn finish(&mut self, ending: CallEnding) {
        self.is_over = true;
        let begun = self.begun.get_mut();
        let took = begun.unwrap_or_else(PoisonError::into_inner).elapsed();
        let mut call = entry(&self.call);
        call.milliseconds = Some(milliseconds(took));
        (call.state, call.bytes, call.error) = match ending {
            CallEnding::Ok { bytes } => (CallState::Ok, Some(bytes), None),
            CallEnding::ToolError { bytes } => (CallState::ToolError, Some(bytes), None),
            CallEnding::Error(error) => (CallState::Error, None, Some(bounded(error))),
            CallEnding::Cancelled => (CallState::Cancelled, None, None),
            CallEnding::Denied(error) => (CallState::Denied, None, Some(bounded(error))),
        };
        let (server, state) = (call.server.clone(), call.state);
        drop(call);
        let mut pages = self.shared.lock();
        pages.in_flight = pages.in_flight.saturating_sub(1);
        if !server.is_empty() {
            pages.timings(&server).add(state, took);
        }
        drop(pages);
        self.shared.tell(&self.call);
    }
}

impl Drop for OngoingCall {
    fn drop(&mut self) {
        if !self.is_over {
            self.finish(CallEnding::Cancelled);
        }
    }
}

fn entry(call: &Mutex<Call>) -> MutexGuard<'_, Call> {
    call.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An unused entry, with room for its texts.
fn blank() -> Arc<Mutex<Call>> {
    let text = || String::with_capacity(TEXT_CAPACITY);
    Arc::new(Mutex::new(Call {
        id: text(),
        at: Moment::now(),
        principal: text(),
        server: text(),
        method: text(),
        name: text(),
        state: CallState::Running,
        milliseconds: None,
        bytes: None,
        error: None,
        progress: None,
    }))
}

/// Puts another text in the place of one, in its memory if it has room.
fn replace(text: &mut String, with: &str) {
    text.clear();
    text.shrink_to(TEXT_CAPACITY);
    text.push_str(with);
}

/// Milliseconds, to the microsecond.
pub(crate) fn milliseconds(took: Duration) -> f64 {
    (took.as_secs_f64() * 1_000_000.0).round() / 1000.0
}

fn bounded(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        None => text,
        Some((end, _)) => {
            let mut short = text;
            short.truncate(end);
            short.push('…');
            short
        }
    }
}

#[cfg(test)]
#[path = "call_book_tests.rs"]
mod tests;
