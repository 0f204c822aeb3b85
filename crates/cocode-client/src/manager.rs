//! Many servers, always in a known state: keeps them connected, healthy and catalogued, and turns
//! the name of a tool into a safe call.

mod asking;
mod attempt;
mod attempts;
mod backoff;
mod call_error;
mod call_events;
mod calls;
mod catalog;
mod changes;
mod connector;
mod ears;
mod events;
mod find;
mod health;
mod idling;
mod listing;
mod lists;
mod looking;
mod options;
mod output;
mod prompts;
mod relaying;
mod resources;
mod sandbox;
mod server;
mod shared;
mod starts;
mod startup;
mod state;
mod supervisor;
mod verdict;
mod wanted;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cocode_core::{ServerName, ServerSpec};
use cocode_wire::RawJson;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use backoff::Backoff;
pub use call_error::CallError;
pub(crate) use call_error::did_you_mean;
pub use calls::{CallContext, Called, Check, OutputWanted};
pub use catalog::{Catalog, CatalogChange, FoundTool, ServerCatalog};
pub use connector::{Connector, PlainConnector, ReachError, ReachErrorKind, Reached};
pub use events::{CallEnd, CallId, EVENTS_KEPT, Event, Events};
pub use lists::CatalogTool;
pub use options::{Handlers, Health, ListReading, ManagerOptions, Start, When};
pub use output::Output;
pub use prompts::{PromptCommand, PromptError, command_words};
pub use resources::{Aggregated, ResourceReference};
pub use sandbox::{SANDBOX_STATE_CAPABILITY, SANDBOX_STATE_METHOD, SandboxState};
pub use starts::{Concurrency, StartLimiter};
pub use startup::{RequiredServersMissing, Startup};
pub use state::{
    Cause, ConnectionFacts, ServerState, ServerStatus, StateKind, StateWatch, Trouble,
};
pub use wanted::{Applied, Wanted};

use crate::list_cache::ListKind;
use crate::session::Session;
use server::{Order, Server};
use shared::Shared;

/// How long [`Manager::shutdown`] waits for servers to end.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(10);

/// Keeps servers connected. Cheap to clone; the last clone that is dropped ends every connection,
/// without waiting. [`Manager::shutdown`] ends them politely.
#[derive(Clone, Debug)]
pub struct Manager {
    owner: Arc<Owner>,
}

/// Owns the tasks, which share everything else.
#[derive(Debug)]
struct Owner {
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
    /// Lets one change of the servers through at a time.
    applying: Semaphore,
}

impl Manager {
    /// A manager without servers. Has to be called within a tokio runtime, as everything here.
    pub fn new(options: ManagerOptions) -> Self {
        Self {
            owner: Arc::new(Owner {
                shared: Arc::new(Shared::new(options)),
                tasks: Mutex::default(),
                applying: Semaphore::new(1),
            }),
        }
    }

    /// Everything that the servers offer, as of now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.shared().catalog.borrow())
    }

    /// The catalog, and every one that takes its place.
    pub fn watch_catalog(&self) -> watch::Receiver<Arc<Catalog>> {
        self.shared().catalog.subscribe()
    }

    /// What happens from now on.
    pub fn events(&self) -> Events {
        self.shared().bus.listen()
    }

    /// Notices when a server gets into another state than it is in now. Nothing if there is no such
    /// server.
    pub fn watch_state(&self, server: &ServerName) -> Option<StateWatch> {
        let server = self.shared().server(server)?;
        Some(StateWatch::new(server.watch()))
    }

    /// Tells the listeners that a change of the configuration cannot be used, and that what was
    /// there before goes on.
    pub fn reject_configuration(&self, problems: Vec<String>) {
        let event = Event::ConfigurationRejected { problems };
        self.shared().bus.tell(|| event);
    }

    /// The specification of a server that is managed.
    pub fn spec(&self, server: &ServerName) -> Option<Arc<ServerSpec>> {
        Some(self.shared().server(server)?.spec())
    }

    /// How every server is, by name.
    pub fn status(&self) -> Vec<ServerStatus> {
        let shared = self.shared();
        let servers = shared.servers();
        let running = servers.values().map(|server| server.status());
        let mut all: Vec<_> = running.chain(shared.withheld_statuses()).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The session with a server. One that does not run is started, one that failed is tried once
    /// more, one that is being connected is waited for, all until `deadline`.
    pub async fn session(
        &self,
        server: &ServerName,
        deadline: Instant,
    ) -> Result<Session, CallError> {
        let server = self.server(server)?;
        server.touch();
        let session = server.session(deadline).await;
        session.map_err(|error| find::unavailable(&server, error))
    }

    /// Connects to a server anew. When this returns, the old session is not given out any more.
    pub async fn restart(&self, server: &ServerName) -> Result<(), CallError> {
        let (done, restarted) = oneshot::channel();
        self.server(server)?.order(Order::Restart(None, done)).await;
        // Nothing is ever sent: the other end is dropped when it is done.
        restarted.await.unwrap_or_default();
        Ok(())
    }

    /// Disconnects a server, and waits until it has ended. The next call starts it again.
    pub async fn stop(&self, server: &ServerName) -> Result<(), CallError> {
        let (done, stopped) = oneshot::channel();
        self.server(server)?.order(Order::Stop(done)).await;
        // Nothing is ever sent: the other end is dropped when the server has stopped.
        stopped.await.unwrap_or_default();
        Ok(())
    }

    /// Asks a server for all its lists again, and waits for them.
    pub async fn refresh(&self, server: &ServerName, deadline: Instant) -> Result<(), CallError> {
        let server = self.server(server)?;
        let session = server.session(deadline).await;
        let session = session.map_err(|error| find::unavailable(&server, error))?;
        let kinds = ListKind::ALL.into_iter().collect();
        let reading = listing::read(self.shared(), &server, &session, &kinds);
        match tokio::time::timeout_at(deadline, reading).await {
            Ok(_what_could_not_be_read) => Ok(()),
            Err(_elapsed) => Err(find::unavailable(
                &server,
                server::NoSession::TooLate(server.state()),
            )),
        }
    }

    /// Waits until all lists of a server have been read, or could not be. A server that is not
    /// there is not waited for, nor are lists that are read on demand.
    pub async fn wait_for_lists(&self, server: &ServerName, deadline: Instant) {
        let Ok(server) = self.server(server) else {
            return;
        };
        if self.shared().options.lists == ListReading::OnDemand {
            return;
        }
        let (mut lists, mut standing) = (server.lists_changed(), server.watch());
        let is_settled = || {
            let connection = server.connection();
            server.lists(|lists| lists.are_all_settled(connection))
        };
        while server.current().is_some() && !is_settled() {
            tokio::select! {
                changed = lists.changed() => if changed.is_err() { return },
                changed = standing.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(deadline) => return,
            }
        }
    }

    /// What servers that care are told about the sandbox, now and when they start: what
    /// [`SandboxState::to_json`] gives.
    pub fn set_sandbox_state(&self, state: RawJson) {
        self.shared().sandbox.send_replace(Some(state));
    }

    /// Ends every connection, and waits for that within fixed bounds.
    pub async fn shutdown(&self) {
        let shared = self.shared();
        // The semaphore is never closed.
        let _nothing_is_started = self.owner.applying.acquire().await.ok();
        for server in shared.servers().values() {
            server.order(Order::End).await;
        }
        let mut tasks = std::mem::take(
            &mut *self
                .owner
                .tasks
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        );
        let ending = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_WITHIN, ending).await.is_err() {
            tracing::warn!("some servers did not end in time; they are being killed");
        }
        drop(tasks);
        shared.set_servers(shared::Servers::new());
        shared.set_withheld(std::collections::BTreeMap::new());
        shared.publish();
    }

    fn server(&self, name: &ServerName) -> Result<Arc<Server>, CallError> {
        let shared = self.shared();
        if let Some(server) = shared.server(name) {
            return Ok(server);
        }
        if let Some(withheld) = shared.withheld(name) {
            return Err(CallError::Unavailable {
                server: name.clone(),
                state: withheld.state(),
                in_time: true,
            });
        }
        let servers = shared.servers();
        let names = servers.keys().map(ServerName::as_str);
        let near = cocode_core::nearest(name.as_str(), names);
        Err(CallError::UnknownServer {
            name: name.to_string(),
            near: near.into_iter().map(str::to_owned).collect(),
        })
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.owner.shared
    }
}
