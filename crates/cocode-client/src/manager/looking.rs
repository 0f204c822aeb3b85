//! For those who show lists to others: when a list is there, how long it holds, and who may see it.

use std::time::Duration;

use cocode_core::ServerName;
use tokio::time::{Instant, sleep_until};

use super::Manager;
use super::server::Order;
use super::state::ServerState;
use crate::list_cache::{ListKind, MAX_LIST_TTL};

impl Manager {
    /// Waits until the catalog has a list of a server, at most until `deadline`. Does not wait for a
    /// server that has failed, that is slower than its `startup_timeout_sec`, or that could not give
    /// the list; one that does not run, and of which nobody knows what it has, is started. Says
    /// whether the list is there.
    pub async fn wait_for_list(
        &self,
        server: &ServerName,
        kind: ListKind,
        deadline: Instant,
    ) -> bool {
        let Ok(server) = self.server(server) else {
            return false;
        };
        let (mut catalogs, mut standing) = (self.watch_catalog(), server.watch());
        let mut is_demanded = false;
        loop {
            let (is_known, is_refused) = {
                let catalog = catalogs.borrow_and_update();
                let listed = catalog.server(&server.name);
                let is_known = listed.is_some_and(|listed| listed.known.contains(&kind));
                let is_refused = listed.is_some_and(|listed| listed.unlisted.contains_key(&kind));
                (is_known, is_refused)
            };
            let state = standing.borrow_and_update().state.clone();
            if is_known {
                return true;
            }
            match state {
                ServerState::Stopped => {
                    if !is_demanded {
                        is_demanded = true;
                        server.order(Order::Demand).await;
                    }
                }
                ServerState::Ready if is_refused => return false,
                ServerState::Ready
                | ServerState::Starting { slow: false }
                | ServerState::Reconnecting { .. } => {}
                ServerState::Starting { slow: true }
                | ServerState::Disabled
                | ServerState::PendingTrust
                | ServerState::NeedsAuth(_)
                | ServerState::NeedsClientRegistration(_)
                | ServerState::Failed(_) => return false,
            }
            tokio::select! {
                changed = catalogs.changed() => if changed.is_err() { return false },
                changed = standing.changed() => if changed.is_err() { return false },
                () = sleep_until(deadline) => return false,
            }
        }
    }

    /// For how long a list still holds by the word of its server, and whether it may be shared with
    /// anybody. A list that is not known, or of which the server did not say so, holds for no time
    /// and is for nobody else.
    pub fn list_holds(&self, server: &ServerName, kind: ListKind) -> (Duration, bool) {
        let Ok(server) = self.server(server) else {
            return (Duration::ZERO, false);
        };
        let now = (self.shared().options.time_of_day)();
        server.lists(|lists| {
            let Some(list) = lists.remembered(kind) else {
                return (Duration::ZERO, false);
            };
            let is_public = list.cache_scope.as_deref() == Some("public");
            // A clock that was set back: nobody knows how old the list is.
            let age = now.duration_since(list.fetched_at).ok();
            let said = list.ttl.unwrap_or_default().min(MAX_LIST_TTL);
            let left = age.map(|age| said.saturating_sub(age));
            (left.unwrap_or_default(), is_public)
        })
    }

    /// Lets the lists of a server that are too old be read again, where it is there. Nobody waits for
    /// that: the catalog changes if they have.
    pub fn revalidate(&self, server: &ServerName) {
        let Ok(server) = self.server(server) else {
            return;
        };
        if server.current().is_none() {
            return;
        }
        let now = self.shared().options.list_clock();
        let stale = server.lists(|lists| lists.to_be_revalidated(now));
        if !stale.is_empty() {
            server.changes.told(&stale);
        }
    }
}
