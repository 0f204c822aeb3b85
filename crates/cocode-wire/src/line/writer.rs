//! Writes lines so that a cancelled sender can never leave half of one behind.
//!
//! A sender writes by itself while the stream takes everything, which costs no task switch. What
//! does not fit stays in one bounded buffer, and the writer task finishes it. So does what is sent
//! while many are about to send, or under a [`Cork`](super::cork::Cork): one write then takes it all.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, BytesMut};
use rustix::io::ioctl_fionread;
use tokio::io::AsyncWrite;
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::cork;
use crate::error::{Closed, LinkError};
use crate::limits::MAX_QUEUED_BYTES;

/// Room that a writer keeps for what it has to queue next.
const KEPT_ROOM: usize = 64 * 1024;

pub(crate) type Sink = Pin<Box<dyn AsyncWrite + Send>>;

/// Where a writer writes to.
pub(crate) enum Output {
    /// The stdin of a process.
    Pipe(pipe::Sender),
    Stream(Sink),
}

impl Output {
    fn as_mut(&mut self) -> Pin<&mut (dyn AsyncWrite + Send)> {
        match self {
            Self::Pipe(pipe) => Pin::new(pipe) as Pin<&mut (dyn AsyncWrite + Send)>,
            Self::Stream(stream) => stream.as_mut(),
        }
    }
}

/// What became of a message that was not to be waited for.
#[derive(Debug)]
pub(crate) enum Taken {
    Whole,
    /// There is no room for it at this moment.
    Not(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct LineWriter {
    state: Mutex<State>,
    /// The buffer has something for the writer task.
    work: Notify,
    /// The buffer has room again, or the writer is closed.
    room: Notify,
}

struct State {
    sink: Result<Output, Closed>,
    queued: BytesMut,
    /// Somebody is finishing the buffer, or will soon; nobody else writes.
    draining: bool,
    /// That somebody is whoever ends a cork. A stream knows one waker, and nobody takes the place of
    /// that of the writer task.
    held: bool,
}

impl LineWriter {
    pub(crate) fn new(sink: Sink) -> Self {
        Self::to(Output::Stream(sink))
    }

    pub(crate) fn to(output: Output) -> Self {
        let state = State {
            sink: Ok(output),
            queued: BytesMut::new(),
            draining: false,
            held: false,
        };
        Self {
            state: Mutex::new(state),
            work: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Whether a process has not read all that was written to it. Known for pipes only.
    pub(crate) fn has_unread(&self) -> bool {
        match &self.lock().sink {
            Ok(Output::Pipe(pipe)) => ioctl_fionread(pipe).is_ok_and(|bytes| bytes > 0),
            Ok(Output::Stream(_)) => false,
            Err(_) => true,
        }
    }

    /// Queues one message if that can be done without waiting, and gives it back otherwise.
    pub(crate) fn send_now(self: &Arc<Self>, mut line: Vec<u8>) -> Result<Taken, LinkError> {
        end_line(&mut line);
        let taken = self.try_send(&line, || cork::holds(self))?;
        Ok(if taken {
            Taken::Whole
        } else {
            Taken::Not(line)
        })
    }

    /// Waits until there is room for what [`send_now`](Self::send_now) gave back.
    ///
    /// Cancel safe: the message is either queued whole or not at all.
    pub(crate) async fn send_later(&self, line: Vec<u8>) -> Result<(), LinkError> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            // Registered before the check, so that no wake-up falls between check and wait.
            room.as_mut().enable();
            if self.try_send(&line, || false)? {
                return Ok(());
            }
            room.await;
        }
    }

    /// Queues one message if that can be done without waiting.
    pub(crate) fn post(&self, mut line: Vec<u8>) -> Result<bool, LinkError> {
        end_line(&mut line);
        self.try_send(&line, || false)
    }

    /// Whether there was room. If it `is_held`, nothing is written yet.
    fn try_send(&self, line: &[u8], is_held: impl FnOnce() -> bool) -> Result<bool, LinkError> {
        let mut state = self.lock();
        let State {
            sink,
            queued,
            draining,
            held,
        } = &mut *state;
        let sink = sink
            .as_mut()
            .map_err(|reason| LinkError::Closed(reason.clone()))?;
        if *draining {
            let fits = queued.is_empty() || queued.len() + line.len() <= MAX_QUEUED_BYTES;
            if fits {
                queued.extend_from_slice(line);
            }
            return Ok(fits);
        }
        if is_held() {
            queued.extend_from_slice(line);
            (*draining, *held) = (true, true);
            return Ok(true);
        }
        let mut rest = line;
        while !rest.is_empty() {
            // Nobody is woken through this context: the writer task polls again with its own.
            let mut context = Context::from_waker(Waker::noop());
            match sink.as_mut().poll_write(&mut context, rest) {
                Poll::Ready(Ok(written)) if written > 0 => rest = &rest[written..],
                Poll::Ready(outcome) => {
                    let reason = write_failure(outcome);
                    state.sink = Err(reason.clone());
                    self.work.notify_one();
                    return Err(LinkError::Closed(reason));
                }
                Poll::Pending => {
                    queued.extend_from_slice(rest);
                    *draining = true;
                    self.work.notify_one();
                    return Ok(true);
                }
            }
        }
        let mut context = Context::from_waker(Waker::noop());
        if !matches!(sink.as_mut().poll_flush(&mut context), Poll::Ready(Ok(()))) {
            // The writer task finishes it, or meets the same error.
            *draining = true;
            self.work.notify_one();
        }
        Ok(true)
    }

    /// Writes what was held back, unless the writer task has come first. What the stream does not
    /// take, that task finishes.
    pub(super) fn write_held(&self) {
        let mut state = self.lock();
        if !std::mem::take(&mut state.held) {
            return;
        }
        let mut context = Context::from_waker(Waker::noop());
        let written = self.poll_write(&mut state, &mut context);
        drop(state);
        if written != Poll::Ready(true) {
            self.work.notify_one();
        }
    }

    /// Queues one message however much waits before it. It is written by whoever calls
    /// [`poll_drain`](Self::poll_drain) next.
    pub(crate) fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.sink.is_err() {
            return;
        }
        state.draining = true;
        let begin = state.queued.len();
        state.queued.reserve(line.len() + 1);
        state.queued.extend_from_slice(line);
        unbreak(&mut state.queued[begin..]);
        state.queued.extend_from_slice(b"\n");
    }

    /// Bytes that wait for a slow reader.
    pub(crate) fn backlog(&self) -> usize {
        self.lock().queued.len()
    }

    /// Ready when the buffer has got something that its senders could not write, or the writer is
    /// closed.
    pub(crate) fn work(&self) -> Notified<'_> {
        self.work.notified()
    }

    /// Several are about to send: what they send is gathered from now on. Whoever calls this calls
    /// [`release`](Self::release) next, without waiting for anything in between.
    pub(crate) fn gather(&self) {
        self.lock().draining = true;
    }

    /// Lets the writer task write what was gathered, once those who are ready to send have done so.
    pub(crate) fn release(&self) {
        self.work.notify_one();
    }

    /// The writer task: finishes what senders could not write by themselves.
    pub(crate) async fn drain(self: Arc<Self>) {
        loop {
            self.work.notified().await;
            // Tasks that are ready to run, and so to send, come first.
            tokio::task::yield_now().await;
            let more = std::future::poll_fn(|context| self.poll_drain(context)).await;
            if !more {
                return;
            }
        }
    }

    /// Writes what is queued. Ready with `false` once the writer is closed.
    pub(crate) fn poll_drain(&self, context: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.lock();
        state.held = false;
        self.poll_write(&mut state, context)
    }

    fn poll_write(&self, state: &mut State, context: &mut Context<'_>) -> Poll<bool> {
        let State {
            sink,
            queued,
            draining,
            held: _,
        } = state;
        let Ok(open) = sink else {
            return Poll::Ready(false);
        };
        if !*draining {
            return Poll::Ready(true);
        }
        while !queued.is_empty() {
            match open.as_mut().poll_write(context, queued) {
                Poll::Ready(Ok(written)) if written > 0 => {
                    queued.advance(written);
                    self.room.notify_waiters();
                }
                Poll::Ready(outcome) => {
                    *sink = Err(write_failure(outcome));
                    self.room.notify_waiters();
                    return Poll::Ready(false);
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        match open.as_mut().poll_flush(context) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                *sink = Err(write_failure(Err(error)));
                self.room.notify_waiters();
                return Poll::Ready(false);
            }
            Poll::Pending => return Poll::Pending,
        }
        // A buffer that grew for one large message is not kept.
        if queued.try_reclaim(KEPT_ROOM + 1) {
            *queued = BytesMut::new();
        }
        *draining = false;
        self.room.notify_waiters();
        Poll::Ready(true)
    }

    /// Why the writer is closed, if it is.
    pub(crate) fn closed(&self) -> Option<Closed> {
        self.lock().sink.as_ref().err().cloned()
    }

    /// Ends the stream: whatever was queued and not written is dropped.
    pub(crate) fn close(&self, reason: Closed) {
        let mut state = self.lock();
        if state.sink.is_ok() {
            state.sink = Err(reason);
            state.queued = BytesMut::new();
        }
        drop(state);
        self.work.notify_one();
        self.room.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("State")
            .field("open", &self.sink.is_ok())
            .field("queued", &self.queued.len())
            .field("draining", &self.draining)
            .field("held", &self.held)
            .finish()
    }
}

fn write_failure(outcome: std::io::Result<usize>) -> Closed {
    match outcome {
        Ok(_none_taken) => Closed::ByPeer,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Closed::ByPeer,
        Err(error) => Closed::Io(Arc::new(error)),
    }
}

fn end_line(line: &mut Vec<u8>) {
    unbreak(line);
    line.push(b'\n');
}

/// Replaces line breaks by blanks, which mean the same: inside JSON they can only be white space between tokens.
/// Peers with universal newlines, as in Python, also end a line at a carriage return: what follows it would be
/// another message to them.
fn unbreak(line: &mut [u8]) {
    let mut rest = line;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        rest[at] = b' ';
        rest = &mut rest[at + 1..];
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
