//! What runs for a view, and for whom: for those who look after a gateway.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::{CallError, Manager, ServerStatus};
use cocode_core::ServerSpec;

use crate::instance::Instance;
use crate::view::{Entry, View};

/// How the clients of a server share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All at once.
    Shared,
    /// All, but those who may be asked something one at a time: the server does not say whom its
    /// questions are for.
    OneAtATime,
    /// It is there for one client alone.
    PerSession,
}

/// A server that runs for a view, or will when it is needed.
#[derive(Clone, Debug)]
pub struct Running {
    /// Tells servers apart while they run: two views that share one have the same number here.
    pub number: usize,
    /// What it was made of.
    pub spec: Arc<ServerSpec>,
    /// How it is shared.
    pub sharing: Sharing,
    /// How it is.
    pub status: ServerStatus,
    /// For how long it has been kept.
    pub age: Duration,
    manager: Manager,
}

impl Running {
    /// What keeps it, and knows what it offers.
    pub fn manager(&self) -> &Manager {
        &self.manager
    }

    /// Connects to it anew.
    pub async fn restart(&self) -> Result<(), CallError> {
        self.manager.restart(&self.status.name).await
    }

    fn of(instance: &Arc<Instance>, entry: &Entry, sharing: Sharing) -> Option<Self> {
        let manager = instance.manager().clone();
        let status = manager.status().into_iter().next()?;
        Some(Self {
            number: Arc::as_ptr(instance).addr(),
            spec: Arc::clone(&entry.spec),
            sharing,
            status,
            age: instance.age(),
            manager,
        })
    }
}

impl Sharing {
    /// A word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::OneAtATime => "one-at-a-time",
            Self::PerSession => "per-session",
        }
    }
}

impl View {
    /// The servers that run for this view, by name: the one that all of its clients share, and then
    /// those that are for one of them.
    pub fn running(&self) -> Vec<Running> {
        let inner = self.inner();
        let clients = inner.clients();
        let mut all = Vec::new();
        for entry in inner.servers().values() {
            all.extend(Running::of(&entry.instance, entry, shared(entry)));
            let own = clients.iter().filter_map(|client| client.own(entry));
            all.extend(own.filter_map(|own| Running::of(&own, entry, Sharing::PerSession)));
        }
        all
    }
}

fn shared(entry: &Entry) -> Sharing {
    if entry.instance.traffic.asks().any() {
        Sharing::OneAtATime
    } else {
        Sharing::Shared
    }
}
