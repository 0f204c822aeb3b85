//! Which lists of a server are said to have changed, gathered until it is worth asking again.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::clock::later;
use crate::list_cache::ListKind;

#[derive(Debug, Default)]
pub(crate) struct Changes {
    told: Mutex<BTreeSet<ListKind>>,
    more: Notify,
}

impl Changes {
    /// These lists have changed. Called for every notification, so it costs next to nothing.
    pub(crate) fn told(&self, kinds: &[ListKind]) {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(kinds);
        self.more.notify_one();
    }

    /// This list is being read anyway.
    pub(crate) fn forget(&self, kind: ListKind) {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&kind);
    }

    /// What has changed: waits for a first change, then until none came for `quiet`, but no longer
    /// than `longest`.
    ///
    /// Cancel safe: what was told stays told until it is returned.
    pub(crate) async fn gathered(&self, quiet: Duration, longest: Duration) -> BTreeSet<ListKind> {
        while self.is_empty() {
            self.more.notified().await;
        }
        let end = later(Instant::now(), longest);
        loop {
            let next = later(Instant::now(), quiet).min(end);
            let more = timeout_at(next, self.more.notified()).await;
            if more.is_err() || Instant::now() >= end {
                return std::mem::take(
                    &mut *self.told.lock().unwrap_or_else(PoisonError::into_inner),
                );
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.told
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::Changes;
    use crate::list_cache::ListKind;

    const QUIET: Duration = Duration::from_millis(100);
    const LONGEST: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn changes_that_follow_each_other_are_gathered() {
        let changes = Changes::default();
        let begun = Instant::now();
        let telling = async {
            changes.told(&[ListKind::Tools]);
            sleep(QUIET / 2).await;
            changes.told(&[ListKind::Prompts]);
        };
        let (gathered, ()) = tokio::join!(changes.gathered(QUIET, LONGEST), telling);
        assert_eq!(
            gathered.into_iter().collect::<Vec<_>>(),
            [ListKind::Tools, ListKind::Prompts]
        );
        assert_eq!(begun.elapsed(), QUIET / 2 + QUIET);
    }

    #[tokio::test(start_paused = true)]
    async fn an_endless_storm_is_looked_at_now_and_then() {
        let changes = Changes::default();
        let storm = async {
            loop {
                changes.told(&[ListKind::Tools]);
                sleep(Duration::from_millis(1)).await;
            }
        };
        let begun = Instant::now();
        tokio::select! {
            () = storm => {}
            gathered = changes.gathered(QUIET, LONGEST) => {
                assert_eq!(gathered.len(), 1);
                assert_eq!(begun.elapsed(), LONGEST);
            }
        }
    }
}
