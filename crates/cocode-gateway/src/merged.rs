//! All servers of a view as one: names that say whose they are, lists that are one list, and every
//! request at the server it is for.
//!
//! Tools and prompts are named as [`Prefix`] says. Resources keep their URIs; see `uris` for two
//! servers that have the same one. What is listed is what the server listed, with another name and
//! nothing else changed. Arguments are checked before a tool is called, and results that are too
//! large are shortened, as a manager does it.
//!
//! Lists wait for servers that are starting and have no cached list: up to `first_list_timeout` of the
//! view and `startup_timeout_sec` of the server. `list_changed` announces those that come later. A request
//! for a tool, prompt or resource that no known list has waits up to `startup_timeout_sec`.
//!
//! How long a list holds, for clients who want to know: as long as the server says whose list holds
//! for the shortest time, counted from when it was read; no time at all if one of them says nothing,
//! as those of the older era do, or is not there yet. It may be shared if every server says so and
//! nothing is filtered.

mod asking;
mod calling;
mod deferring;
mod greeting;
mod index;
mod listening;
mod pages;
mod resources;
pub(crate) mod retelling;
mod search;
mod snapshot;
mod tasks;
mod uris;
mod watching;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cocode_client::{Catalog, ListKind, Notification};
use cocode_core::{Era, Prefix, ServerName, Shadowed, ShownNames};
use cocode_wire::{RawJson, RpcError, code};
use tokio::sync::watch;
use tokio::time::Instant;

use self::index::Index;
pub(crate) use self::pages::{Pages, with_text};
use self::search::choice_of;
pub(crate) use self::snapshot::Lists;
use self::snapshot::Snapshot;
use self::watching::Changes;
use crate::audience::Audience;
use crate::caller::Caller;
use crate::downstream::{Downstream, unknown_method};
use crate::instance::Instance;
use crate::reply::Reply;
use crate::request::Request;
use crate::room::{Replying, Room};
use crate::searching::{Choice, SearchOptions};
use crate::view::{Entry, Inner};

/// The room of all servers of a view.
pub(crate) struct Merged {
    view: Weak<Inner>,
    prefix: Prefix,
    snapshot: Mutex<Arc<Snapshot>>,
    audience: Audience,
    index: Arc<Mutex<Index>>,
    first_list_timeout: Duration,
    /// When a request first waited for a server without a known list.
    first_waits: Mutex<BTreeMap<ServerName, (Weak<Instance>, Instant)>>,
}

impl Merged {
    /// Begins to look after a view.
    pub(crate) fn begin(
        view: &Arc<Inner>,
        prefix: Prefix,
        first_list_timeout: Duration,
    ) -> Arc<Self> {
        let merged = Arc::new(Self {
            view: Arc::downgrade(view),
            prefix,
            snapshot: Mutex::default(),
            audience: Audience::default(),
            index: Arc::default(),
            first_list_timeout,
            first_waits: Mutex::default(),
        });
        let changes = Changes {
            view: view.changes(),
            gate: view.gate().changes(),
            catalogs: Vec::new(),
        };
        view.background(watching::watch(Arc::downgrade(&merged), changes));
        merged
    }

    /// What is not shown, because something else has its name.
    pub(crate) fn shadowed(&self) -> Vec<Shadowed> {
        let Ok((_, snapshot)) = self.current() else {
            return Vec::new();
        };
        let shadowed = [snapshot.tools.shadowed(), snapshot.prompts.shadowed()];
        shadowed.concat()
    }

    /// The names that clients see tools by.
    pub(crate) fn tool_names(&self) -> ShownNames {
        let current = self.current();
        current.map_or_else(|_gone| ShownNames::default(), |(_, now)| now.tools.clone())
    }

    pub(crate) fn audience(&self) -> &Audience {
        &self.audience
    }

    fn view(&self) -> Result<Arc<Inner>, RpcError> {
        let gone = || {
            RpcError::new(
                code::INTERNAL_ERROR,
                "these servers are not served any more",
            )
        };
        self.view.upgrade().ok_or_else(gone)
    }

    /// What there is at this moment.
    fn current(&self) -> Result<(Arc<Inner>, Arc<Snapshot>), RpcError> {
        let view = self.view()?;
        let snapshot = self.snapshot_of(&view);
        Ok((view, snapshot))
    }

    fn snapshot_of(&self, view: &Inner) -> Arc<Snapshot> {
        let mut known = lock(&self.snapshot);
        if !known.is_current(view) {
            *known = Arc::new(Snapshot::of(view, self.prefix, &known));
        }
        Arc::clone(&known)
    }

    /// What each server offers, to be watched.
    fn catalogs(&self) -> Option<Vec<watch::Receiver<Arc<Catalog>>>> {
        let servers = self.view.upgrade()?.servers();
        let catalogs = servers
            .values()
            .map(|entry| entry.instance.manager().watch_catalog());
        Some(catalogs.collect())
    }

    /// Tells everybody whose lists are not true any more.
    fn announce(&self) {
        let Ok((view, _)) = self.current() else {
            return;
        };
        self.audience.prune();
        for member in self.audience.all() {
            member.update(|choice| {
                let snapshot = self.snapshot_of(&view);
                let mut lists = snapshot.lists.clone();
                if choice.reconsider(view.search(), || snapshot.load()) {
                    lists.set(ListKind::Tools, Arc::clone(snapshot.searched_tools()));
                }
                lists
            });
        }
    }

    /// Waits for servers that are starting and have no known list, each up to its `startup_timeout_sec`,
    /// counted from the first request that waited for it.
    async fn wait_for(&self, kind: ListKind) -> Result<(), RpcError> {
        self.wait_at_most(kind, Duration::MAX).await
    }

    async fn wait_at_most(&self, kind: ListKind, limit: Duration) -> Result<(), RpcError> {
        let (view, snapshot) = self.current()?;
        let unknown = snapshot.unknown(kind);
        if unknown.is_empty() {
            return Ok(());
        }
        let servers = view.servers();
        let each = unknown.iter().filter_map(|name| {
            let entry = servers.get(name)?;
            let until = self.first_wait(entry) + entry.spec.startup_timeout.min(limit);
            let manager = entry.instance.manager();
            Some(manager.wait_for_list(name, kind, until))
        });
        let each: Vec<_> = each.collect();
        drop(futures_util::future::join_all(each).await);
        Ok(())
    }

    fn first_wait(&self, entry: &Entry) -> Instant {
        let this = Arc::downgrade(&entry.instance);
        let mut all = lock(&self.first_waits);
        let known = all.get(&entry.spec.name);
        if let Some((known, since)) = known
            && known.ptr_eq(&this)
        {
            return *since;
        }
        let now = Instant::now();
        all.insert(entry.spec.name.clone(), (this, now));
        now
    }

    async fn list(&self, request: &Request, kind: ListKind) -> Result<Reply, RpcError> {
        self.wait_at_most(kind, self.first_list_timeout).await?;
        let (view, snapshot) = self.current()?;
        let member = self.audience.find(request.session);
        let pages = match member {
            Some(member) => member.look(kind, |choice| {
                given(&self.snapshot_of(&view), kind, choice, view.search())
            }),
            None => given(&snapshot, kind, &mut choice_of(request)?, view.search()),
        };
        let tail = pages.asked_for(request.params.as_ref())?;
        let mut holds = holds(&view, &snapshot, kind);
        if !Arc::ptr_eq(&pages, snapshot.lists.get(kind)) {
            // Others are given another list.
            holds.1 = "private";
        }
        let head = match request.caller.era() {
            Era::Legacy => "{".to_owned(),
            Era::Modern => {
                let (time, scope) = holds;
                let time = time.as_millis();
                format!(r#"{{"resultType":"complete","ttlMs":{time},"cacheScope":"{scope}","#)
            }
        };
        Ok(Reply::Parts(head, tail))
    }

    /// The server that a request is for, as this client is served by it.
    async fn instance(&self, entry: &Entry, request: &Request) -> Result<Arc<Instance>, RpcError> {
        let view = self.view()?;
        let (client, caller) = (&request.from, &request.caller);
        view.instance_for(entry, client, caller).await
    }

    async fn reply(&self, mut request: Box<Request>) -> Result<Reply, RpcError> {
        if let Some(refusal) = request.said.refusal.take() {
            return Err(self.view()?.refuse(&request, refusal));
        }
        match (request.caller.era(), request.method.as_str()) {
            (_, "tools/call") => self.call(request).await,
            (_, "tools/list") => self.list(&request, ListKind::Tools).await,
            (_, "prompts/list") => self.list(&request, ListKind::Prompts).await,
            (_, "resources/list") => self.list(&request, ListKind::Resources).await,
            (_, "resources/templates/list") => {
                self.list(&request, ListKind::ResourceTemplates).await
            }
            (_, "prompts/get") => self.get_prompt(&request).await,
            (_, "resources/read") => self.read(&request).await,
            (_, "completion/complete") => self.complete(&request).await,
            (Era::Legacy, "logging/setLevel") => self.set_level(&request).await,
            (Era::Legacy, "resources/subscribe") => self.subscribe(&request).await,
            (Era::Legacy, "resources/unsubscribe") => self.unsubscribe(&request),
            (Era::Modern, "subscriptions/listen") => Box::pin(self.listen(request)).await,
            (Era::Modern, "tasks/get" | "tasks/update" | "tasks/cancel") => {
                self.task(&request).await
            }
            (_, method) => Err(unknown_method(method)),
        }
    }
}

/// The list that a client is given.
fn given(
    snapshot: &Snapshot,
    kind: ListKind,
    choice: &mut Choice,
    search: &SearchOptions,
) -> Arc<Pages> {
    if kind == ListKind::Tools && choice.decide(search, || snapshot.load()) {
        return Arc::clone(snapshot.searched_tools());
    }
    Arc::clone(snapshot.lists.get(kind))
}

/// How long a list holds, and for whom.
fn holds(view: &Inner, snapshot: &Snapshot, kind: ListKind) -> (Duration, &'static str) {
    let servers = view.servers();
    let mut holds = Duration::MAX;
    let mut is_public = view.gate().is_open() && !servers.is_empty();
    for (name, entry) in &*servers {
        let manager = entry.instance.manager();
        manager.revalidate(name);
        let has = snapshot.capabilities(name).is_none_or(|can| match kind {
            ListKind::Tools => can.tools,
            ListKind::Resources | ListKind::ResourceTemplates => can.resources,
            ListKind::Prompts => can.prompts,
        });
        if has {
            let (time, may_be_shared) = manager.list_holds(name, kind);
            holds = holds.min(time);
            is_public &= may_be_shared && entry.spec.tools.admits_all();
        }
    }
    let is_known = snapshot.unknown(kind).is_empty() && holds != Duration::MAX;
    (
        if is_known { holds } else { Duration::ZERO },
        if is_public { "public" } else { "private" },
    )
}

impl Room for Merged {
    fn welcome<'a>(
        self: Arc<Self>,
        client: &'a Arc<Downstream>,
        caller: &'a Arc<Caller>,
    ) -> Replying<'a> {
        Box::pin(async move { self.greet(client, caller).unwrap_or_else(Reply::Error) })
    }

    fn discover<'a>(&'a self, _request: &'a Request) -> Replying<'a> {
        Box::pin(async move {
            match self.current() {
                Ok((view, snapshot)) => greeting::of(&view, &snapshot, Era::Modern).discovered(),
                Err(error) => error.into(),
            }
        })
    }

    fn serve(self: Arc<Self>, request: Box<Request>) -> Replying<'static> {
        Box::pin(async move { self.reply(request).await.unwrap_or_else(Reply::Error) })
    }

    fn told(&self, client: &Downstream, method: &str, params: Option<&RawJson>) {
        let Ok(view) = self.view() else {
            return;
        };
        // What one client says is not for servers that serve others, too.
        for entry in view.servers().values() {
            if let Some(instance) = client.own(entry) {
                client.outbox.tell(&view, &instance, method, params);
            }
        }
    }

    fn left(&self) {
        self.audience.prune();
        if let Some(view) = self.view.upgrade() {
            view.session_ended();
        }
    }

    fn retold(&self, server: &ServerName, notification: &Notification) -> Option<RawJson> {
        match notification.method.as_str() {
            "notifications/message" => retelling::message(server, notification.params.as_ref()),
            method if method.starts_with("notifications/tasks") => {
                tasks::named_in(server, notification.params.as_ref()?)
            }
            _ => None,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Merged {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Merged")
            .field("prefix", &self.prefix)
            .field("audience", &self.audience)
            .finish_non_exhaustive()
    }
}
