//! What a scripted server has seen, and waiting until it has seen something.

use std::fmt::Debug;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a test waits for something that should come at once. Only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long one blocking wait may outlive the future that asked for it.
const SLICE: Duration = Duration::from_millis(50);

/// A growing list that tests can read and wait on, from async code and from plain threads.
///
/// Waiting fails the test, by panicking with everything recorded so far, when nothing has come for
/// 20 seconds. It uses real time, so that it also works where tokio's clock is paused.
#[derive(Debug)]
pub struct Recorder<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    items: Mutex<Vec<T>>,
    grown: Condvar,
}

impl<T> Clone for Recorder<T> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<T> Default for Recorder<T> {
    fn default() -> Self {
        Self {
            shared: Arc::new(Shared {
                items: Mutex::default(),
                grown: Condvar::new(),
            }),
        }
    }
}

impl<T: Clone + Debug + Send + 'static> Recorder<T> {
    /// Everything recorded so far, in order.
    pub fn all(&self) -> Vec<T> {
        self.items().clone()
    }

    /// How many recorded items fit.
    pub fn count(&self, fits: impl Fn(&T) -> bool) -> usize {
        self.items().iter().filter(|item| fits(item)).count()
    }

    /// Forgets everything recorded so far, for servers that hear more than anybody wants to keep.
    /// Nobody may be waiting meanwhile.
    pub fn clear(&self) {
        self.items().clear();
    }

    /// The first item that fits, waiting for it if need be.
    pub async fn wait_for(&self, fits: impl Fn(&T) -> bool) -> T {
        self.wait_until(|items| items.iter().any(&fits)).await;
        self.first(fits)
    }

    /// As [`Self::wait_for`], for tests without a runtime.
    pub fn wait_for_blocking(&self, fits: impl Fn(&T) -> bool) -> T {
        let deadline = Instant::now() + PATIENCE;
        while !self.items().iter().any(&fits) {
            self.assert_before(deadline);
            let seen = self.items().len();
            self.shared.wait_for_growth(seen);
        }
        self.first(fits)
    }

    /// Waits until the list as a whole is as wanted.
    pub async fn wait_until(&self, done: impl Fn(&[T]) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = {
                let items = self.items();
                if done(&items) {
                    return;
                }
                items.len()
            };
            self.assert_before(deadline);
            // On a blocking thread, because tokio's paused clock stands still meanwhile.
            let shared = Arc::clone(&self.shared);
            tokio::task::spawn_blocking(move || shared.wait_for_growth(seen))
                .await
                .expect("waiting does not panic");
        }
    }

    pub(crate) fn push(&self, item: T) {
        self.items().push(item);
        self.shared.grown.notify_all();
    }

    fn first(&self, fits: impl Fn(&T) -> bool) -> T {
        self.items()
            .iter()
            .find(|item| fits(item))
            .cloned()
            .expect("the list only grows")
    }

    fn assert_before(&self, deadline: Instant) {
        assert!(
            Instant::now() < deadline,
            "waited in vain; recorded so far: {:#?}",
            self.all()
        );
    }

    fn items(&self) -> MutexGuard<'_, Vec<T>> {
        self.shared
            .items
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Shared<T> {
    /// Comes back when there are more items than were seen, or after a moment.
    fn wait_for_growth(&self, seen: usize) {
        let items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .grown
            .wait_timeout_while(items, SLICE, |items| items.len() == seen);
        drop(waited);
    }
}
