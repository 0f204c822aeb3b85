//! Session ids that nobody knows: remembered for a little while, and counted, so that whoever tries
//! ids does not keep the store busy.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::session::Ground;
use crate::serve::session_store::SessionKey;

/// How long it is remembered that there is no such session, and over which time ids are counted.
const REMEMBERED: Duration = Duration::from_secs(10);

/// Sessions that are remembered not to be there.
const MAX_REMEMBERED: usize = 2048;

/// Unknown sessions that one guest may ask for within that time before nobody looks any more.
const MAX_MISSES: usize = 200;

/// Whose session somebody asks for, and where. Nobody learns what others have: for each of them it is
/// there or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Wanted {
    pub(super) key: SessionKey,
    guest: Option<Arc<str>>,
    endpoint: Option<String>,
}

impl Wanted {
    pub(super) fn new(key: SessionKey, ground: &Ground) -> Self {
        let guest = ground.visitor.guest.as_ref();
        Self {
            key,
            guest: guest.map(|guest| Arc::clone(guest.shared_id())),
            endpoint: ground.endpoint.clone(),
        }
    }

    /// Whether the session of somebody there is meant.
    pub(super) fn is_of(&self, guest: Option<&str>, endpoint: Option<&str>) -> bool {
        self.guest.as_deref() == guest && self.endpoint.as_deref() == endpoint
    }
}

/// The sessions that are not there.
#[derive(Debug, Default)]
pub(super) struct Unknown(Mutex<Misses>);

#[derive(Debug, Default)]
struct Misses {
    /// Oldest first.
    order: VecDeque<(Instant, Wanted)>,
    known: HashSet<Wanted>,
    of_guests: HashMap<Option<Arc<str>>, usize>,
}

impl Unknown {
    /// Whether it is no use to look for that one.
    pub(super) fn is_hopeless(&self, wanted: &Wanted) -> bool {
        let mut misses = self.misses();
        misses.forget_old();
        let n_missed = misses.of_guests.get(&wanted.guest);
        misses.known.contains(wanted) || n_missed.is_some_and(|missed| *missed >= MAX_MISSES)
    }

    /// There is none.
    pub(super) fn remember(&self, wanted: Wanted) {
        let mut misses = self.misses();
        if misses.order.len() >= MAX_REMEMBERED {
            misses.forget_oldest();
        }
        if misses.known.insert(wanted.clone()) {
            *misses.of_guests.entry(wanted.guest.clone()).or_default() += 1;
            misses.order.push_back((Instant::now(), wanted));
        }
    }

    fn misses(&self) -> MutexGuard<'_, Misses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Misses {
    fn forget_old(&mut self) {
        let is_old = |(time, _): &(Instant, Wanted)| time.elapsed() > REMEMBERED;
        while self.order.front().is_some_and(is_old) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, oldest)) = self.order.pop_front() else {
            return;
        };
        self.known.remove(&oldest);
        if let Some(missed) = self.of_guests.get_mut(&oldest.guest) {
            *missed -= 1;
            if *missed == 0 {
                self.of_guests.remove(&oldest.guest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MISSES, MAX_REMEMBERED, REMEMBERED, Unknown, Wanted};
    use crate::serve::session_store::SessionKey;

    fn wanted(id: usize, guest: &str) -> Wanted {
        Wanted {
            key: SessionKey::of(&id.to_string()),
            guest: Some(guest.into()),
            endpoint: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_there_is_not_looked_for_again_for_a_while() {
        let unknown = Unknown::default();
        assert!(!unknown.is_hopeless(&wanted(1, "ann")));
        unknown.remember(wanted(1, "ann"));
        unknown.remember(wanted(1, "ann"));
        assert!(unknown.is_hopeless(&wanted(1, "ann")));
        assert!(
            !unknown.is_hopeless(&wanted(1, "bob")),
            "it may be that of bob"
        );
        tokio::time::advance(REMEMBERED * 2).await;
        assert!(!unknown.is_hopeless(&wanted(1, "ann")));
        assert!(unknown.misses().of_guests.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn who_tries_ids_is_not_looked_for_any_more_and_nobody_else_notices() {
        let unknown = Unknown::default();
        for id in 0..MAX_MISSES {
            assert!(!unknown.is_hopeless(&wanted(id, "eve")));
            unknown.remember(wanted(id, "eve"));
        }
        assert!(unknown.is_hopeless(&wanted(usize::MAX, "eve")));
        assert!(!unknown.is_hopeless(&wanted(usize::MAX, "ann")));
        tokio::time::advance(REMEMBERED * 2).await;
        assert!(!unknown.is_hopeless(&wanted(usize::MAX, "eve")));
    }

    #[test]
    fn only_so_many_are_remembered() {
        let unknown = Unknown::default();
        for id in 0..3 * MAX_REMEMBERED {
            unknown.remember(wanted(id, &id.to_string()));
        }
        let misses = unknown.misses();
        assert_eq!(misses.order.len(), MAX_REMEMBERED);
        assert_eq!(misses.known.len(), MAX_REMEMBERED);
        assert_eq!(misses.of_guests.len(), MAX_REMEMBERED);
    }
}
