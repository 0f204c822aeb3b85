//! Looks after a view as one: tells clients when what they were given is not true any more.

use std::sync::{Arc, Weak};
use std::time::Duration;

use cocode_client::Catalog;
use futures_util::future::select_all;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::Merged;

/// How long to wait for more after something has changed.
const QUIET: Duration = Duration::from_millis(50);
/// How long to wait at most, however much changes.
const LONGEST: Duration = Duration::from_millis(500);

/// Watches until the view is gone.
pub(crate) async fn watch(merged: Weak<Merged>, mut changes: Changes) {
    loop {
        {
            let Some(merged) = merged.upgrade() else {
                return;
            };
            let Some(catalogs) = merged.catalogs() else {
                return;
            };
            // First, so that nothing is missed that happens meanwhile.
            changes.catalogs = catalogs;
            merged.announce();
        }
        if changes.next().await.is_err() {
            return;
        }
        let end = Instant::now() + LONGEST;
        loop {
            let quiet = (Instant::now() + QUIET).min(end);
            match timeout_at(quiet, changes.next()).await {
                Ok(Ok(())) if Instant::now() < end => {}
                Ok(Err(Gone)) => return,
                Ok(Ok(())) | Err(_) => break,
            }
        }
    }
}

/// The view is gone.
pub(crate) struct Gone;

/// Everything that may change what there is.
pub(crate) struct Changes {
    /// Goes up with every change of the servers.
    pub(crate) view: watch::Receiver<u64>,
    /// Goes up with every change of what may be used.
    pub(crate) gate: Option<watch::Receiver<u64>>,
    /// What each server offers.
    pub(crate) catalogs: Vec<watch::Receiver<Arc<Catalog>>>,
}

impl Changes {
    /// Waits for a change.
    ///
    /// Cancel safe: a change that was not returned is seen by the next call.
    async fn next(&mut self) -> Result<(), Gone> {
        let Self {
            view,
            gate,
            catalogs,
        } = self;
        let of_gate = async {
            match gate {
                Some(gate) => gate.changed().await,
                None => std::future::pending().await,
            }
        };
        let of_catalogs = async {
            if catalogs.is_empty() {
                return std::future::pending().await;
            }
            let each = catalogs
                .iter_mut()
                .map(|catalog| Box::pin(catalog.changed()));
            let (changed, place, _) = select_all(each).await;
            (changed, place)
        };
        tokio::select! {
            changed = view.changed() => return changed.map_err(|_gone| Gone),
            changed = of_gate => if changed.is_err() {
                // It never changes again.
                *gate = None;
            },
            (changed, place) = of_catalogs => if changed.is_err() {
                // The server has ended, which the view will show.
                catalogs.swap_remove(place);
            },
        }
        Ok(())
    }
}
