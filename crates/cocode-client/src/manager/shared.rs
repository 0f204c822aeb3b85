//! What all parts of a manager share: the servers, the catalog made of what they listed, and the
//! ones who listen.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cocode_core::{ServerName, ServerSpec};
use cocode_wire::RawJson;
use tokio::sync::watch;

use super::catalog::{Catalog, ServerCatalog};
use super::events::{Bus, Event};
use super::options::ManagerOptions;
use super::server::Server;
use super::wanted::Withheld;
use crate::list_cache::ListCache;

pub(crate) type Servers = BTreeMap<ServerName, Arc<Server>>;

pub(crate) struct Shared {
    pub(crate) options: ManagerOptions,
    pub(crate) bus: Bus,
    pub(crate) catalog: watch::Sender<Arc<Catalog>>,
    /// What servers are told about the sandbox, if anything.
    pub(crate) sandbox: watch::Sender<Option<RawJson>>,
    pub(crate) calls: AtomicU64,
    servers: RwLock<Arc<Servers>>,
    withheld: RwLock<BTreeMap<ServerName, Withheld>>,
    /// The version of the last catalog. Who holds it publishes.
    publishing: Mutex<u64>,
}

impl Shared {
    pub(crate) fn new(options: ManagerOptions) -> Self {
        Self {
            options,
            bus: Bus::new(),
            catalog: watch::Sender::new(Arc::default()),
            sandbox: watch::Sender::new(None),
            calls: AtomicU64::new(1),
            servers: RwLock::default(),
            withheld: RwLock::default(),
            publishing: Mutex::new(0),
        }
    }

    pub(crate) fn servers(&self) -> Arc<Servers> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&servers)
    }

    pub(crate) fn set_servers(&self, servers: Servers) {
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(servers);
    }

    pub(crate) fn server(&self, name: &ServerName) -> Option<Arc<Server>> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.get(name).cloned()
    }

    /// Under which name the lists of a server are remembered.
    pub(crate) fn cache_key(&self, spec: &ServerSpec) -> String {
        let identity = self.options.connector.identity(spec).unwrap_or_default();
        let identity: Vec<&str> = identity.iter().map(String::as_str).collect();
        ListCache::key_for(&spec.fingerprint(), &identity)
    }

    pub(crate) fn set_withheld(&self, withheld: BTreeMap<ServerName, Withheld>) {
        *self
            .withheld
            .write()
            .unwrap_or_else(PoisonError::into_inner) = withheld;
    }

    pub(crate) fn withheld(&self, name: &ServerName) -> Option<Withheld> {
        let withheld = self.withheld.read().unwrap_or_else(PoisonError::into_inner);
        withheld.get(name).copied()
    }

    pub(crate) fn withheld_servers(&self) -> BTreeMap<ServerName, Withheld> {
        let withheld = self.withheld.read().unwrap_or_else(PoisonError::into_inner);
        withheld.clone()
    }

    /// Makes a catalog of what the servers have listed by now, and publishes it if it is another.
    pub(crate) fn publish(&self) {
        let mut version = self
            .publishing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let servers = self.servers();
        let each = servers.values().map(|server| {
            let spec = server.spec();
            let is_offered = server.is_offered();
            server.lists(|lists| ServerCatalog::of(&server.name, &spec.tools, is_offered, lists))
        });
        let catalog = Catalog::new(*version + 1, each);
        let older = Arc::clone(&self.catalog.borrow());
        let change = catalog.change_since(&older);
        if change.is_empty() && catalog.is_like(&older) {
            return;
        }
        *version += 1;
        self.catalog.send_replace(Arc::new(catalog));
        if !change.is_empty() {
            tracing::debug!(
                version = *version,
                added = change.added.len(),
                removed = change.removed.len(),
                changed = change.changed.len(),
                "the catalog changed"
            );
            self.bus.tell(|| Event::CatalogChanged(Arc::new(change)));
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("options", &self.options)
            .field("servers", &self.servers())
            .finish_non_exhaustive()
    }
}
