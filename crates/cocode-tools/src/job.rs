//! Work that blocks: a bounded number at once, reported while it runs, ended when nobody waits.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;

use crate::progress::Progress;
use crate::refusal::Refusal;

/// One piece of work as it sees itself.
#[derive(Debug)]
pub(crate) struct Job {
    canceled: Arc<AtomicBool>,
    updates: watch::Sender<Update>,
}

/// How far it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Update {
    done: u64,
    message: String,
}

impl Job {
    pub(crate) fn new(canceled: Arc<AtomicBool>, updates: watch::Sender<Update>) -> Self {
        Self { canceled, updates }
    }

    /// Refuses to go on when nobody waits for the result. To be asked wherever work is repeated.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.canceled.load(Ordering::Relaxed) {
            return Err(Refusal::cancelled());
        }
        Ok(())
    }

    /// Tells how much is done. Only the last of several quick reports is heard.
    pub(crate) fn report(&self, done: u64, message: String) {
        self.updates.send_replace(Update { done, message });
    }
}

/// Set when the future that waits is dropped.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs blocking work on a thread of its own, once there is room for it.
///
/// Dropping the future tells the work to stop; it holds its room until it has.
pub(crate) async fn run<T: Send + 'static>(
    room: &Arc<Semaphore>,
    progress: &dyn Progress,
    work: impl FnOnce(&Job) -> T + Send + 'static,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    let permit = Arc::clone(room).acquire_owned().await?;
    let canceled = Arc::new(AtomicBool::new(false));
    let _cancel = CancelOnDrop(Arc::clone(&canceled));
    let (updates, mut heard) = watch::channel(Update::default());
    let mut work = pin!(spawn_blocking(move || {
        let result = work(&Job::new(canceled, updates));
        drop(permit);
        result
    }));
    let mut last = 0;
    loop {
        tokio::select! {
            biased;
            result = &mut work => return Ok(result?),
            Ok(()) = heard.changed() => {
                let Update { done, message } = heard.borrow_and_update().clone();
                if done > last {
                    last = done;
                    progress.report(done, None, &message);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
