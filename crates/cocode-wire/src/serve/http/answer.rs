//! Answers to requests while they are made: as one document if that is soon and alone, otherwise as
//! a stream of events. The work is done by whoever sends the answer, without a task of its own.
//!
//! Here is what all requests share, and the streams of those that belong to no session.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use super::events::{self, push_event};
use super::guests::Stay;
use crate::serve::service::{Answer, Serving, Sink};

/// What came first of a request.
#[derive(Debug)]
pub(super) enum First {
    /// Its answer.
    Answer(Answer),
    /// Something that has to be said before, or too much time.
    Stream,
    /// The end of the server.
    GivenUp,
}

/// Waits for the first sign of a request. `said` is ready once something was said about it;
/// `patience` is how long nothing at all may come, for a client that takes streams; `is_over` tells
/// whether the server waits for nothing any more.
pub(super) async fn first(
    serving: &mut Serving,
    said: impl Fn(&Context<'_>) -> Poll<()>,
    patience: Option<Duration>,
    is_over: impl Fn() -> bool,
) -> First {
    // The clock is looked at only if there is something to wait for.
    let mut patience = pin!(patience.map(tokio::time::sleep));
    std::future::poll_fn(|context| {
        if let Poll::Ready(answer) = serving.as_mut().poll(context) {
            return Poll::Ready(First::Answer(answer));
        }
        if said(context).is_ready() {
            return Poll::Ready(First::Stream);
        }
        if is_over() {
            return Poll::Ready(First::GivenUp);
        }
        match patience.as_mut().as_pin_mut() {
            Some(sleep) => sleep.poll(context).map(|()| First::Stream),
            None => Poll::Pending,
        }
    })
    .await
}

/// Messages about a request of no session, on their way to its client.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<Queued>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Queued {
    messages: Vec<Bytes>,
    bytes: usize,
    waker: Option<Waker>,
    closed: bool,
}

impl Queue {
    /// `open` if the client takes streams at all.
    pub(super) fn new(open: bool, limit: usize) -> Self {
        let state = Queued {
            closed: !open,
            ..Queued::default()
        };
        Self {
            state: Mutex::new(state),
            limit,
        }
    }

    /// Ready once there is something.
    pub(super) fn poll_said(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if !state.messages.is_empty() {
            return Poll::Ready(());
        }
        remember(&mut state.waker, context);
        Poll::Pending
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state().messages.is_empty()
    }

    /// Everything there is, as events, with the answer at the end if there is one.
    pub(super) fn take(&self, answer: Option<&Answer>) -> Bytes {
        let mut state = self.state();
        let messages = std::mem::take(&mut state.messages);
        state.bytes = 0;
        drop(state);
        let mut text = Vec::new();
        for message in messages {
            push_event(&mut text, &message, None);
        }
        if let Some(answer) = answer.filter(|answer| !answer.body.is_empty()) {
            push_event(&mut text, &answer.body, None);
        }
        text.into()
    }

    fn state(&self) -> MutexGuard<'_, Queued> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Queue {
    fn send(&self, message: Bytes) -> bool {
        let mut state = self.state();
        if state.closed || state.bytes >= self.limit {
            return false;
        }
        state.bytes += message.len();
        state.messages.push(message);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
        true
    }
}

pub(super) fn remember(slot: &mut Option<Waker>, context: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(context.waker()),
        None => *slot = Some(context.waker().clone()),
    }
}

/// Shows a silent stream to be alive.
#[derive(Debug)]
pub(super) struct Comments {
    timer: Pin<Box<Sleep>>,
    interval: Duration,
}

impl Comments {
    pub(super) fn every(interval: Duration) -> Self {
        let timer = Box::pin(tokio::time::sleep(interval));
        Self { timer, interval }
    }

    pub(super) fn postpone(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.interval);
    }

    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.postpone();
        Poll::Ready(Some(events::COMMENT))
    }
}

/// The stream that answers a request of no session. Whoever drops it has no more interest in the
/// answer.
pub(super) struct RequestEvents {
    serving: Option<Serving>,
    queue: Arc<Queue>,
    comments: Comments,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// For as long as the guest may stay who has asked.
    stay: Option<Stay>,
}

impl RequestEvents {
    /// `end` is ready when the server gives up waiting.
    pub(super) fn new(
        serving: Serving,
        queue: Arc<Queue>,
        comment_interval: Duration,
        end: Pin<Box<dyn Future<Output = ()> + Send>>,
    ) -> Self {
        Self {
            serving: Some(serving),
            queue,
            comments: Comments::every(comment_interval),
            end,
            stay: None,
        }
    }

    /// Ends when the guest who has asked has to go.
    pub(super) fn staying(mut self, stay: Option<Stay>) -> Self {
        self.stay = stay;
        self
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(stay) = &mut self.stay
            && stay.poll_over(context).is_ready()
        {
            self.serving = None;
        }
        let Some(serving) = &mut self.serving else {
            return Poll::Ready(None);
        };
        if let Poll::Ready(answer) = serving.as_mut().poll(context) {
            self.serving = None;
            return Poll::Ready(Some(self.queue.take(Some(&answer))));
        }
        if self.queue.poll_said(context).is_ready() {
            self.comments.postpone();
            return Poll::Ready(Some(self.queue.take(None)));
        }
        if self.end.as_mut().poll(context).is_ready() {
            self.serving = None;
            return Poll::Ready(None);
        }
        self.comments.poll(context)
    }
}

impl std::fmt::Debug for RequestEvents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RequestEvents")
            .finish_non_exhaustive()
    }
}
