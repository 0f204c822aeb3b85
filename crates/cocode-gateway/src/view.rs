//! The servers that a group of clients sees: which there are, what they may do, and who shares what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use cocode_client::{Connector, ListKind, Manager, ManagerOptions};
use cocode_core::{OutputLimits, Prefix, ServerName, ServerSpec, Shadowed, ShownNames};
use cocode_wire::serve::Endpoint;
use tokio::sync::watch;

use crate::consent::Consents;
use crate::downstream::Downstream;
use crate::gate::{Gate, Open};
use crate::gateway::Core;
use crate::inbox::Inbox;
use crate::instance::Instance;
use crate::license::Licenses;
use crate::merged::Merged;
use crate::oversight::{Overseer, Unwatched};
use crate::parked::Parking;
use crate::party::Party;
use crate::place::Place;
use crate::room::Room;
use crate::searching::{Announced, SearchOptions};
use crate::single::Single;

mod selection;

/// What is decided about a view.
#[derive(Clone)]
pub struct ViewOptions {
    /// How its servers are reached and kept.
    pub manager: ManagerOptions,
    /// Which tools may be used.
    pub gate: Arc<dyn Gate>,
    /// Whether names of tools and prompts say whose they are, where all servers are one.
    pub prefix: Prefix,
    /// When clients search for tools instead of being shown all, where all servers are one.
    pub search: SearchOptions,
    /// Everything besides specifications and connector that makes a server another: two views share
    /// a server only if they agree on this.
    pub identity: Vec<String>,
    /// For whom it is: parked requests, consents and tasks of its clients are not found by those of
    /// views for others.
    pub principal: Option<Arc<str>>,
    /// Watches over what its clients have servers do.
    pub overseer: Arc<dyn Overseer>,
    /// Where questions go that its clients can put to nobody.
    pub inbox: Option<Arc<dyn Inbox>>,
    /// How many servers of one name may run for single clients at a time; any number, unless it is said.
    pub max_own_servers: usize,
    /// Wait of an aggregate list for starting servers without a cached list.
    pub first_list_timeout: Duration,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            manager: ManagerOptions::default(),
            gate: Arc::new(Open),
            prefix: Prefix::default(),
            search: SearchOptions::default(),
            identity: Vec::new(),
            principal: None,
            overseer: Arc::new(Unwatched),
            inbox: None,
            max_own_servers: usize::MAX,
            first_list_timeout: Duration::from_secs(2),
        }
    }
}

/// The servers that a group of clients sees. Dropping it lets go of them.
#[derive(Clone, Debug)]
pub struct View {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) core: Arc<Core>,
    options: ViewOptions,
    /// Whom its clients belong to.
    party: Arc<Party>,
    is_watched: bool,
    /// Counts how often the gate has changed its mind.
    gate_changes: Option<watch::Receiver<u64>>,
    servers: RwLock<Arc<BTreeMap<ServerName, Entry>>>,
    /// Sessions that talk to this view.
    clients: Mutex<Vec<Weak<Downstream>>>,
    /// The rooms of single servers that somebody is in, or may come to. One whose server is taken
    /// away is the room of the next server of that name, if its clients are still there.
    singles: Mutex<BTreeMap<ServerName, Weak<Single>>>,
    /// How many servers run for single clients.
    licenses: Licenses,
    /// Lets one change through at a time.
    applying: tokio::sync::Semaphore,
    /// Counts the changes of the servers.
    changes: watch::Sender<u64>,
    /// All servers as one, once somebody wants that.
    all: OnceLock<(Arc<Merged>, Arc<Place>)>,
}

/// One server of a view.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) spec: Arc<ServerSpec>,
    /// The server that everybody shares.
    pub(crate) instance: Arc<Instance>,
    endpoint: Arc<Place>,
}

impl View {
    pub(crate) fn new(core: Arc<Core>, options: ViewOptions) -> Self {
        let inner = Inner {
            core,
            party: Arc::new(Party::new(options.principal.clone(), options.inbox.clone())),
            is_watched: options.overseer.is_watching(),
            gate_changes: options.gate.changes(),
            options,
            servers: RwLock::default(),
            clients: Mutex::default(),
            singles: Mutex::default(),
            licenses: Licenses::default(),
            applying: tokio::sync::Semaphore::new(1),
            changes: watch::Sender::default(),
            all: OnceLock::new(),
        };
        let inner = Arc::new(inner);
        inner.core.add_view(&inner);
        if let Some(gate) = inner.gate().changes() {
            let watching = watch_gate(Arc::downgrade(&inner), gate, inner.changes());
            inner.background(watching);
        }
        Self { inner }
    }

    /// Serves exactly these from now on. Servers that are equal to what was there go on.
    pub async fn apply(&self, specs: impl IntoIterator<Item = ServerSpec>) {
        // The semaphore is never closed.
        let _one_at_a_time = self.inner.applying.acquire().await.ok();
        let before = self.inner.servers();
        let mut servers = BTreeMap::new();
        for spec in specs {
            let name = spec.name.clone();
            let known = before.get(&name);
            let instance = self.inner.shared_instance(&spec, known).await;
            let known = known.map(|entry| Arc::clone(&entry.endpoint));
            let endpoint =
                known.unwrap_or_else(|| Place::new(self.inner.single(&name), &self.inner));
            let entry = Entry {
                spec: Arc::new(spec),
                instance,
                endpoint,
            };
            servers.insert(name, entry);
        }
        let mut current = self
            .inner
            .servers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(servers);
        drop(current);
        self.inner.changes.send_modify(|count| *count += 1);
        self.inner.changed_since(&before);
    }

    /// The endpoint of all servers as one.
    pub fn all(&self) -> Arc<dyn Endpoint> {
        self.all_place()
    }

    pub(crate) fn all_place(&self) -> Arc<Place> {
        let (_, place) = self.inner.all();
        Arc::clone(place)
    }

    /// The same, for clients of whose models this is known.
    pub fn all_for(&self, announced: Announced) -> Arc<dyn Endpoint> {
        if announced == Announced::default() {
            return self.all();
        }
        let (_, place) = self.inner.all();
        place.announcing(announced)
    }

    /// What is not shown where all servers are one, because something else has its name: happens
    /// only with [`Prefix::Never`].
    pub fn shadowed(&self) -> Vec<Shadowed> {
        let (merged, _) = self.inner.all();
        merged.shadowed()
    }

    /// The names by which clients see the tools of all servers, where these are one. A tool that is
    /// not to be seen has none.
    pub fn tool_names(&self) -> ShownNames {
        let (merged, _) = self.inner.all();
        merged.tool_names()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The endpoint of one server, if there is such a server.
    pub fn server(&self, name: &str) -> Option<Arc<dyn Endpoint>> {
        let place = self.place(&name.parse().ok()?)?;
        Some(place)
    }

    pub(crate) fn place(&self, name: &ServerName) -> Option<Arc<Place>> {
        self.inner.entry(name).map(|entry| entry.endpoint)
    }

    /// For whom it is.
    pub fn principal(&self) -> Option<&str> {
        self.inner.party.principal()
    }

    /// The servers that there are.
    pub fn names(&self) -> Vec<ServerName> {
        self.inner.servers().keys().cloned().collect()
    }

    /// Who runs the server that everybody shares, if there is such a server: to see how it is, hear
    /// what happens to it, and start it anew.
    pub fn manager(&self, name: &ServerName) -> Option<Manager> {
        let entry = self.inner.entry(name)?;
        Some(entry.instance.manager().clone())
    }
}

impl Inner {
    pub(crate) fn servers(&self) -> Arc<BTreeMap<ServerName, Entry>> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&servers)
    }

    /// Tells when the servers have changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// How often the gate has changed its mind.
    pub(crate) fn n_gate_changes(&self) -> u64 {
        let changes = self.gate_changes.as_ref();
        changes.map_or(0, |changes| *changes.borrow())
    }

    fn all(self: &Arc<Self>) -> &(Arc<Merged>, Arc<Place>) {
        self.all.get_or_init(|| {
            let (prefix, timeout) = (self.options.prefix, self.options.first_list_timeout);
            let merged = Merged::begin(self, prefix, timeout);
            let room: Arc<dyn Room> = Arc::<Merged>::clone(&merged);
            (merged, Place::new(room, self))
        })
    }

    pub(crate) fn entry(&self, name: &ServerName) -> Option<Entry> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        servers.get(name).cloned()
    }

    pub(crate) fn gate(&self) -> &dyn Gate {
        &*self.options.gate
    }

    /// Whom its clients belong to.
    pub(crate) fn party(&self) -> &Arc<Party> {
        &self.party
    }

    /// Whether somebody watches over what clients have servers do.
    pub(crate) fn is_watched(&self) -> bool {
        self.is_watched
    }

    pub(crate) fn overseer(&self) -> &Arc<dyn Overseer> {
        &self.options.overseer
    }

    pub(crate) fn search(&self) -> &SearchOptions {
        &self.options.search
    }

    /// How large what tools answer may be.
    pub(crate) fn output(&self) -> &OutputLimits {
        &self.options.manager.output
    }

    pub(crate) fn parking(&self) -> &Parking {
        &self.core.parking
    }

    pub(crate) fn consents(&self) -> &Consents {
        &self.core.consents
    }

    /// Runs something that nobody waits for.
    pub(crate) fn background(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.core.background(work);
    }

    /// The room of one server.
    fn single(self: &Arc<Self>, name: &ServerName) -> Arc<Single> {
        let mut singles = self.singles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = singles.get(name).and_then(Weak::upgrade) {
            return known;
        }
        singles.retain(|_, single| single.strong_count() > 0);
        let single = Arc::new(Single::new(self, name.clone()));
        singles.insert(name.clone(), Arc::downgrade(&single));
        single
    }

    fn singles(&self) -> Vec<Arc<Single>> {
        let singles = self.singles.lock().unwrap_or_else(PoisonError::into_inner);
        singles.values().filter_map(Weak::upgrade).collect()
    }

    /// Lets clients know, and get used to it, that the servers are not these any more.
    fn changed_since(&self, before: &BTreeMap<ServerName, Entry>) {
        let servers = self.servers();
        for client in self.clients() {
            client.release(&servers);
        }
        self.attend(None);
        for single in self.singles() {
            let (before, now) = (before.get(single.name()), servers.get(single.name()));
            single.changed(before, now);
        }
    }

    /// Makes sure that everybody hears the servers that there are now; or one client does, if it is
    /// only about that one.
    fn attend(&self, client: Option<&Arc<Downstream>>) {
        for single in self.singles() {
            single.audience().attend(self, client);
        }
        if let Some((merged, _)) = self.all.get() {
            merged.audience().attend(self, client);
        }
    }

    /// Tells when calls under way are given up.
    pub(crate) fn drained(&self) -> watch::Receiver<bool> {
        self.core.drained()
    }

    /// Ready when there is nothing more to be heard: the gateway is about to end, the view is gone,
    /// or the server, if it is about one, is not served any more. Keeps none of them.
    pub(crate) fn silence(
        self: &Arc<Self>,
        server: Option<ServerName>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (view, mut changes) = (Arc::downgrade(self), self.changes());
        let is_served = move || {
            let view = view.upgrade();
            let server = server.as_ref();
            view.is_some_and(|view| server.is_none_or(|server| view.entry(server).is_some()))
        };
        let ending = self.core.ending();
        async move {
            let gone = async { while is_served() && changes.changed().await.is_ok() {} };
            tokio::select! {
                () = ending => {}
                () = gone => {}
            }
        }
    }

    async fn shared_instance(&self, spec: &ServerSpec, known: Option<&Entry>) -> Arc<Instance> {
        let connector: &Arc<dyn Connector> = &self.options.manager.connector;
        let sharing = connector.sharing(spec);
        // A server of which it cannot be told whether it is like another is at least like itself.
        if let Some(entry) = known.filter(|entry| sharing.is_none() && *entry.spec == *spec) {
            return Arc::clone(&entry.instance);
        }
        let key = sharing.map(|sharing| {
            let mut key = vec![spec.fingerprint()];
            key.extend(sharing);
            key.extend(self.options.identity.iter().cloned());
            key
        });
        self.core
            .instances
            .lease(key, spec, &self.options.manager, &self.core.reaper)
            .await
    }

    /// The sessions that talk to this view. Lets go of the memory of those that have ended.
    pub(crate) fn clients(&self) -> Vec<Arc<Downstream>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.shrink_to_fit();
        clients.iter().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn remember(&self, client: &Arc<Downstream>) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| client.strong_count() > 0);
        clients.push(Arc::downgrade(client));
    }
}

/// Tells clients of single servers when other tools may be used.
async fn watch_gate(
    view: Weak<Inner>,
    mut gate: watch::Receiver<u64>,
    mut changes: watch::Receiver<u64>,
) {
    loop {
        tokio::select! {
            changed = gate.changed() => {
                let (Ok(()), Some(view)) = (changed, view.upgrade()) else {
                    return;
                };
                for single in view.singles() {
                    single.tell_changed(&[ListKind::Tools]);
                }
            }
            // Only to notice the end of the view.
            changed = changes.changed() => if changed.is_err() {
                return;
            },
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: BTreeSet<_> = self.servers().keys().cloned().collect();
        formatter
            .debug_struct("View")
            .field("servers", &names)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for ViewOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ViewOptions")
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}
