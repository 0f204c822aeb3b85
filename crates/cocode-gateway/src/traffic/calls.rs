//! The requests that one server works on, and which of them a question may be about.
//!
//! A pipe does not say for whom its server asks. So a question is put to a client only if every request
//! that the server may still be working on is of one session; otherwise it has to wait.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::caller::Abilities;
use crate::witness::CallWitness;

/// How long a server may go on with a request that was taken back, or took too long: what it asks in
/// that time may be about it.
const WORKS_ON_FOR: Duration = Duration::from_secs(5);
/// Requests remembered that were given up.
const MAX_GIVEN_UP: usize = 256;

/// The requests on their way to one server.
#[derive(Default)]
pub(super) struct Calls {
    next: u64,
    all: BTreeMap<u64, Call>,
    /// Those that nobody waits for any more, oldest first.
    given_up: VecDeque<GivenUp>,
}

/// A request on its way.
pub(super) struct Call {
    /// Requests of one session are the same to it.
    session: u64,
    witness: Arc<CallWitness>,
    /// Questions of the server that it waits for.
    open: u32,
    /// Whether several questions were open at once: there may be more of that kind.
    asks_at_once: bool,
    /// Whether it has waited so long for one answer that another question is not about it.
    rests: bool,
    turn: Option<OwnedSemaphorePermit>,
}

struct GivenUp {
    session: u64,
    until: Instant,
}

/// Which request a question is about.
pub(super) enum About {
    One(u64, Arc<CallWitness>),
    /// Maybe one that was given up.
    GivenUp,
    /// There is none.
    Nothing,
    /// Any of so many. That may be other when some of them are done.
    Any(usize),
}

/// Whether requests of others are in the way.
pub(super) enum Others {
    None,
    Working,
    /// Only such as were given up, until then.
    Until(Instant),
}

impl Calls {
    pub(super) fn add(
        &mut self,
        session: u64,
        witness: &Arc<CallWitness>,
        turn: Option<OwnedSemaphorePermit>,
    ) -> u64 {
        self.next += 1;
        let call = Call {
            session,
            witness: Arc::clone(witness),
            open: 0,
            asks_at_once: false,
            rests: false,
            turn,
        };
        self.all.insert(self.next, call);
        self.next
    }

    /// Its answer came, or the server is gone. What is left of it is to be dropped outside of locks.
    pub(super) fn done(&mut self, number: u64) -> Option<Call> {
        self.all.remove(&number)
    }

    /// Nobody waits for its answer any more, but the server may not know that.
    pub(super) fn give_up(&mut self, number: u64) -> Option<Call> {
        let call = self.all.remove(&number)?;
        let now = Instant::now();
        self.given_up.retain(|given_up| given_up.until > now);
        if self.given_up.len() >= MAX_GIVEN_UP {
            self.given_up.pop_front();
        }
        self.given_up.push_back(GivenUp {
            session: call.session,
            until: now + WORKS_ON_FOR,
        });
        Some(call)
    }

    /// Whether a question may be about requests of other sessions that took no turn: those whose
    /// clients can be asked some of these, and those that were given up.
    pub(super) fn others(&self, session: u64, asks: Abilities) -> Others {
        let working = self.all.values().any(|call| {
            let is_working = call.turn.is_none() && !call.rests;
            is_working && call.session != session && call.witness.can().and(asks).any()
        });
        if working {
            return Others::Working;
        }
        let given_up = self
            .given_up()
            .filter(|given_up| given_up.session != session);
        match given_up.map(|given_up| given_up.until).max() {
            Some(until) => Others::Until(until),
            None => Others::None,
        }
    }

    fn given_up(&self) -> impl Iterator<Item = &GivenUp> {
        let now = Instant::now();
        self.given_up
            .iter()
            .filter(move |given_up| given_up.until > now)
    }

    /// The newest request of the one client that there is.
    pub(super) fn newest(&self) -> Option<Arc<CallWitness>> {
        let newest = self.all.values().next_back();
        newest.map(|call| Arc::clone(&call.witness))
    }

    /// Which request the server means when it says something now. Clients that cannot be asked
    /// count, too: the server was told that all can be.
    pub(super) fn meant(&self) -> About {
        let mut candidates = self.all.iter().rev().filter(|(_, call)| !call.rests);
        let mut newest = candidates.next();
        let mut given_up = self.given_up();
        if let Some(first) = given_up.next() {
            let session = newest.map_or(first.session, |(_, call)| call.session);
            let mut sessions = candidates.map(|(_, call)| call.session);
            let is_one = first.session == session
                && sessions.all(|other| other == session)
                && given_up.all(|other| other.session == session);
            return match newest.filter(|_| is_one) {
                Some((number, call)) => About::One(*number, Arc::clone(&call.witness)),
                None => About::GivenUp,
            };
        }
        let mut others: Box<dyn Iterator<Item = _>> = Box::new(candidates);
        if newest.is_none() {
            // A server that asks one more thing nevertheless is believed.
            let mut all = self.all.iter().rev();
            newest = all.next();
            others = Box::new(all);
        }
        let Some((number, call)) = newest else {
            return About::Nothing;
        };
        match others
            .filter(|(_, other)| other.session != call.session)
            .count()
        {
            0 => About::One(*number, Arc::clone(&call.witness)),
            n_others => About::Any(n_others + 1),
        }
    }

    /// Its client is asked something.
    pub(super) fn ask(&mut self, number: u64) {
        if let Some(call) = self.all.get_mut(&number) {
            call.open += 1;
            call.asks_at_once |= call.open > 1;
        }
    }

    /// Its client takes long to answer: lets others have its turn, unless its server is one that asks
    /// several things at once. Gives the turn, if it had one.
    pub(super) fn rest(&mut self, number: u64) -> Option<OwnedSemaphorePermit> {
        let call = self.all.get_mut(&number)?;
        if call.asks_at_once {
            return None;
        }
        call.rests = true;
        call.turn.take()
    }

    /// It was answered. A request that had let others have its turn brings it back.
    pub(super) fn answered(&mut self, number: u64, turn: Option<OwnedSemaphorePermit>) {
        if let Some(call) = self.all.get_mut(&number) {
            call.open = call.open.saturating_sub(1);
            call.rests = false;
            if turn.is_some() {
                call.turn = turn;
            }
        }
    }
}
