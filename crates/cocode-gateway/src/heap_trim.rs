//! Returns free heap to the operating system after sessions have ended.

use std::sync::atomic::{AtomicU8, Ordering};

/// Releases after the end of a session: the second one is for what is freed later, such as the buffers of its connection.
const RELEASES: u8 = 2;

/// Knows whether free heap is to be released, and how.
#[derive(Debug)]
pub(crate) struct HeapTrim {
    release: fn(),
    due: AtomicU8,
}

impl HeapTrim {
    pub(crate) fn new(release: fn()) -> Self {
        let due = AtomicU8::new(0);
        Self { release, due }
    }

    pub(crate) fn session_ended(&self) {
        self.due.store(RELEASES, Ordering::Relaxed);
    }

    /// Releases free heap if that is due, on a thread that serves no requests.
    pub(crate) async fn run(&self) {
        let less = |due: u8| due.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        if self.due.fetch_update(set, fetch, less).is_err() {
            return;
        }
        if let Err(error) = tokio::task::spawn_blocking(self.release).await {
            tracing::warn!(%error, "free heap is not returned to the operating system");
        }
    }
}
