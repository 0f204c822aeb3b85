//! Answers to requests while they are made: as one document if that is soon and alone, otherwise as
//! a stream of events. The work is done by whoever sends the answer, without a task of its own.

use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep};

use super::events::{self, push_event};
use super::session::{Active, Session};
use super::sessions::Sessions;
use super::streams::{Streams, Work};
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

fn remember(slot: &mut Option<Waker>, context: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(context.waker()),
        None => *slot = Some(context.waker().clone()),
    }
}

/// Shows a silent stream to be alive.
#[derive(Debug)]
struct Comments {
    timer: Pin<Box<Sleep>>,
    interval: Duration,
}

impl Comments {
    fn every(interval: Duration) -> Self {
        let timer = Box::pin(tokio::time::sleep(interval));
        Self { timer, interval }
    }

    fn postpone(&mut self) {
        self.timer.as_mut().reset(Instant::now() + self.interval);
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
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
        }
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
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

/// The messages about a request of a session. It becomes a stream of that session with the first
/// of them.
#[derive(Debug)]
pub(super) struct Channel {
    streams: Arc<Streams>,
    state: Mutex<ChannelState>,
}

#[derive(Debug)]
enum ChannelState {
    Unopened(Option<Waker>),
    Open(u64),
    Closed,
}

impl Channel {
    pub(super) fn new(streams: Arc<Streams>) -> Self {
        let state = Mutex::new(ChannelState::Unopened(None));
        Self { streams, state }
    }

    /// The stream, which begins now if it has not.
    pub(super) fn open(&self) -> u64 {
        let mut state = self.state();
        if let ChannelState::Open(stream) = *state {
            return stream;
        }
        let stream = self.streams.open();
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
                let stream = self.streams.open();
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

/// A stream of a session on its way to the client.
pub(super) struct SessionEvents {
    session: Arc<Session>,
    stream: u64,
    reader: u64,
    /// What is sent before anything else.
    opening: Option<Bytes>,
    work: Option<(Work, Active)>,
    _reading: Active,
    comments: Comments,
    /// The session ends with this stream.
    ends: Option<Arc<Sessions>>,
}

impl SessionEvents {
    pub(super) fn new(
        session: &Arc<Session>,
        stream: u64,
        reader: u64,
        comment_interval: Duration,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            stream,
            reader,
            opening: None,
            work: None,
            _reading: session.begin_reading(),
            comments: Comments::every(comment_interval),
            ends: None,
        }
    }

    /// Sends `event` first.
    pub(super) fn opening_with(mut self, event: Bytes) -> Self {
        self.opening = Some(event);
        self
    }

    /// Does the work whose answer ends the stream.
    pub(super) fn working(mut self, serving: Serving, active: Active) -> Self {
        let work = Arc::new(Mutex::new(Some(serving)));
        self.session.streams.set_work(self.stream, &work);
        self.work = Some((work, active));
        self
    }

    /// Ends the session with the stream.
    pub(super) fn ending(mut self, sessions: Arc<Sessions>) -> Self {
        self.ends = Some(sessions);
        self
    }

    pub(super) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(event) = self.opening.take() {
            return Poll::Ready(Some(event));
        }
        if let Some((work, _)) = &self.work
            && let Poll::Ready(answer) = poll_work(work, context)
        {
            self.session.streams.finish(self.stream, &answer);
            self.work = None;
        }
        let streams = &self.session.streams;
        match streams.poll_read(self.stream, self.reader, context) {
            Poll::Ready(event) => {
                self.comments.postpone();
                Poll::Ready(event)
            }
            Poll::Pending => self.comments.poll(context),
        }
    }
}

/// Goes on with the work, if nobody has taken it away.
fn poll_work(work: &Work, context: &mut Context<'_>) -> Poll<Answer> {
    let mut slot = work.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(serving) = &mut *slot else {
        return Poll::Pending;
    };
    let polled = serving.as_mut().poll(context);
    if polled.is_ready() {
        *slot = None;
    }
    polled
}

/// Takes the work away from whoever does it.
pub(super) fn take_work(work: &Work) -> Option<Serving> {
    work.lock().unwrap_or_else(PoisonError::into_inner).take()
}

impl Drop for SessionEvents {
    fn drop(&mut self) {
        self.session.streams.detach(self.stream, self.reader);
        if let Some(sessions) = self.ends.take() {
            sessions.end(&self.session);
        }
        if let Some((work, active)) = self.work.take()
            && let Some(serving) = take_work(&work)
        {
            self.session.adopt(serving, Some(self.stream), active);
        }
    }
}

impl std::fmt::Debug for RequestEvents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RequestEvents")
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SessionEvents {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SessionEvents")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Held").finish_non_exhaustive()
    }
}
