//! What guests have open besides their sessions, so that each can be sent away from all of it, and
//! has to go when its time is over.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use futures_util::task::AtomicWaker;
use tokio::time::{Instant, Sleep};

use super::client_name::ClientName;
use super::guest::Guest;
use crate::serve::session_store::Whose;

/// Evictions that are remembered for requests which were let in before and open something later.
const MAX_REMEMBERED_EVICTIONS: usize = 1024;

/// How often the clock on the wall is looked at: the clock of timers stands still while the machine
/// sleeps.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);

/// The guests of a server.
#[derive(Debug, Default)]
pub(super) struct Guests {
    /// How many evictions there were.
    evictions: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    next: u64,
    open: HashMap<u64, Entry>,
    /// Who was sent away last, oldest first, each with the number of its eviction; all guests, where
    /// nobody is named.
    evicted: VecDeque<(u64, Option<Whose>)>,
    /// The number of the last eviction of those who are no guests.
    strangers_evicted: u64,
    /// How many of the seats of each guest are taken.
    seats: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Entry {
    guest: Option<Arc<str>>,
    credential: Option<Arc<str>>,
    leave: Arc<Leave>,
    socket: Option<Socket>,
}

/// A WebSocket, as others may see it.
#[derive(Clone, Debug)]
pub(super) struct Socket {
    pub(super) guest: Option<Arc<str>>,
    pub(super) endpoint: Option<String>,
    pub(super) since: Instant,
    pub(super) client: Arc<ClientName>,
}

/// Tells whoever has something open that its guest has to go.
#[derive(Debug, Default)]
struct Leave {
    is_told: AtomicBool,
    waker: AtomicWaker,
}

impl Leave {
    fn tell(&self) {
        self.is_told.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn poll_told(&self, context: &Context<'_>) -> Poll<()> {
        if !self.is_told.load(Ordering::Acquire) {
            self.waker.register(context.waker());
            if !self.is_told.load(Ordering::Acquire) {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }
}

/// Somebody who was let in, and when: who is sent away after that opens nothing any more.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) guest: Option<Guest>,
    /// The evictions that there had been.
    after: u64,
    /// One of the seats of the guest, for something that stays.
    seat: Option<Arc<Seat>>,
}

/// One of the seats that a guest may take at a time, until it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    guests: Arc<Guests>,
    guest: Arc<str>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut book = self.guests.book();
        if let Some(taken) = book.seats.get_mut(&self.guest) {
            *taken -= 1;
            if *taken == 0 {
                book.seats.remove(&self.guest);
            }
        }
    }
}

impl Visitor {
    fn id(&self) -> Option<&Arc<str>> {
        self.guest.as_ref().map(Guest::shared_id)
    }

    fn credential(&self) -> Option<&Arc<str>> {
        self.guest.as_ref().and_then(Guest::shared_credential)
    }

    /// Stands for whoever has begun something with that credential: it ends with that one, whoever goes on
    /// with it.
    pub(super) fn begun_with(mut self, credential: Option<String>) -> Self {
        let guest = self.guest.take();
        self.guest = guest.map(|guest| guest.had_come_with(credential));
        self
    }

    /// Whether something that this visitor has begun is meant.
    pub(super) fn is_meant(&self, whose: &Whose) -> bool {
        let (guest, credential) = (self.id(), self.credential());
        whose.includes(guest.map(|id| &**id), credential.map(|by| &**by))
    }
}

/// Ground and visits of different requests are the same if their guests are.
impl PartialEq for Visitor {
    fn eq(&self, other: &Self) -> bool {
        self.guest == other.guest
    }
}

impl Eq for Visitor {}

/// The number of evictions before a request is let in or not.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before(u64);

impl Before {
    pub(super) fn let_in(self, guest: Option<Guest>) -> Visitor {
        Visitor {
            guest,
            after: self.0,
            seat: None,
        }
    }
}

/// How long something may be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// Until there is an answer: who may ask may also hear it.
    Answer,
    /// For as long as the client likes, and its time allows.
    Standing,
}

impl Guests {
    /// Notes what a request that comes now has not missed.
    pub(super) fn now(&self) -> Before {
        Before(self.evictions.load(Ordering::Acquire))
    }

    /// Seats a visitor, unless as many seats of the guest are taken as there are. Nobody in particular
    /// needs none. The seat is kept by whatever is opened for the visitor.
    pub(super) fn seat(self: &Arc<Self>, mut visitor: Visitor, most: usize) -> Option<Visitor> {
        let Some(guest) = visitor.id().cloned() else {
            return Some(visitor);
        };
        let mut book = self.book();
        let taken = book.seats.entry(Arc::clone(&guest)).or_default();
        if *taken >= most {
            if *taken == 0 {
                book.seats.remove(&guest);
            }
            return None;
        }
        *taken += 1;
        drop(book);
        let guests = Arc::clone(self);
        visitor.seat = Some(Arc::new(Seat { guests, guest }));
        Some(visitor)
    }

    /// Something is open for a guest until what this gives is dropped. `None` for what nobody in particular
    /// is only answered on, which costs them nothing: nobody ends that.
    pub(super) fn open(self: &Arc<Self>, visitor: &Visitor, length: Length) -> Option<Stay> {
        let is_guarded = visitor.guest.is_some() || length == Length::Standing;
        is_guarded.then(|| self.enter(visitor, length, None))
    }

    /// A WebSocket is open, whoever has it.
    pub(super) fn open_socket(
        self: &Arc<Self>,
        visitor: &Visitor,
        endpoint: Option<String>,
        client: Arc<ClientName>,
    ) -> Stay {
        let socket = Socket {
            guest: visitor.id().cloned(),
            endpoint,
            since: Instant::now(),
            client,
        };
        self.enter(visitor, Length::Standing, Some(socket))
    }

    fn enter(self: &Arc<Self>, visitor: &Visitor, length: Length, socket: Option<Socket>) -> Stay {
        let leave = Arc::<Leave>::default();
        let mut book = self.book();
        if book.has_evicted(visitor) {
            leave.tell();
        }
        book.next += 1;
        let number = book.next;
        book.open.insert(
            number,
            Entry {
                guest: visitor.id().cloned(),
                credential: visitor.credential().cloned(),
                leave: Arc::clone(&leave),
                socket,
            },
        );
        drop(book);
        let until = visitor.guest.as_ref().and_then(Guest::has_to_go_at);
        let until = until.filter(|_| length == Length::Standing);
        Stay {
            guests: Arc::clone(self),
            number,
            leave,
            time: until.map(Time::until),
            _seat: visitor.seat.clone(),
        }
    }

    /// Whether a guest was sent away since it was let in.
    pub(super) fn has_evicted(&self, visitor: &Visitor) -> bool {
        self.book().has_evicted(visitor)
    }

    /// Ends everything that is open for somebody, or for all guests.
    pub(super) fn evict(&self, whose: Option<&Whose>) {
        let mut book = self.book();
        let number = self.evictions.fetch_add(1, Ordering::AcqRel) + 1;
        if book.evicted.len() == MAX_REMEMBERED_EVICTIONS {
            book.evicted.pop_front();
        }
        book.evicted.push_back((number, whose.cloned()));
        if whose == Some(&Whose::Strangers) {
            book.strangers_evicted = number;
        }
        let theirs = book.open.values().filter(|entry| match whose {
            Some(whose) => whose.includes(entry.guest.as_deref(), entry.credential.as_deref()),
            None => entry.guest.is_some(),
        });
        let leaves: Vec<_> = theirs.map(|entry| Arc::clone(&entry.leave)).collect();
        drop(book);
        for leave in leaves {
            leave.tell();
        }
    }

    /// Every WebSocket that is open and may stay so.
    pub(super) fn sockets(&self) -> Vec<Socket> {
        let book = self.book();
        let staying = |entry: &&Entry| !entry.leave.is_told.load(Ordering::Acquire);
        let entries = book.open.values().filter(staying);
        entries.filter_map(|entry| entry.socket.clone()).collect()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn has_evicted(&self, visitor: &Visitor) -> bool {
        let missed = |number: u64| number > visitor.after;
        if visitor.guest.is_none() {
            return missed(self.strangers_evicted);
        }
        let Some((oldest, _)) = self.evicted.front() else {
            return false;
        };
        // Who comes from before all that is remembered may have been among the forgotten.
        missed(oldest - 1)
            || self
                .evicted
                .iter()
                .rev()
                .take_while(|(number, _)| missed(*number))
                .any(|(_, evicted)| evicted.as_ref().is_none_or(|whose| visitor.is_meant(whose)))
    }
}

/// Something that is open for a guest.
#[derive(Debug)]
pub(super) struct Stay {
    guests: Arc<Guests>,
    number: u64,
    leave: Arc<Leave>,
    time: Option<Time>,
    _seat: Option<Arc<Seat>>,
}

impl Stay {
    /// Ready when the guest has to go, for whatever reason.
    pub(super) fn poll_over(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.leave.poll_told(context).is_ready() {
            return Poll::Ready(());
        }
        self.poll_late(context)
    }

    /// Ready when the time of the guest is over.
    pub(super) fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match &mut self.time {
            Some(time) => time.poll(context),
            None => Poll::Pending,
        }
    }

    /// Ready when the guest is sent away.
    pub(super) fn evicted(&self) -> impl Future<Output = ()> + Send + 'static {
        let leave = Arc::clone(&self.leave);
        std::future::poll_fn(move |context| leave.poll_told(context))
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.guests.book().open.remove(&self.number);
    }
}

/// The end of somebody's time.
#[derive(Debug)]
struct Time {
    until: SystemTime,
    deadline: Instant,
    look: Pin<Box<Sleep>>,
}

impl Time {
    fn until(until: SystemTime) -> Self {
        let left = until.duration_since(SystemTime::now()).unwrap_or_default();
        let now = Instant::now();
        let far = now + LOOK_INTERVAL;
        // What is too far away to be counted is reached by the clock on the wall, if ever.
        let deadline = now.checked_add(left);
        Self {
            until,
            deadline: deadline.unwrap_or(far + Duration::from_hours(24 * 365)),
            look: Box::pin(tokio::time::sleep_until(far.min(deadline.unwrap_or(far)))),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.look.as_mut().poll(context));
            let now = Instant::now();
            if now >= self.deadline || SystemTime::now() >= self.until {
                return Poll::Ready(());
            }
            let next = self.deadline.min(now + LOOK_INTERVAL);
            self.look.as_mut().reset(next);
        }
    }
}

#[cfg(test)]
#[path = "guests_tests.rs"]
mod tests;
