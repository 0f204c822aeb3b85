//! What waits for a client on a WebSocket, and how much of it the client has taken.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::limits::MAX_QUEUED_BYTES;
use crate::serve::service::Sink;

/// Messages for the task that owns the socket. Anybody may put some there.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    owner: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<Bytes>,
    n_bytes: usize,
    is_closed: bool,
}

impl Queue {
    /// Queues a message however much waits before it. For the owner, which looks after it anyway.
    pub(super) fn push(&self, message: Bytes) {
        let mut state = self.lock();
        state.n_bytes += message.len();
        state.messages.push_back(message);
    }

    pub(super) fn pop(&self) -> Option<Bytes> {
        let mut state = self.lock();
        let message = state.messages.pop_front()?;
        state.n_bytes -= message.len();
        Some(message)
    }

    pub(super) fn n_bytes(&self) -> usize {
        self.lock().n_bytes
    }

    /// Whom to wake when there is more to send. To be called before the queue is looked at.
    pub(super) fn register(&self, owner: &Waker) {
        self.owner.register(owner);
    }

    /// Drops everything, now and from now on.
    pub(super) fn close(&self) {
        *self.lock() = State {
            is_closed: true,
            ..State::default()
        };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Queue {
    fn send(&self, message: Bytes) -> bool {
        let mut state = self.lock();
        let fits = state.n_bytes == 0 || state.n_bytes + message.len() <= MAX_QUEUED_BYTES;
        if state.is_closed || !fits {
            return false;
        }
        state.n_bytes += message.len();
        state.messages.push_back(message);
        drop(state);
        self.owner.wake();
        true
    }
}

/// A stream that knows how much of what it was told to expect it has not written yet.
#[derive(Debug)]
pub(super) struct Meter<S> {
    io: S,
    n_expected: usize,
    is_blocked: bool,
    has_moved: bool,
}

impl<S> Meter<S> {
    pub(super) fn new(io: S) -> Self {
        Self {
            io,
            n_expected: 0,
            is_blocked: false,
            has_moved: false,
        }
    }

    pub(super) fn expect(&mut self, n_bytes: usize) {
        self.n_expected += n_bytes;
    }

    /// Everything is written. Frames have heads, so the count alone does not tell.
    pub(super) fn expect_nothing(&mut self) {
        self.n_expected = 0;
    }

    pub(super) fn n_expected(&self) -> usize {
        self.n_expected
    }

    /// Whether the other side has made room where there was none, since this was asked before.
    /// Writing alone means nothing: the system takes some for a peer that is gone.
    pub(super) fn take_has_moved(&mut self) -> bool {
        std::mem::take(&mut self.has_moved)
    }

    fn count(&mut self, written: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(written)) = written {
            self.has_moved |= self.is_blocked;
            self.n_expected = self.n_expected.saturating_sub(*written);
        }
        self.is_blocked = written.is_pending();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Meter<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Meter<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.count(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
