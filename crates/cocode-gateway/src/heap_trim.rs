//! Returns free heap to the operating system after sessions have ended.

use std::sync::atomic::{AtomicU8, Ordering};

/// Trims after the end of a session: the second one is for what is freed later, such as the buffers of its connection.
const TRIMS: u8 = 2;

/// The trims that are still due.
#[derive(Debug, Default)]
pub(crate) struct HeapTrim(AtomicU8);

impl HeapTrim {
    pub(crate) fn session_ended(&self) {
        self.0.store(TRIMS, Ordering::Relaxed);
    }

    /// Trims the heap if that is due, on a thread where nothing else runs.
    pub(crate) async fn run(&self) {
        if !self.take_due() {
            return;
        }
        let trimming = tokio::task::spawn_blocking(cocode_process::release_free_heap);
        if let Err(error) = trimming.await {
            tracing::warn!(%error, "free heap is not returned to the operating system");
        }
    }

    fn take_due(&self) -> bool {
        let less = |due: u8| due.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.0.fetch_update(set, fetch, less).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::HeapTrim;

    #[test]
    fn heap_is_trimmed_twice_after_sessions_ended() {
        let trim = HeapTrim::default();
        assert!(!trim.take_due());
        trim.session_ended();
        trim.session_ended();
        assert_eq!([trim.take_due(), trim.take_due()], [true, true]);
        assert!(!trim.take_due());
    }
}
