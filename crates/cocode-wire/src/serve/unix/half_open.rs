//! Clients that are connected and have not yet said what they want. They cannot use up the slots: the oldest of them
//! gives its slot to the next client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::serve::line::FirstLineError;

/// All half-open clients of a server, the oldest first.
#[derive(Debug, Default)]
pub(super) struct HalfOpen(Mutex<VecDeque<Weak<Handshake>>>);

/// The slot of one half-open client, until it is kept or taken away.
#[derive(Debug)]
pub(super) struct Handshake {
    slot: Mutex<Option<OwnedSemaphorePermit>>,
    evicted: Notify,
}

impl HalfOpen {
    pub(super) fn add(&self, slot: OwnedSemaphorePermit) -> Arc<Handshake> {
        let handshake = Arc::new(Handshake {
            slot: Mutex::new(Some(slot)),
            evicted: Notify::new(),
        });
        let mut all = lock(&self.0);
        all.retain(|one| one.upgrade().is_some_and(|one| lock(&one.slot).is_some()));
        all.push_back(Arc::downgrade(&handshake));
        handshake
    }

    /// Takes the slot of the client that has been half-open for the longest time.
    pub(super) fn evict_oldest(&self) -> Option<OwnedSemaphorePermit> {
        let mut all = lock(&self.0);
        let mut oldest = std::iter::from_fn(|| all.pop_front());
        oldest.find_map(|oldest| {
            let oldest = oldest.upgrade()?;
            let slot = lock(&oldest.slot).take()?;
            oldest.evicted.notify_one();
            Some(slot)
        })
    }
}

impl Handshake {
    /// Ready when the slot was taken away.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// The slot, which cannot be taken away any more.
    pub(super) fn finish(&self) -> Result<OwnedSemaphorePermit, FirstLineError> {
        lock(&self.slot).take().ok_or(FirstLineError::Evicted)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
