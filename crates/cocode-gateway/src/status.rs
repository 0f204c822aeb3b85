//! What runs for a view, and for whom: for those who look after a gateway.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::{CallError, Manager, ServerStatus};
use cocode_core::{ServerName, ServerSpec};
use tokio::sync::watch;

use crate::instance::Instance;
use crate::view::{Entry, Inner, View};

/// How the clients of a server share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All at once.
    Shared,
    /// All, but those who may be asked something one at a time, or by a process of their own: the
    /// server does not say whom its questions are for.
    OneAtATime,
    /// Each session has its own.
    PerSession,
    /// Nobody uses it but to know what the server offers, since each session has its own.
    Catalog,
}

/// How a server is shared, and why not at once by all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How.
    pub sharing: Sharing,
    /// Why, unless it is simply shared.
    pub reason: Option<String>,
}

/// A server that runs for a view, or will when it is needed.
#[derive(Clone, Debug)]
pub struct Running {
    /// Tells servers apart while they run: two views that share one have the same number here.
    pub number: usize,
    /// What it was made of.
    pub spec: Arc<ServerSpec>,
    /// How it is shared.
    pub terms: Terms,
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

    fn of(instance: &Arc<Instance>, entry: &Entry, terms: Terms) -> Option<Self> {
        let manager = instance.manager().clone();
        let status = manager.status().into_iter().next()?;
        Some(Self {
            number: Arc::as_ptr(instance).addr(),
            spec: Arc::clone(&entry.spec),
            terms,
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
            Self::Catalog => "catalog",
        }
    }
}

impl View {
    /// The servers that run for this view, by name: the one that all of its clients share, and then
    /// those that are for one of them.
    pub fn running(&self) -> Vec<Running> {
        self.inner().running()
    }

    /// Whether any client has a session or a connection here.
    pub fn has_sessions(&self) -> bool {
        let clients = self.inner().clients();
        clients.iter().any(|client| !client.has_ended())
    }

    /// Whether anybody uses it: a client has a session or a connection, or waits for an answer or listens
    /// without one.
    pub fn is_in_use(&self) -> bool {
        self.has_sessions() || self.inner().party().is_busy()
    }

    /// How the clients of this view share a server, if there is such a server.
    pub fn terms(&self, name: &ServerName) -> Option<Terms> {
        self.inner().entry(name).map(|entry| Terms::of(&entry))
    }

    /// Tells when a server may be shared in another way than before.
    pub fn watch_terms(&self, name: &ServerName) -> Option<watch::Receiver<()>> {
        let entry = self.inner().entry(name)?;
        Some(entry.instance.traffic.watch_asks())
    }
}

impl Terms {
    fn of(entry: &Entry) -> Self {
        if entry.is_per_session() {
            return Self {
                sharing: Sharing::PerSession,
                reason: Some("its entry says `isolation = \"per-session\"`".to_owned()),
            };
        }
        let asks = entry.instance.traffic.asks();
        if asks.any() {
            let what = asks.words().join(" and ");
            let reason = format!("it asks its clients for {what} without saying which of them");
            return Self {
                sharing: Sharing::OneAtATime,
                reason: Some(reason),
            };
        }
        Self {
            sharing: Sharing::Shared,
            reason: None,
        }
    }
}

impl Inner {
    /// The servers that run for this view.
    pub(crate) fn running(&self) -> Vec<Running> {
        let clients = self.clients();
        let mut all = Vec::new();
        for entry in self.servers().values() {
            let terms = Terms::of(entry);
            let common = match terms.sharing {
                Sharing::PerSession => Terms {
                    sharing: Sharing::Catalog,
                    ..terms.clone()
                },
                _ => terms.clone(),
            };
            let peer = entry.instance.open_legacy_peer();
            all.extend(Running::of(&entry.instance, entry, common.clone()));
            all.extend(peer.and_then(|peer| Running::of(&peer, entry, common)));
            let own = clients.iter().filter_map(|client| client.own(entry));
            all.extend(own.filter_map(|own| {
                let terms = Terms {
                    sharing: Sharing::PerSession,
                    ..terms.clone()
                };
                Running::of(&own, entry, terms)
            }));
        }
        all
    }

    pub(crate) fn session_ended(&self) {
        self.core.parking.sweep();
        self.core.heap_trim.session_ended();
    }

    /// Lets tasks that nobody has heard of for long count no longer, at all of its servers.
    pub(crate) fn sweep(&self) {
        let clients = self.clients();
        for entry in self.servers().values() {
            let own = clients.iter().filter_map(|client| client.own(entry));
            let peer = entry.instance.open_legacy_peer();
            for instance in own.chain(peer).chain([Arc::clone(&entry.instance)]) {
                instance.traffic.sweep();
            }
        }
    }
}
