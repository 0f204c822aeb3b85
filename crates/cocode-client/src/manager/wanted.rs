//! Which servers there are to be: compares what is wanted with what is there, and keeps, restarts,
//! stops or starts.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use cocode_core::{Era, ServerName, ServerSpec};
use tokio::sync::oneshot;

use super::Manager;
use super::lists::Lists;
use super::options::When;
use super::server::{Order, Replacement, Server};
use super::shared::Shared;
use super::startup;
use super::state::{ServerState, ServerStatus};
use super::supervisor::Supervisor;
use crate::manager::call_error::CallError;

/// One server, as its user wants it.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// To be used.
    Run(Box<ServerSpec>),
    /// Known, but switched off.
    Disabled(ServerName),
    /// Known, but not approved.
    PendingTrust(ServerName),
}

impl Wanted {
    /// Which server.
    pub fn name(&self) -> &ServerName {
        match self {
            Self::Run(spec) => &spec.name,
            Self::Disabled(name) | Self::PendingTrust(name) => name,
        }
    }
}

impl From<ServerSpec> for Wanted {
    fn from(spec: ServerSpec) -> Self {
        Self::Run(Box::new(spec))
    }
}

/// What a change of the servers meant for each of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// As before, or with changes that need no new connection.
    pub kept: Vec<ServerName>,
    /// Changed, and connected anew.
    pub restarted: Vec<ServerName>,
    /// Not wanted any more.
    pub stopped: Vec<ServerName>,
    /// New.
    pub started: Vec<ServerName>,
}

/// A server that is known and must not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Withheld {
    Disabled,
    PendingTrust,
}

impl Withheld {
    pub(crate) fn state(self) -> ServerState {
        match self {
            Self::Disabled => ServerState::Disabled,
            Self::PendingTrust => ServerState::PendingTrust,
        }
    }
}

/// What is remembered of a server from before.
type Before = (Lists, Option<Era>);

impl Manager {
    /// Makes these the servers, and no others. Of two with the same name the last counts. Returns
    /// as soon as everything is under way and what is remembered of the servers is in the catalog;
    /// [`Manager::wait_for_startup`] waits for the servers themselves.
    pub async fn apply<W: Into<Wanted>>(&self, wanted: impl IntoIterator<Item = W>) -> Applied {
        let wanted = wanted.into_iter().map(Into::into);
        let wanted: BTreeMap<ServerName, Wanted> = wanted
            .map(|wanted| (wanted.name().clone(), wanted))
            .collect();
        let mut specs = BTreeMap::new();
        let mut withheld = BTreeMap::new();
        for (name, wanted) in wanted {
            match wanted {
                Wanted::Run(spec) => {
                    specs.insert(name, *spec);
                }
                Wanted::Disabled(_) => {
                    withheld.insert(name, Withheld::Disabled);
                }
                Wanted::PendingTrust(_) => {
                    withheld.insert(name, Withheld::PendingTrust);
                }
            }
        }
        // The semaphore is never closed.
        let _one_at_a_time = self.owner.applying.acquire().await.ok();
        let shared = self.shared();
        shared.set_withheld(withheld);
        let old = shared.servers();
        let mut remembered = self.remembered(&old, &specs).await;
        let mut applied = Applied::default();
        let mut servers = BTreeMap::new();
        let mut starting = Vec::new();
        let mut restarting = Vec::new();
        for (name, server) in old.iter() {
            if !specs.contains_key(name) {
                server.order(Order::End).await;
                applied.stopped.push(name.clone());
            }
        }
        for (name, spec) in specs {
            let before = remembered.remove(&name).unwrap_or_default();
            let server = match old.get(&name) {
                None => {
                    applied.started.push(name.clone());
                    let server = self.start(spec, before);
                    starting.push(Arc::clone(&server));
                    server
                }
                Some(server) if server.spec().needs_restart(&spec) => {
                    applied.restarted.push(name.clone());
                    let (done, restarted) = oneshot::channel();
                    let replacement = Replacement {
                        at_once: self.starts_at_once(&before.0),
                        lists: before.0,
                        era: before.1,
                        spec,
                    };
                    let order = Order::Restart(Some(Box::new(replacement)), done);
                    server.order(order).await;
                    restarting.push(restarted);
                    starting.push(Arc::clone(server));
                    Arc::clone(server)
                }
                Some(server) => {
                    applied.kept.push(name.clone());
                    server.set_spec(spec);
                    Arc::clone(server)
                }
            };
            servers.insert(name, server);
        }
        for restarted in restarting {
            // Nothing is ever sent: the other end is dropped when it is done.
            restarted.await.unwrap_or_default();
        }
        shared.set_servers(servers);
        shared.publish();
        self.own(startup::tell(Arc::clone(shared), starting));
        applied
    }

    /// What is remembered of those servers that are new or changed.
    async fn remembered(
        &self,
        old: &BTreeMap<ServerName, Arc<Server>>,
        specs: &BTreeMap<ServerName, ServerSpec>,
    ) -> BTreeMap<ServerName, Before> {
        let cache = self.shared().options.cache.clone();
        if cache.is_off() {
            return BTreeMap::new();
        }
        let is_new = |name: &ServerName, spec: &ServerSpec| {
            old.get(name)
                .is_none_or(|server| server.spec().needs_restart(spec))
        };
        let keys: Vec<(ServerName, String)> = specs
            .iter()
            .filter(|(name, spec)| is_new(name, spec))
            .map(|(name, spec)| (name.clone(), self.shared().cache_key(spec)))
            .collect();
        let load = move || {
            let loaded = keys.into_iter().filter_map(|(name, key)| {
                let remembered = cache.load(&key)?;
                let era = remembered.era();
                Some((name, (Lists::of(remembered), era)))
            });
            loaded.collect()
        };
        match tokio::task::spawn_blocking(load).await {
            Ok(remembered) => remembered,
            Err(error) => {
                tracing::warn!(%error, "nothing is remembered of any server");
                BTreeMap::new()
            }
        }
    }

    /// Whether a server of which this is known is started before anybody needs it.
    fn starts_at_once(&self, lists: &Lists) -> bool {
        let options = &self.shared().options;
        match options.start.when {
            When::AtOnce => true,
            When::Needed => lists.tools.is_stale(options.list_clock()),
            When::OnlyNeeded => false,
        }
    }

    fn start(&self, spec: ServerSpec, before: Before) -> Arc<Server> {
        let shared = self.shared();
        let options = &shared.options;
        let state = if self.starts_at_once(&before.0) {
            ServerState::Starting { slow: false }
        } else {
            ServerState::Stopped
        };
        let log = options.logs.server(spec.name.as_str());
        let mut trace = options.telemetry.server(spec.name.as_str());
        trace.enter(state.kind().as_str());
        let (server, orders) = Server::new(spec, state, before, log, trace);
        let supervisor = Supervisor::new(Arc::clone(shared), Arc::clone(&server), orders);
        self.own(supervisor.run());
        server
    }

    pub(super) fn own(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self
            .owner
            .tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // What has ended is not kept.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// The error for a name that belongs to a server which must not run.
    pub(super) fn withheld_in(&self, name: &str) -> Option<CallError> {
        let shared = self.shared();
        let meant = shared.withheld_servers().into_iter().find(|(server, _)| {
            let prefix = format!("mcp__{server}__");
            name.starts_with(&prefix)
        });
        meant.map(|(server, withheld)| CallError::Unavailable {
            server,
            state: withheld.state(),
            in_time: true,
        })
    }
}

impl Shared {
    pub(super) fn withheld_statuses(&self) -> Vec<ServerStatus> {
        let withheld = self.withheld_servers();
        let status = |(name, withheld): (ServerName, Withheld)| ServerStatus {
            name,
            state: withheld.state(),
            connection: None,
            last_trouble: None,
            reconnects: 0,
            in_flight: 0,
            required: false,
        };
        withheld.into_iter().map(status).collect()
    }
}
