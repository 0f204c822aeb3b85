//! One at a time: whoever does something that all others wait for.

use tokio::sync::{Semaphore, SemaphorePermit};

/// Lets one in after the other, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Turn(Semaphore);

impl Turn {
    pub(crate) fn new() -> Self {
        Self(Semaphore::new(1))
    }

    /// Waits until all who came before have gone. It is our turn until the permit is dropped.
    pub(crate) async fn wait(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.0.acquire().await.ok()
    }

    /// Our turn, if nobody else has it or waits for it.
    pub(crate) fn try_take(&self) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire().ok()
    }
}
