//! Work that is left when a program has ended, and that the exit of this process waits for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

static PENDING: Mutex<usize> = Mutex::new(0);
static DONE: Condvar = Condvar::new();

/// Counts as pending until it is dropped.
struct Pending;

impl Pending {
    fn new() -> Self {
        let mut pending = count();
        *pending = pending.saturating_add(1);
        Self
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut pending = count();
        *pending = pending.saturating_sub(1);
        DONE.notify_all();
    }
}

fn count() -> MutexGuard<'static, usize> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs blocking work on a thread of its own.
pub fn spawn_cleanup(work: impl FnOnce() + Send + 'static) {
    let pending = Pending::new();
    let thread = std::thread::Builder::new().spawn(move || {
        work();
        drop(pending);
    });
    if let Err(error) = thread {
        tracing::error!(%error, "cannot start a thread to clean up");
    }
}

/// Waits until all cleanup is done, at most this long. To be called before the process exits.
pub fn wait_for_cleanup(limit: Duration) {
    let waited = DONE.wait_timeout_while(count(), limit, |pending| *pending > 0);
    drop(waited);
}
