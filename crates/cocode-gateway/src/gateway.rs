//! The gateway itself: what all views share, and the end of it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use cocode_wire::limits::{DRAIN_TIMEOUT, LAST_WORDS_TIMEOUT};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::consent::Consents;
use crate::heap_trim::HeapTrim;
use crate::instance::Reaper;
use crate::instances::Instances;
use crate::parked::Parking;
use crate::status::Running;
use crate::view::{Inner, View, ViewOptions};

/// How often those are looked for who did not come back.
const SWEEP_EVERY: Duration = Duration::from_secs(30);
/// How long servers may take to end.
const END_WITHIN: Duration = Duration::from_secs(10);

/// Serves any number of views. Cheap to clone; has to be made within a tokio runtime.
#[derive(Clone, Debug)]
pub struct Gateway {
    core: Arc<Core>,
}

/// What all views share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) instances: Instances,
    pub(crate) parking: Parking,
    pub(crate) consents: Consents,
    pub(crate) reaper: Reaper,
    pub(crate) heap_trim: HeapTrim,
    views: Mutex<Vec<Weak<Inner>>>,
    /// Whether the gateway is about to end.
    ending: watch::Sender<bool>,
    /// Whether calls that are still under way are given up.
    drained: watch::Sender<bool>,
    tasks: Mutex<JoinSet<()>>,
    runtime: tokio::runtime::Handle,
}

impl Gateway {
    /// A gateway without views.
    pub fn new() -> Self {
        Self::releasing_heap_with(|| {})
    }

    /// A gateway without views that calls `release` on a blocking thread within 30 seconds after sessions have
    /// ended, to return free heap to the operating system.
    pub fn releasing_heap_with(release: fn()) -> Self {
        let core = Arc::new(Core {
            instances: Instances::new(),
            parking: Parking::new(),
            consents: Consents::default(),
            reaper: Reaper::default(),
            heap_trim: HeapTrim::new(release),
            views: Mutex::default(),
            ending: watch::Sender::new(false),
            drained: watch::Sender::new(false),
            tasks: Mutex::default(),
            runtime: tokio::runtime::Handle::current(),
        });
        let swept = Arc::downgrade(&core);
        core.background(async move {
            loop {
                tokio::time::sleep(SWEEP_EVERY).await;
                let Some(core) = swept.upgrade() else {
                    return;
                };
                core.parking.sweep();
                for view in core.views() {
                    view.sweep();
                }
                core.heap_trim.run().await;
            }
        });
        Self { core }
    }

    /// A view without servers.
    pub fn view(&self, options: ViewOptions) -> View {
        View::new(Arc::clone(&self.core), options)
    }

    /// All servers that run for any view, each once: the one that all clients of a view share, and those
    /// that are for one of them.
    pub fn running(&self) -> Vec<Running> {
        let mut all: Vec<Running> = Vec::new();
        let mut seen = HashSet::new();
        for view in self.core.views() {
            let running = view.running().into_iter();
            all.extend(running.filter(|running| seen.insert(running.number)));
        }
        all
    }

    /// Ends what would go on for ever, such as subscriptions, in the way that tells clients that
    /// nothing broke. Everything else is served as before.
    pub fn begin_end(&self) {
        self.core.ending.send_replace(true);
    }

    /// Answers calls that are still under way after a while with an error: before transports stop
    /// waiting for them ([`DRAIN_TIMEOUT`]), so that a server which never answers delays no end.
    pub fn begin_drain(&self) {
        let drained = self.core.drained.clone();
        self.core.background(async move {
            tokio::time::sleep(DRAIN_TIMEOUT.saturating_sub(LAST_WORDS_TIMEOUT)).await;
            drained.send_replace(true);
        });
    }

    /// Waits, within bounds, until the servers have ended that nobody uses any more. For the end:
    /// views have to be dropped before.
    pub async fn finish(&self) {
        self.core.parking.clear().await;
        let mut ending = {
            let mut reaper = self.core.reaper.lock();
            let reaper = reaper.as_deref_mut();
            reaper.map(std::mem::take).unwrap_or_default()
        };
        let all = async { while ending.join_next().await.is_some() {} };
        if tokio::time::timeout(END_WITHIN, all).await.is_err() {
            tracing::warn!("some servers did not end in time; they are being killed");
        }
    }
}

impl Default for Gateway {
    fn default() -> Self {
        Self::new()
    }
}

impl Core {
    /// Knows of a view, as long as it is there.
    pub(crate) fn add_view(&self, view: &Arc<Inner>) {
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.retain(|view| view.strong_count() > 0);
        views.push(Arc::downgrade(view));
    }

    /// The views that there are.
    pub(crate) fn views(&self) -> Vec<Arc<Inner>> {
        let views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        views.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn drained(&self) -> watch::Receiver<bool> {
        self.drained.subscribe()
    }

    /// Ready when the gateway is about to end.
    pub(crate) fn ending(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut ending = self.ending.subscribe();
        async move {
            // A gateway that is gone has ended, too.
            drop(ending.wait_for(|ending| *ending).await.map(|_| ()));
        }
    }

    /// Runs something that nobody waits for.
    pub(crate) fn background(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, &self.runtime);
    }
}
