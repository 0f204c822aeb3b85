//! What each principal sees: a view of the gateway of their own, made when they come for the first time.
//!
//! Views are made by the loop that also follows the configuration, so that none is ever behind it.
//! Whoever comes meanwhile waits, within bounds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_gateway::View;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Views of principals at a time.
const MAX_VIEWS: usize = 1024;
/// How long a view is kept that nobody uses.
const KEPT_FOR: Duration = Duration::from_mins(30);
/// Principals that may wait for their view at a time.
const MAX_WISHES: usize = 256;
/// How long a principal waits for their view: the configuration may be read, and stores be asked.
const MADE_WITHIN: Duration = Duration::from_secs(10);

/// The views that there are.
#[derive(Debug)]
pub(crate) struct Views {
    /// What whoever runs the gateway sees: everything.
    own: View,
    of: Mutex<BTreeMap<Arc<str>, Known>>,
    wishes: mpsc::Sender<Wish>,
}

#[derive(Debug)]
struct Known {
    view: View,
    used: Instant,
}

/// Somebody who has no view yet.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) principal: Arc<str>,
    made: oneshot::Sender<()>,
}

/// Why somebody has no view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoView {
    #[error("the gateway serves as many principals as it can ({MAX_VIEWS}): try again later")]
    TooMany,
    #[error("the gateway is busy: try again in a moment")]
    Busy,
}

impl Views {
    /// With the one for whoever runs the gateway, and the wishes for others.
    pub(crate) fn new(own: View) -> (Arc<Self>, mpsc::Receiver<Wish>) {
        let (wishes, wished) = mpsc::channel(MAX_WISHES);
        let views = Self {
            own,
            of: Mutex::default(),
            wishes,
        };
        (Arc::new(views), wished)
    }

    /// What whoever runs the gateway sees.
    pub(crate) fn own(&self) -> &View {
        &self.own
    }

    /// What a principal sees, if they have come before. That they come is noted.
    pub(crate) fn known(&self, principal: &str) -> Option<View> {
        let mut all = self.lock();
        let known = all.get_mut(principal)?;
        known.used = Instant::now();
        Some(known.view.clone())
    }

    /// Sees to it that a principal has a view.
    pub(crate) async fn provide(&self, principal: Arc<str>) -> Result<(), NoView> {
        if self.known(&principal).is_some() {
            return Ok(());
        }
        if self.lock().len() >= MAX_VIEWS {
            return Err(NoView::TooMany);
        }
        let (made, done) = oneshot::channel();
        let wish = Wish {
            principal: Arc::clone(&principal),
            made,
        };
        self.wishes.try_send(wish).map_err(|_full| NoView::Busy)?;
        // Whether it was made is to be seen.
        drop(tokio::time::timeout(MADE_WITHIN, done).await);
        self.known(&principal).map(drop).ok_or(NoView::Busy)
    }

    /// Keeps the view of a principal.
    pub(super) fn keep(&self, wish: Wish, view: View) {
        let Wish { principal, made } = wish;
        let used = Instant::now();
        self.lock().insert(principal, Known { view, used });
        // Whoever wished for it may have given up, and comes again.
        let _heard = made.send(());
    }

    /// Those who have a view.
    pub(super) fn principals(&self) -> Vec<(Arc<str>, View)> {
        let all = self.lock();
        all.iter()
            .map(|(name, known)| (Arc::clone(name), known.view.clone()))
            .collect()
    }

    /// Forgets the views that nobody has used for a while, and says whose they were.
    pub(super) fn sweep(&self) -> Vec<Arc<str>> {
        let mut gone = BTreeMap::new();
        let mut all = self.lock();
        let is_idle = |known: &Known| known.used.elapsed() > KEPT_FOR && !known.view.has_sessions();
        let names: Vec<Arc<str>> = all
            .iter()
            .filter(|(_, known)| is_idle(known))
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for name in names {
            if let Some(known) = all.remove(&name) {
                gone.insert(name, known);
            }
        }
        drop(all);
        gone.into_keys().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Known>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
