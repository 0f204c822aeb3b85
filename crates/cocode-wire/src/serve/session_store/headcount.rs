//! When sessions have to be counted, so that a store keeps no more of them than it should.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How much of the room that was found one process takes before it counts again: as many processes may
/// do this at the same time.
const SHARERS: usize = 16;

/// What was counted so long ago says nothing any more.
const GOOD_FOR: Duration = Duration::from_secs(30);

/// Spares a store from counting all its sessions whenever one more is kept. The fuller it is, the more
/// often they are counted, and every time once it is full.
#[derive(Debug)]
pub struct Headcount {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How many may be kept before they are counted again.
    left: usize,
    counted: Option<Instant>,
}

impl Headcount {
    /// For a store that keeps so many.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    /// Whether there is room for one more, which is taken. If not, they have to be [counted](Self::counted).
    pub fn take(&self) -> bool {
        let mut state = self.state();
        let is_good = state
            .counted
            .is_some_and(|counted| counted.elapsed() < GOOD_FOR);
        if !is_good || state.left == 0 {
            return false;
        }
        state.left -= 1;
        true
    }

    /// There are so many. Gives whether there is room for one more, which is taken.
    pub fn counted(&self, sessions: usize) -> bool {
        let room = self.limit.saturating_sub(sessions);
        let mut state = self.state();
        state.left = (room / SHARERS).saturating_sub(1);
        state.counted = Some(Instant::now());
        room > 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{GOOD_FOR, Headcount, SHARERS};

    #[tokio::test(start_paused = true)]
    async fn as_many_as_may_are_kept_and_few_counts_made() {
        let count = Headcount::new(10_000);
        let (mut kept, mut n_counts) = (0, 0);
        while count.take() || {
            n_counts += 1;
            count.counted(kept)
        } {
            kept += 1;
        }
        assert_eq!(kept, 10_000);
        assert!((1..300).contains(&n_counts), "{n_counts}");
        // As many as share a store do not keep more together.
        let all = [(); SHARERS].map(|()| Headcount::new(1000));
        let together = all.iter().map(|count| {
            assert!(count.counted(200));
            1 + std::iter::repeat_with(|| count.take())
                .take_while(|has_room| *has_room)
                .count()
        });
        assert!((700..=800).contains(&together.sum::<usize>()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_counted_is_soon_out_of_date() {
        let count = Headcount::new(10_000);
        assert!(!count.take(), "nobody has counted");
        assert!(count.counted(0) && count.take());
        tokio::time::advance(GOOD_FOR + Duration::from_secs(1)).await;
        assert!(!count.take());
        assert!(!count.counted(10_000), "it is full");
    }
}
