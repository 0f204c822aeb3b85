//! How many servers are being started at once.
//!
//! A start keeps processors busy, so only some happen side by side. But a server that takes its
//! time is waiting for something else than a processor (a download, a network, a sleep): after a
//! moment it goes on without its place, and the next one begins.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How long a start may keep its place.
const PLACE_IS_KEPT: Duration = Duration::from_millis(250);

/// How many servers may be started at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concurrency {
    /// So many.
    AtMost(usize),
    /// All of them.
    All,
}

impl Default for Concurrency {
    fn default() -> Self {
        Self::AtMost(3)
    }
}

/// Limits how many servers are started at once. Managers with clones of one limiter share the limit.
#[derive(Clone, Debug)]
pub struct StartLimiter {
    places: Option<Arc<Semaphore>>,
}

impl Default for StartLimiter {
    fn default() -> Self {
        Self::new(Concurrency::default())
    }
}

/// A place among those that are being started.
#[derive(Debug)]
pub(crate) struct Place {
    permit: Option<OwnedSemaphorePermit>,
    until: Instant,
}

impl StartLimiter {
    /// A limiter of its own.
    pub fn new(concurrency: Concurrency) -> Self {
        let places = match concurrency {
            Concurrency::AtMost(most) => Some(Arc::new(Semaphore::new(most.max(1)))),
            Concurrency::All => None,
        };
        Self { places }
    }

    /// Waits for a place; who came first is served first.
    pub(crate) async fn place(&self) -> Place {
        let permit = match &self.places {
            // The semaphore is never closed.
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        Place {
            permit,
            until: Instant::now() + PLACE_IS_KEPT,
        }
    }
}

impl Place {
    /// Never resolves, but gives the place up when its time is over.
    pub(crate) async fn expire(mut self) -> Infallible {
        if self.permit.is_some() {
            tokio::time::sleep_until(self.until).await;
            self.permit = None;
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::{Concurrency, StartLimiter};

    #[tokio::test(start_paused = true)]
    async fn a_slow_start_gives_its_place_to_the_next() {
        let starts = StartLimiter::new(Concurrency::AtMost(1));
        let slow = starts.place().await;
        assert!(starts.place().now_or_never().is_none());
        tokio::select! {
            never = slow.expire() => match never {},
            _next = starts.place() => {}
        }
    }

    #[tokio::test]
    async fn a_start_that_is_over_frees_its_place() {
        let starts = StartLimiter::new(Concurrency::AtMost(1));
        drop(starts.place().await);
        assert!(starts.place().now_or_never().is_some());
    }

    #[tokio::test]
    async fn all_means_all() {
        let starts = StartLimiter::new(Concurrency::All);
        let mut places = Vec::new();
        for _ in 0..1000 {
            places.push(starts.place().await);
        }
    }
}
