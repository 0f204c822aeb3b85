//! A request of a session before it has a stream, and the way to say something about it, which gives
//! it one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;

use super::answer::{First, first, remember};
use super::event_id::about;
use super::session::{Active, Session};
use super::streams::Streams;
use crate::raw::RawJson;
use crate::serve::service::{Serving, Sink};

/// The messages about a request of a session. It becomes a stream of that session with the first
/// of them.
#[derive(Debug)]
pub(super) struct Channel {
    streams: Arc<Streams>,
    requests: Requests,
    state: Mutex<ChannelState>,
}

/// The ids of the requests that a channel is for.
#[derive(Debug)]
pub(super) enum Requests {
    One(Option<RawJson>),
    Many(Vec<RawJson>),
}

#[derive(Debug)]
enum ChannelState {
    Unopened(Option<Waker>),
    Open(u64),
    Closed,
}

impl Channel {
    pub(super) fn new(streams: Arc<Streams>, requests: Requests) -> Self {
        Self {
            streams,
            requests,
            state: Mutex::new(ChannelState::Unopened(None)),
        }
    }

    fn open_stream(&self) -> u64 {
        self.streams.open(match &self.requests {
            Requests::One(id) => about(id),
            Requests::Many(ids) => about(ids),
        })
    }

    /// The stream, which begins now if it has not.
    pub(super) fn open(&self) -> u64 {
        let mut state = self.state();
        if let ChannelState::Open(stream) = *state {
            return stream;
        }
        let stream = self.open_stream();
        *state = ChannelState::Open(stream);
        stream
    }

    /// Ready once something was said.
    pub(super) fn poll_said(&self, context: &Context<'_>) -> Poll<()> {
        match &mut *self.state() {
            ChannelState::Open(_) => Poll::Ready(()),
            ChannelState::Unopened(waker) => {
                remember(waker, context);
                Poll::Pending
            }
            ChannelState::Closed => Poll::Pending,
        }
    }

    /// The client is gone. It cannot come back to a stream that it never saw.
    fn abandon(&self) -> Option<u64> {
        let mut state = self.state();
        if let ChannelState::Open(stream) = *state {
            return Some(stream);
        }
        *state = ChannelState::Closed;
        None
    }

    fn state(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Channel {
    fn send(&self, message: Bytes) -> bool {
        let mut state = self.state();
        let stream = match &mut *state {
            ChannelState::Open(stream) => *stream,
            ChannelState::Unopened(waker) => {
                let waker = waker.take();
                let stream = self.open_stream();
                *state = ChannelState::Open(stream);
                if let Some(waker) = waker {
                    waker.wake();
                }
                stream
            }
            ChannelState::Closed => return false,
        };
        // Still locked: messages go out in the order of the calls.
        self.streams.send(stream, &message)
    }
}

/// A request of a session while its client waits. If the client goes, the session goes on with it:
/// a lost connection is no cancellation there.
pub(super) struct Held {
    session: Arc<Session>,
    channel: Option<Arc<Channel>>,
    work: Option<(Serving, Active)>,
    /// The request that opens the session, which without its answer is of no use to anybody.
    opens: bool,
}

impl Held {
    pub(super) fn new(
        session: Arc<Session>,
        channel: Option<Arc<Channel>>,
        work: (Serving, Active),
    ) -> Self {
        Self {
            session,
            channel,
            work: Some(work),
            opens: false,
        }
    }

    /// For the request that opens the session.
    pub(super) fn opening(mut self) -> Self {
        self.opens = true;
        self
    }

    /// Waits for the first sign; see [`first`].
    pub(super) async fn first(
        &mut self,
        patience: Option<Duration>,
        is_over: impl Fn() -> bool,
    ) -> First {
        let Some((serving, _)) = &mut self.work else {
            return First::GivenUp;
        };
        let channel = self.channel.as_ref();
        let said = |context: &Context<'_>| match channel {
            Some(channel) => channel.poll_said(context),
            None => Poll::Pending,
        };
        let first = first(serving, said, patience, is_over).await;
        if let First::Answer(_) = first {
            self.work = None;
        }
        first
    }

    /// The stream if there is one; there will be none from now on if there is not.
    pub(super) fn close(self) -> Option<u64> {
        self.channel.as_ref().and_then(|channel| channel.abandon())
    }

    /// The stream, and the work that has to be gone on with there. `None` for a client that takes
    /// no streams.
    pub(super) fn stream(mut self) -> Option<(u64, Option<(Serving, Active)>)> {
        let stream = self.channel.as_ref()?.open();
        Some((stream, self.work.take()))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some((serving, active)) = self.work.take() else {
            return;
        };
        if self.opens {
            self.session.end();
            return;
        }
        let stream = self.channel.as_ref().and_then(|channel| channel.abandon());
        self.session.adopt(serving, stream, active);
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Held").finish_non_exhaustive()
    }
}
