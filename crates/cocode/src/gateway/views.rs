//! What each principal sees: a view of the gateway of their own, made when they come for the first time.
//!
//! Views are made by the loop that also follows the configuration, so that none is ever behind it.
//! Whoever comes meanwhile waits, within bounds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_access::PrincipalId;
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
    of: Mutex<BTreeMap<PrincipalId, Known>>,
    wishes: mpsc::Sender<Wish>,
}

#[derive(Debug)]
struct Known {
    view: View,
    used: Instant,
    /// How many sessions and the like its clients may have.
    max_sessions: usize,
}

/// Somebody who has no view yet.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) principal: PrincipalId,
    made: oneshot::Sender<Result<(), NoView>>,
}

impl Wish {
    /// There is none for them. Whoever wished for it may have given up, which is all the same.
    pub(super) fn refuse(self, why: NoView) {
        let _heard = self.made.send(Err(why));
    }
}

/// Why somebody has no view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoView {
    #[error("the gateway serves as many principals as it can ({MAX_VIEWS}): try again later")]
    TooMany,
    #[error("the gateway is busy: try again in a moment")]
    Busy,
    /// There is a table of that name, and it does not say whose it is.
    #[error(
        "the rules of this gateway name somebody who is called as you are, and do not say that it is you: \
         who runs it can write your issuer after your name there"
    )]
    Unclear,
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
    pub(crate) async fn provide(&self, principal: &PrincipalId) -> Result<(), NoView> {
        if self.known(principal.as_str()).is_some() {
            return Ok(());
        }
        if self.lock().len() >= MAX_VIEWS {
            return Err(NoView::TooMany);
        }
        let (made, done) = oneshot::channel();
        let wish = Wish {
            principal: principal.clone(),
            made,
        };
        self.wishes.try_send(wish).map_err(|_full| NoView::Busy)?;
        match tokio::time::timeout(MADE_WITHIN, done).await {
            Ok(Ok(made)) => made,
            Ok(Err(_)) | Err(_) => Err(NoView::Busy),
        }
    }

    /// How many sessions and the like a principal may have.
    pub(crate) fn max_sessions(&self, principal: &str) -> usize {
        self.lock()
            .get(principal)
            .map_or(0, |known| known.max_sessions)
    }

    /// From now on a principal may have that many.
    pub(super) fn bound(&self, principal: &str, max_sessions: usize) {
        if let Some(known) = self.lock().get_mut(principal) {
            known.max_sessions = max_sessions;
        }
    }

    /// Keeps the view of a principal, who may have that many sessions and the like.
    pub(super) fn keep(&self, wish: Wish, view: View, max_sessions: usize) {
        let Wish { principal, made } = wish;
        let known = Known {
            view,
            used: Instant::now(),
            max_sessions,
        };
        self.lock().insert(principal, known);
        // Whoever wished for it may have given up, and comes again.
        let _heard = made.send(Ok(()));
    }

    /// Those who have a view.
    pub(super) fn principals(&self) -> Vec<(PrincipalId, View)> {
        let all = self.lock();
        all.iter()
            .map(|(id, known)| (id.clone(), known.view.clone()))
            .collect()
    }

    /// Forgets the views that nobody has used for a while, and says whose they were.
    pub(super) fn sweep(&self) -> Vec<PrincipalId> {
        let mut gone = BTreeMap::new();
        let mut all = self.lock();
        let is_idle = |known: &Known| known.used.elapsed() > KEPT_FOR && !known.view.is_in_use();
        let idle: Vec<PrincipalId> = all
            .iter()
            .filter(|(_, known)| is_idle(known))
            .map(|(id, _)| id.clone())
            .collect();
        for id in idle {
            if let Some(known) = all.remove(&id) {
                gone.insert(id, known);
            }
        }
        drop(all);
        gone.into_keys().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PrincipalId, Known>> {
        self.of.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "views_tests.rs"]
mod tests;
