//! What a connection is doing, as seen from outside: so that one that says nothing for too long,
//! or says it too slowly, can be told from one that waits for its answer.

use std::collections::BTreeMap;
use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::AbortHandle;

use super::options::HttpLimits;

/// Between requests.
const IDLE: u8 = 0;
/// The head of a request has begun, or the connection is new.
const HEAD: u8 = 1;
/// A request is being read, worked on or answered.
const BUSY: u8 = 2;

/// How long a client that takes nothing of its answer is spared where there are too many connections.
const STUCK: Duration = Duration::from_secs(2);
/// The client takes what it is sent.
const FLOWING: u64 = u64::MAX;

/// The doings of one connection. Time is counted in ticks of the registry: that costs nothing
/// where it is noted, which is for every request.
#[derive(Debug)]
pub(super) struct Pulse {
    phase: AtomicU8,
    since: AtomicU64,
    /// The tick after which nothing could be written, or [`FLOWING`].
    stuck: AtomicU64,
    clock: Arc<AtomicU64>,
}

impl Pulse {
    fn enter(&self, phase: u8) {
        let now = self.clock.load(Ordering::Relaxed);
        self.since.store(now, Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    /// A request has arrived; until the guard is gone, the connection has something to do.
    pub(super) fn busy(self: &Arc<Self>) -> Busy {
        self.enter(BUSY);
        Busy(Arc::clone(self))
    }

    /// The request is refused: the rest of it counts no more than one that has not arrived.
    pub(super) fn refuse(&self) {
        self.enter(HEAD);
    }

    /// Whether a request is being read, worked on or answered.
    pub(super) fn is_busy(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == BUSY
    }

    fn heard(&self) {
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.enter(HEAD);
        }
    }

    /// A long answer that is still being sent is a sign of life.
    fn said(&self) {
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.enter(IDLE);
        }
        if self.stuck.load(Ordering::Relaxed) != FLOWING {
            self.stuck.store(FLOWING, Ordering::Relaxed);
        }
    }

    /// The client takes nothing.
    fn choked(&self) {
        if self.stuck.load(Ordering::Relaxed) == FLOWING {
            let now = self.clock.load(Ordering::Relaxed);
            self.stuck.store(now, Ordering::Relaxed);
        }
    }
}

/// Marks a connection as busy.
#[derive(Debug)]
pub(super) struct Busy(Arc<Pulse>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.enter(IDLE);
    }
}

/// All connections of a server.
#[derive(Debug)]
pub(super) struct Connections {
    clock: Arc<AtomicU64>,
    tick: Duration,
    head_ticks: u64,
    idle_ticks: u64,
    stall_ticks: u64,
    stuck_ticks: u64,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    entries: BTreeMap<u64, (Arc<Pulse>, Option<AbortHandle>)>,
}

/// A place among the connections of a server.
#[derive(Debug)]
pub(super) struct Place {
    connections: Arc<Connections>,
    number: u64,
    pub(super) pulse: Arc<Pulse>,
}

impl Connections {
    /// How exact the clock is: fine enough for the shortest of the limits.
    pub(super) fn new(limits: &HttpLimits) -> Self {
        let shortest = limits.header_timeout.min(limits.keep_alive);
        let shortest = shortest.min(limits.stall);
        let tick = (shortest / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
        let ticks = |limit: Duration| {
            let ticks = limit.as_nanos().div_ceil(tick.as_nanos());
            u64::try_from(ticks).unwrap_or(u64::MAX)
        };
        Self {
            clock: Arc::new(AtomicU64::new(0)),
            tick,
            head_ticks: ticks(limits.header_timeout),
            idle_ticks: ticks(limits.keep_alive),
            stall_ticks: ticks(limits.stall),
            stuck_ticks: ticks(STUCK),
            open: Mutex::default(),
        }
    }

    /// How often [`Connections::tick`] wants to be called.
    pub(super) fn tick_interval(&self) -> Duration {
        self.tick
    }

    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let clock = Arc::clone(&self.clock);
        let pulse = Arc::new(Pulse {
            phase: AtomicU8::new(HEAD),
            since: AtomicU64::new(clock.load(Ordering::Relaxed)),
            stuck: AtomicU64::new(FLOWING),
            clock,
        });
        let mut open = self.open();
        open.next += 1;
        let number = open.next;
        open.entries.insert(number, (Arc::clone(&pulse), None));
        drop(open);
        Place {
            connections: Arc::clone(self),
            number,
            pulse,
        }
    }

    /// Says how the connection can be ended. It may be over already.
    pub(super) fn set_abort(&self, number: u64, abort: AbortHandle) {
        if let Some(entry) = self.open().entries.get_mut(&number) {
            entry.1 = Some(abort);
        }
    }

    /// Lets time pass, and ends connections that have had too much of it.
    pub(super) fn tick(&self) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        let mut overdue = Vec::new();
        for (pulse, abort) in self.open().entries.values() {
            let age = now.saturating_sub(pulse.since.load(Ordering::Relaxed));
            let stuck = now.saturating_sub(pulse.stuck.load(Ordering::Relaxed));
            let is_late = match pulse.phase.load(Ordering::Relaxed) {
                HEAD => age > self.head_ticks,
                IDLE => age > self.idle_ticks,
                _busy => false,
            };
            if is_late || stuck > self.stall_ticks {
                overdue.extend(abort.clone());
            }
        }
        for abort in overdue {
            abort.abort();
        }
    }

    /// Ends a connection that has no request, if there is one: the oldest that has not sent the whole head of one, else
    /// the one that is idle for longest, else one that does not take its answer.
    pub(super) fn evict_unused(&self) -> bool {
        let now = self.clock.load(Ordering::Relaxed);
        let mut open = self.open();
        let unused = open.entries.values_mut().filter_map(|(pulse, abort)| {
            let since = pulse.since.load(Ordering::Relaxed);
            let stuck = pulse.stuck.load(Ordering::Relaxed);
            let rank = match pulse.phase.load(Ordering::Relaxed) {
                HEAD => (0, since),
                IDLE => (1, since),
                _busy if now.saturating_sub(stuck) > self.stuck_ticks => (2, stuck),
                _busy => return None,
            };
            abort.is_some().then_some((rank, abort))
        });
        let first = unused.min_by_key(|(rank, _)| *rank);
        // Taken, so that the next one is another.
        let taken = first.and_then(|(_, abort)| abort.take());
        taken.inspect(AbortHandle::abort).is_some()
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().entries.remove(&self.number);
    }
}

/// A socket that tells what goes over it.
#[derive(Debug)]
pub(super) struct Watched<S> {
    socket: S,
    pulse: Arc<Pulse>,
}

impl<S> Watched<S> {
    pub(super) fn new(socket: S, pulse: Arc<Pulse>) -> Self {
        Self { socket, pulse }
    }

    fn note(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Ready(_) => self.pulse.said(),
            Poll::Pending => self.pulse.choked(),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.socket).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.pulse.heard();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(context, bytes);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(context, slices);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
