//! The requests that one server works on: which of them a question may be about, and who has to wait
//! for whom so that this can be told.
//!
//! A pipe does not say for whom its server asks. So a question is put to a client only if every request
//! that the server may still be working on is of one session; otherwise it has to wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::caller::Abilities;

/// How long a server is taken to go on with a request that was taken back, or took too long: what it
/// asks in that time may be about it.
const WORKS_ON_FOR: Duration = Duration::from_secs(10);
/// How long a client thinks about an answer before its request is taken to ask nothing else meanwhile:
/// a server that asks several things for one call asks them right after each other.
const RESTS_AFTER: Duration = Duration::from_secs(1);
/// The same for a request that has been seen to do so.
const RESTS_LATE_AFTER: Duration = Duration::from_secs(5);
/// Requests remembered that were given up.
const MAX_GIVEN_UP: usize = 1024;

/// The requests on their way to one server, with whoever stands beside each.
pub(super) struct Calls<W> {
    next: u64,
    all: BTreeMap<u64, Call<W>>,
    /// Those who wait to begin although they may be asked something, in the order of their numbers.
    queue: BTreeSet<u64>,
    /// Those that nobody waits for any more, oldest first.
    given_up: VecDeque<GivenUp>,
}

/// A request on its way.
pub(super) struct Call<W> {
    caller: Caller,
    witness: W,
    /// Questions of the server that it waits for.
    open: u32,
    /// When it asks nothing else, as long as it waits for those.
    rests_at: Instant,
}

/// Who makes a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    /// Requests of one session are the same to it.
    pub(super) session: u64,
    /// What it can be asked.
    pub(super) can: Abilities,
    /// Whether it only wants to know what there is, for which servers ask nobody.
    pub(super) only_looks: bool,
}

struct GivenUp {
    session: u64,
    until: Instant,
}

/// Which request a question is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum About<W> {
    One(u64, W),
    /// Maybe one that was given up.
    GivenUp,
    /// There is none.
    Nothing,
    /// Any of so many. That may be other when some of them are done.
    Any(usize),
}

/// What a request has to wait for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InTheWay {
    Nothing,
    /// Requests of others.
    Others,
    /// Only such as were given up or wait for answers, until then.
    Until(Instant),
}

impl<W: Clone> Calls<W> {
    /// What a request has to wait for before it may begin at a server that asks this. `number` is its
    /// place in the queue, if it has one.
    ///
    /// Who may be asked has the server for itself, but for requests that rest, so that it is clear who
    /// is asked. Others run at once, but not beside a request that may be asked, unless that waits for
    /// an answer anyway.
    pub(super) fn in_the_way(
        &self,
        caller: Caller,
        number: Option<u64>,
        asks: Abilities,
    ) -> InTheWay {
        if caller.only_looks || !asks.any() {
            return InTheWay::Nothing;
        }
        let may_be_asked = |caller: Caller| caller.can.and(asks).any();
        let working = || self.all.values().filter(|call| !call.caller.only_looks);
        let mut others = working().filter(|call| call.caller.session != caller.session);
        if !may_be_asked(caller) {
            let is_in_the_way = |call: &Call<W>| may_be_asked(call.caller) && call.open == 0;
            let nobody_is_asked = || working().all(|call| call.open == 0);
            if others.any(is_in_the_way) || !self.queue.is_empty() && nobody_is_asked() {
                return InTheWay::Others;
            }
            return InTheWay::Nothing;
        }
        if others.any(|call| call.open == 0) {
            return InTheWay::Others;
        }
        let is_its_own = |call: &Call<W>| call.caller.session == caller.session;
        let first = self.queue.first().copied();
        if first.is_some() && first != number && !working().any(is_its_own) {
            return InTheWay::Others;
        }
        let others = working().filter(|call| !is_its_own(call) && !call.rests());
        let given_up = self.given_up();
        let given_up = given_up.filter(|given_up| given_up.session != caller.session);
        let until = others.map(|call| call.rests_at);
        let until = until.chain(given_up.map(|given_up| given_up.until));
        until.max().map_or(InTheWay::Nothing, InTheWay::Until)
    }

    /// A place in the queue.
    pub(super) fn queue_up(&mut self) -> u64 {
        self.next += 1;
        self.queue.insert(self.next);
        self.next
    }

    pub(super) fn leave_queue(&mut self, number: u64) {
        self.queue.remove(&number);
    }

    pub(super) fn add(&mut self, caller: Caller, witness: W) -> u64 {
        self.next += 1;
        let call = Call {
            caller,
            witness,
            open: 0,
            rests_at: Instant::now(),
        };
        self.all.insert(self.next, call);
        self.next
    }

    /// Its answer came, or the server is gone. What is left of it is to be dropped outside of locks.
    pub(super) fn done(&mut self, number: u64) -> Option<Call<W>> {
        self.all.remove(&number)
    }

    /// Nobody waits for its answer any more, but the server may not know that.
    pub(super) fn give_up(&mut self, number: u64) -> Option<Call<W>> {
        let call = self.all.remove(&number)?;
        if !call.caller.only_looks {
            let now = Instant::now();
            self.given_up.retain(|given_up| given_up.until > now);
            if self.given_up.len() >= MAX_GIVEN_UP {
                self.given_up.pop_front();
            }
            self.given_up.push_back(GivenUp {
                session: call.caller.session,
                until: now + WORKS_ON_FOR,
            });
        }
        Some(call)
    }

    fn given_up(&self) -> impl Iterator<Item = &GivenUp> {
        let now = Instant::now();
        let all = self.given_up.iter();
        all.filter(move |given_up| given_up.until > now)
    }

    /// The newest request of the one client that there is.
    pub(super) fn newest(&self) -> Option<W> {
        self.all
            .values()
            .next_back()
            .map(|call| call.witness.clone())
    }

    /// Which request the server means when it says something now. Clients that cannot be asked
    /// count, too: the server was told that all can be.
    pub(super) fn meant(&self) -> About<W> {
        let newest_first = || self.all.iter().rev();
        let working = || newest_first().filter(|(_, call)| !call.caller.only_looks);
        let awake = || working().filter(|(_, call)| !call.rests());
        let mut given_up = self.given_up().map(|given_up| given_up.session).peekable();
        if given_up.peek().is_some() {
            let newest = awake().next();
            let sessions = awake().map(|(_, call)| call.caller.session);
            let mut sessions = sessions.chain(given_up);
            let session = sessions.next();
            let is_one = sessions.all(|other| Some(other) == session);
            return match newest.filter(|_| is_one) {
                Some((number, call)) => About::One(*number, call.witness.clone()),
                None => About::GivenUp,
            };
        }
        if awake().next().is_some() {
            return among(awake());
        }
        match among(working()) {
            About::Nothing => among(newest_first()),
            about => about,
        }
    }

    /// Its client is asked something.
    pub(super) fn ask(&mut self, number: u64) {
        if let Some(call) = self.all.get_mut(&number) {
            call.open += 1;
            let after = if call.open > 1 {
                RESTS_LATE_AFTER
            } else {
                RESTS_AFTER
            };
            call.rests_at = call.rests_at.max(Instant::now() + after);
        }
    }

    /// It was answered.
    pub(super) fn answered(&mut self, number: u64) {
        if let Some(call) = self.all.get_mut(&number) {
            call.open = call.open.saturating_sub(1);
        }
    }
}

impl<W> Call<W> {
    /// Whether it waits so long for answers already that nothing else is about it.
    fn rests(&self) -> bool {
        self.open > 0 && Instant::now() >= self.rests_at
    }
}

/// The newest of these, which come first, if they are all of one session.
fn among<'a, W: Clone + 'a>(mut calls: impl Iterator<Item = (&'a u64, &'a Call<W>)>) -> About<W> {
    let Some((number, newest)) = calls.next() else {
        return About::Nothing;
    };
    let session = newest.caller.session;
    match calls
        .filter(|(_, other)| other.caller.session != session)
        .count()
    {
        0 => About::One(*number, newest.witness.clone()),
        n_others => About::Any(n_others + 1),
    }
}

impl<W> Default for Calls<W> {
    fn default() -> Self {
        Self {
            next: 0,
            all: BTreeMap::new(),
            queue: BTreeSet::new(),
            given_up: VecDeque::new(),
        }
    }
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
