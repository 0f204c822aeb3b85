//! Which servers run for one client alone, and which it shares with others. That is decided once for
//! each server, and again when another takes the place of the shared one.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use cocode_core::ServerName;

use crate::instance::Instance;
use crate::view::Entry;

/// What was decided for one client.
#[derive(Default)]
pub(crate) struct Served(BTreeMap<ServerName, Decision>);

struct Decision {
    /// The server that everybody shared at that time.
    shared: Weak<Instance>,
    /// The server that it uses instead: one that runs for it alone, or for legacy clients.
    own: Option<Arc<Instance>>,
}

impl Served {
    /// The server for the client, if that was decided and holds still.
    pub(crate) fn by(&self, entry: &Entry) -> Option<Arc<Instance>> {
        let decision = self.0.get(&entry.spec.name);
        let decision = decision.filter(|decision| decision.holds(entry))?;
        let own = decision.own.as_ref();
        Some(Arc::clone(own.unwrap_or(&entry.instance)))
    }

    /// The same, if it runs for the client alone.
    pub(crate) fn by_own(&self, entry: &Entry) -> Option<Arc<Instance>> {
        let own = self.by(entry);
        own.filter(|own| !own.is_shared())
    }

    /// Decides, and gives what was decided before, to be dropped where nothing is locked.
    #[must_use]
    pub(crate) fn decide(
        &mut self,
        entry: &Entry,
        own: Option<Arc<Instance>>,
    ) -> Option<Arc<Instance>> {
        let decision = Decision {
            shared: Arc::downgrade(&entry.instance),
            own,
        };
        let older = self.0.insert(entry.spec.name.clone(), decision);
        older?.own
    }

    /// Lets go of servers that have no place any more, and gives them, to be dropped where nothing is
    /// locked.
    #[must_use]
    pub(crate) fn release(&mut self, servers: &BTreeMap<ServerName, Entry>) -> Vec<Arc<Instance>> {
        let is_over = |name: &ServerName, decision: &mut Decision| {
            let entry = servers.get(name);
            !entry.is_some_and(|entry| decision.holds(entry))
        };
        let over = self.0.extract_if(.., is_over);
        over.filter_map(|(_, decision)| decision.own).collect()
    }
}

impl Decision {
    fn holds(&self, entry: &Entry) -> bool {
        std::ptr::eq(self.shared.as_ptr(), Arc::as_ptr(&entry.instance))
            && (self.own.is_some() || !entry.is_per_session())
    }
}
