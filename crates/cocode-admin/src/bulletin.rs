//! What happens, for everybody who listens: a ring of events that each listener reads at their own pace.
//!
//! There is no queue for a listener. All read the same ring, and whoever is too slow for it, or was away for
//! too long, is told that something was missed. While nobody listens nothing is kept, so that what happens
//! in a gateway that nobody looks at costs next to nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::model::{Call, ConfigNews, Elicitation, LogNews, Missed, Removed, Server};
use crate::model::{SharedNews, TokenNews, TrustNews};
use crate::moment::Moment;
use crate::sse::{event, json_text};

/// Events that are kept.
pub const MAX_EVENTS_KEPT: usize = 1024;
/// The same, in bytes.
pub const MAX_EVENT_BYTES_KEPT: usize = 4 * 1024 * 1024;
/// Listeners at a time.
pub const MAX_LISTENERS: usize = 64;
/// How long events are kept after the last listener has gone, who may come back.
pub const KEPT_FOR_RETURN: Duration = Duration::from_mins(2);

/// Events that a listener is given at once.
const MAX_BATCH: usize = 64;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A server is another than before.
    Server(Box<Server>),
    /// A server is gone.
    ServerRemoved(String),
    /// A call began, came further, or ended.
    Call(Box<Call>),
    /// A server asks something, or does not any more.
    Elicitation(Box<Elicitation>),
    /// Something about an entry that needs approval.
    Trust(TrustNews),
    /// Something about a token.
    Token(TokenNews),
    /// The configuration was read anew.
    Config(ConfigNews),
    /// A server has written to its log.
    Log(LogNews),
    /// Servers are shared by others, or are others, than before.
    Shared(SharedNews),
}

impl News {
    fn written(&self, id: u64) -> Bytes {
        let (name, data) = match self {
            Self::Server(server) => ("server", json_text(server)),
            Self::ServerRemoved(name) => {
                let removed = Removed {
                    name: name.clone(),
                    removed: true,
                };
                ("server", json_text(&removed))
            }
            Self::Call(call) => ("call", json_text(call)),
            Self::Elicitation(elicitation) => ("elicitation", json_text(elicitation)),
            Self::Trust(news) => ("trust", json_text(news)),
            Self::Token(news) => ("token", json_text(news)),
            Self::Config(news) => ("config", json_text(news)),
            Self::Log(news) => ("log", json_text(news)),
            Self::Shared(news) => ("shared", json_text(news)),
        };
        event(name, Some(id), &data)
    }
}

/// Where news are published. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Bulletin(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    ring: Mutex<Ring>,
    /// The id of the next event.
    next: watch::Sender<u64>,
    /// How many listen.
    attention: watch::Sender<usize>,
    /// What is wrong in the files, for whoever comes later than that was told.
    problems: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Ring {
    /// The events before `next`, without a gap.
    events: VecDeque<Bytes>,
    bytes: usize,
    next: u64,
    listeners: usize,
    /// Those of them who can answer questions.
    answerers: usize,
    /// When the last listener went.
    left: Option<Instant>,
}

impl Ring {
    fn is_watched(&self) -> bool {
        let may_return = |left: Instant| left.elapsed() < KEPT_FOR_RETURN;
        self.listeners > 0 || self.left.is_some_and(may_return)
    }

    fn oldest(&self) -> u64 {
        self.next.saturating_sub(self.events.len() as u64)
    }

    fn forget(&mut self) {
        self.events.clear();
        self.bytes = 0;
    }

    fn add(&mut self, text: Bytes) {
        self.bytes += text.len();
        self.events.push_back(text);
        self.next += 1;
        // The newest is kept, however large it is.
        while self.events.len() > MAX_EVENTS_KEPT
            || (self.bytes > MAX_EVENT_BYTES_KEPT && self.events.len() > 1)
        {
            let gone = self.events.pop_front();
            self.bytes -= gone.map_or(0, |gone| gone.len());
        }
    }
}

impl Default for Bulletin {
    fn default() -> Self {
        Self::new()
    }
}

impl Bulletin {
    /// One without news.
    pub fn new() -> Self {
        // Ids grow from one run to the next, too: so whoever comes back to a gateway that was started
        // anew is told that something was missed.
        let milliseconds = Moment::now().unix_seconds() * 1000.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a time of this age is a positive number far below the limit"
        )]
        Self::from_id(milliseconds as u64 * 1000)
    }

    fn from_id(next: u64) -> Self {
        let ring = Ring {
            events: VecDeque::new(),
            bytes: 0,
            next,
            listeners: 0,
            answerers: 0,
            left: None,
        };
        Self(Arc::new(Shared {
            ring: Mutex::new(ring),
            next: watch::Sender::new(next),
            attention: watch::Sender::new(0),
            problems: Mutex::default(),
        }))
    }

    /// Tells everybody who listens.
    pub fn publish(&self, news: &News) {
        self.tell(|id| news.written(id));
    }

    /// The same for news that are not made unless somebody may hear them.
    pub fn publish_with(&self, news: impl FnOnce() -> News) {
        self.tell(|id| news().written(id));
    }

    fn tell(&self, written: impl FnOnce(u64) -> Bytes) {
        let mut ring = self.0.lock();
        if !ring.is_watched() {
            ring.forget();
            ring.next += 1;
            return;
        }
        // Made while nobody else can publish, so that what is told last is how it is.
        let text = written(ring.next);
        ring.add(text);
        let next = ring.next;
        drop(ring);
        self.0.next.send_replace(next);
    }

    /// How many listen.
    pub fn listeners(&self) -> usize {
        self.0.lock().listeners
    }

    /// How many of those who listen can answer questions.
    pub fn answerers(&self) -> usize {
        self.0.lock().answerers
    }

    /// What is wrong in the files, in words.
    pub fn problems(&self) -> Vec<String> {
        let problems = self.0.problems.lock();
        problems.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, this is what is wrong in the files.
    pub fn set_problems(&self, problems: Vec<String>) {
        let known = self.0.problems.lock();
        *known.unwrap_or_else(PoisonError::into_inner) = problems;
    }

    /// Ends when somebody listens, for what has to be looked at to be known. Cancel safe.
    pub async fn attended(&self) {
        // The sender is held by us.
        drop(
            self.0
                .attention
                .subscribe()
                .wait_for(|listeners| *listeners > 0)
                .await,
        );
    }

    /// Listens: to what happens from now on or, with the id of the last event that was heard, to
    /// what has happened since. There is no place for more than [`MAX_LISTENERS`].
    pub(crate) fn listen(&self, after: Option<u64>) -> Option<Listener> {
        let mut ring = self.0.lock();
        if ring.listeners >= MAX_LISTENERS {
            return None;
        }
        if !ring.is_watched() {
            ring.forget();
        }
        ring.listeners += 1;
        self.0.attention.send_replace(ring.listeners);
        // An id that was never given is no reason to wait for it.
        let next = after.map_or(ring.next, |after| after.saturating_add(1).min(ring.next));
        let begun = ring.next.saturating_sub(1);
        drop(ring);
        Some(Listener {
            shared: Arc::clone(&self.0),
            changed: self.0.next.subscribe(),
            next,
            begun,
            can_answer: false,
        })
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who listens.
#[derive(Debug)]
pub(crate) struct Listener {
    shared: Arc<Shared>,
    changed: watch::Receiver<u64>,
    next: u64,
    /// The id of the event before the first that is to be heard.
    begun: u64,
    /// Whether they can answer questions, too.
    can_answer: bool,
}

impl Listener {
    /// One who can answer questions that are heard here.
    pub(crate) fn answering(mut self) -> Self {
        if !self.can_answer {
            self.can_answer = true;
            self.shared.lock().answerers += 1;
        }
        self
    }

    /// The id of the newest event when this began.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.min(self.next.saturating_sub(1))
    }

    /// What there is to be told, if there is anything.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        // What comes from now on is a change.
        self.changed.mark_unchanged();
        let ring = self.shared.lock();
        let mut text = Vec::new();
        let oldest = ring.oldest();
        if self.next < oldest {
            let missed = Missed {
                missed: oldest - self.next,
            };
            text.extend_from_slice(&event("missed", Some(oldest - 1), &json_text(&missed)));
            self.next = oldest;
        }
        let skipped = usize::try_from(self.next - oldest).unwrap_or(usize::MAX);
        for event in ring.events.iter().skip(skipped).take(MAX_BATCH) {
            text.extend_from_slice(event);
            self.next += 1;
        }
        (!text.is_empty()).then(|| text.into())
    }

    /// Ends when there may be something to be told. Cancel safe.
    pub(crate) async fn wait(&mut self) {
        if self.changed.changed().await.is_err() {
            // Whoever publishes is gone; so nothing will come.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut ring = self.shared.lock();
        ring.listeners = ring.listeners.saturating_sub(1);
        let own = usize::from(self.can_answer);
        ring.answerers = ring.answerers.saturating_sub(own);
        self.shared.attention.send_replace(ring.listeners);
        ring.left = Some(Instant::now());
    }
}

#[cfg(test)]
#[path = "bulletin_tests.rs"]
mod tests;
