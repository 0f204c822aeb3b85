//! One connection to one server, shared by clients or kept for one of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use cocode_client::{
    CallError, ClientCapabilities, Deadlines, Frame, Handler, Manager, ManagerOptions, RawJson,
    Relayed, RequestError, Session, Witness, chain,
};
use cocode_core::{DEFAULT_TOOL_TIMEOUT, ServerName, ServerSpec};
use cocode_wire::{RpcError, code};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::caller::{Abilities, Caller};
use crate::downstream::Downstream;
use crate::following::Following;
use crate::level::Level;
use crate::license::License;
use crate::traffic::Traffic;
use crate::witness::CallWitness;
use legacy_peer::LegacyPeer;

mod legacy_peer;

/// How long a server may be silent about a request where its specification does not say: clients
/// have limits of their own.
const SILENCE: Duration = Duration::from_mins(10);
/// How long a request may take at all, where nobody says otherwise.
const LONGEST: Duration = Duration::from_hours(6);

/// Tasks that end servers nobody needs any more.
pub(crate) type Reaper = Arc<Mutex<JoinSet<()>>>;

/// Runs what nobody waits for, but the end of the gateway.
#[derive(Clone)]
pub(crate) struct Background {
    reaper: Reaper,
    runtime: Handle,
}

impl Background {
    pub(crate) fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut reaper = self.reaper.lock().unwrap_or_else(PoisonError::into_inner);
        while reaper.try_join_next().is_some() {}
        reaper.spawn_on(work, &self.runtime);
    }
}

/// A server that runs, or will when it is needed.
pub(crate) struct Instance {
    name: ServerName,
    manager: Manager,
    pub(crate) traffic: Arc<Traffic>,
    spec: Arc<ServerSpec>,
    /// Total timeout of a call.
    longest_call: Duration,
    since: Instant,
    /// The resources whose changes somebody wants to hear of.
    pub(crate) following: Arc<Following>,
    pub(crate) background: Background,
    keeps_level: AtomicBool,
    /// Lets one ask for log messages at a time.
    pub(crate) asking_for_level: Semaphore,
    /// Those that the server was asked for last.
    asked_level: Mutex<Option<Level>>,
    /// What allows it, where it runs for one client alone.
    license: OnceLock<License>,
    legacy_peer: LegacyPeer,
}

/// A request on its way to a server.
pub(crate) struct Passed {
    pub(crate) method: String,
    pub(crate) params: Option<RawJson>,
    /// The tool that it calls.
    pub(crate) tool: Option<String>,
    pub(crate) caller: Arc<Caller>,
    pub(crate) session: u64,
    pub(crate) wants_progress: bool,
    pub(crate) witness: Arc<CallWitness>,
}

impl Instance {
    /// Starts a server: for all clients, or for one.
    pub(crate) async fn start(
        spec: ServerSpec,
        options: &ManagerOptions,
        owner: Option<(&Arc<Downstream>, &Caller)>,
        reaper: &Reaper,
    ) -> Arc<Self> {
        let name = spec.name.clone();
        let capabilities = match owner {
            Some((client, caller)) => own_capabilities(caller, client.party().can()),
            None => ClientCapabilities {
                elicitation_form: true,
                elicitation_url: true,
                sampling: true,
                roots: true,
                others: Vec::new(),
            },
        };
        let client: Option<Weak<Downstream>> = owner.map(|(client, _)| Arc::downgrade(client));
        let traffic = Traffic::new(name.clone(), capabilities, client);
        let hearing = Arc::clone(&traffic);
        let manager = Manager::new(ManagerOptions {
            handlers: Arc::new(move |_server: &ServerName| {
                Arc::clone(&hearing) as Arc<dyn Handler>
            }),
            ..options.clone()
        });
        let spec_kept = Arc::new(spec.clone());
        let longest_call = spec.tool_total_timeout.or(options.tool_total_timeout);
        manager.apply([spec]).await;
        let background = Background {
            reaper: Arc::clone(reaper),
            runtime: Handle::current(),
        };
        let following = Following::new(manager.clone(), name.clone(), background.clone());
        Arc::new(Self {
            name,
            manager,
            traffic,
            spec: spec_kept,
            longest_call: longest_call.unwrap_or(LONGEST),
            since: Instant::now(),
            following,
            background,
            keeps_level: AtomicBool::new(false),
            asking_for_level: Semaphore::new(1),
            asked_level: Mutex::default(),
            license: OnceLock::new(),
            legacy_peer: LegacyPeer::default(),
        })
    }

    pub(crate) fn name(&self) -> &ServerName {
        &self.name
    }

    /// Whether it is for any client.
    pub(crate) fn is_shared(&self) -> bool {
        self.traffic.is_shared()
    }

    /// Keeps what allows it for as long as it is there.
    pub(crate) fn keep(&self, license: License) {
        // There is one for each.
        drop(self.license.set(license));
    }

    /// For how long it has been kept.
    pub(crate) fn age(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whether whoever asks is the first one who wants the level of log messages to be kept.
    pub(crate) fn begin_to_keep_level(&self) -> bool {
        !self.keeps_level.swap(true, Ordering::AcqRel)
    }

    /// The log messages that the server was asked for last.
    pub(crate) fn asked_level(&self) -> Option<Level> {
        *self
            .asked_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note_level(&self, level: Level) {
        *self
            .asked_level
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    /// The manager of this one server.
    pub(crate) fn manager(&self) -> &Manager {
        &self.manager
    }

    /// The session with the server, which is waited for.
    pub(crate) async fn session(&self) -> Result<Session, RpcError> {
        let until = Instant::now() + self.spec.connect_timeout;
        let session = self.manager.session(&self.name, until).await;
        session.map_err(|error| told(&self.name, &error))
    }

    /// Passes a request on, and gives what the server answered.
    pub(crate) async fn relay(&self, passed: &Passed) -> Result<Frame, RpcError> {
        let tool = passed.tool.as_deref();
        let deadlines = self.deadlines(tool);
        let until = Instant::now() + deadlines.idle.min(deadlines.total);
        let on_its_way = self
            .traffic
            .begin(passed.session, &passed.method, &passed.witness, until)
            .await?;
        let relayed = Relayed {
            method: &passed.method,
            params: passed.params.as_ref(),
            behalf: &passed.caller.behalf,
            wants_progress: passed.wants_progress,
            deadlines,
            witness: Arc::clone(&passed.witness) as Arc<dyn Witness>,
        };
        let under_way = passed.witness.begin();
        let answer = self.manager.relay(&self.name, tool, &relayed).await;
        drop(under_way);
        if !answer.as_ref().is_err_and(is_late) && !passed.witness.has_timed_out() {
            on_its_way.done();
        }
        answer.map_err(|error| told(&self.name, &error))
    }

    /// Tells the server something.
    pub(crate) async fn notify(&self, method: &str, params: Option<&RawJson>) {
        let told = match self.session().await {
            Ok(session) => session.notify(method, params).await,
            Err(error) => {
                tracing::debug!(server = %self.name, %error, method, "not told");
                return;
            }
        };
        if let Err(error) = told {
            tracing::debug!(server = %self.name, %error, method, "not told");
        }
    }

    fn deadlines(&self, tool: Option<&str>) -> Deadlines {
        let said = tool.map(|tool| self.spec.timeout_of(tool));
        let said = said.filter(|said| *said != DEFAULT_TOOL_TIMEOUT);
        Deadlines {
            idle: said.unwrap_or(SILENCE),
            total: tool.map_or(LONGEST, |_| self.longest_call),
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let manager = self.manager.clone();
        self.background.run(async move { manager.shutdown().await });
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Instance")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A server that is there for one client is told exactly what that client can do, or somebody for it.
fn own_capabilities(caller: &Caller, by_inbox: Abilities) -> ClientCapabilities {
    let can = caller.can.or(by_inbox);
    let said = caller.behalf.capabilities.as_ref();
    let members = said.and_then(|said| said.decode::<cocode_wire::members::Members<'_>>().ok());
    let others = members.unwrap_or_default().0.into_iter();
    let others = others.filter(|(name, _)| can == caller.can || name != "elicitation");
    let others =
        others.filter_map(|(name, value)| Some((name.into_owned(), said?.share(value).detached())));
    ClientCapabilities {
        elicitation_form: can.form,
        elicitation_url: can.url,
        sampling: can.sampling,
        roots: can.roots,
        others: others.collect(),
    }
}

/// Whether the server may still be at work for something that failed.
fn is_late(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Asking {
            error: RequestError::Timeout { .. },
            ..
        } | CallError::Request {
            error: RequestError::Timeout { .. },
            ..
        }
    )
}

/// What a client is told when a server could not be asked.
pub(crate) fn told(server: &ServerName, error: &CallError) -> RpcError {
    // What the server itself answered is passed on.
    if let CallError::Asking {
        error: RequestError::Rpc { error, .. },
        ..
    } = error
    {
        return error.clone();
    }
    let data = serde_json::json!({ "server": server.as_str(), "code": error.code() });
    RpcError {
        code: code::INTERNAL_ERROR,
        message: chain(error),
        data: RawJson::of(&data).ok(),
    }
}
