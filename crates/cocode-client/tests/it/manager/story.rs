//! What the tests of the manager share: a manager that is quick to notice, and a listener that
//! tells how the servers fared.

use std::sync::Arc;
use std::time::Duration;

use cocode_client::{
    Backoff, CallContext, CallEnd, CallError, Called, CatalogChange, Deadlines, Event, Events,
    Health, Manager, ManagerOptions, PlainConnector, ServerState, StateKind, Timeouts,
};
use cocode_core::ServerSpec;
use cocode_testkit::Script;
use futures_util::future::join_all;

use crate::manager::faulty::{Faulty, Transport};
use crate::support::{environment, raw, soon, text_of};

/// How long a test waits for something that should come at once. Only a failing test reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

/// As good as never.
pub(crate) const NEVER: Duration = Duration::from_hours(10);

/// The name of the server that most tests have.
pub(crate) const ONE: &str = "one";

/// Options under which everything is noticed and tried again within moments, and nothing is given
/// up by itself.
pub(crate) fn quick() -> ManagerOptions {
    ManagerOptions {
        connector: Arc::new(PlainConnector {
            environment: environment(),
            ..PlainConnector::default()
        }),
        health: Health {
            ping_interval: Duration::from_millis(20),
            ping_timeout: Duration::from_secs(10),
            max_failures: 5,
            reconnect: Backoff {
                first: Duration::from_millis(10),
                longest: Duration::from_millis(40),
                attempts: u32::MAX,
                ..Backoff::default()
            },
            stable_after: NEVER,
            retry_failed: None,
            relist_after: Duration::from_millis(20),
            relist_within: Duration::from_millis(200),
            ..Health::default()
        },
        timeouts: Timeouts {
            // A server that a test holds up is not to be taken for one of the other era.
            probe: Duration::from_secs(20),
            ..Timeouts::default()
        },
        ..ManagerOptions::default()
    }
}

/// As [`quick`], but with so many attempts.
pub(crate) fn giving_up_after(attempts: u32) -> ManagerOptions {
    let mut options = quick();
    options.health.reconnect.attempts = attempts;
    options
}

/// As [`quick`], but nobody asks for signs of life.
pub(crate) fn without_pings() -> ManagerOptions {
    let mut options = quick();
    options.health.ping_interval = NEVER;
    options
}

/// Starts the servers, and waits until all of them are ready and listed. The story begins there.
pub(crate) async fn ready(options: ManagerOptions, specs: Vec<ServerSpec>) -> (Manager, Story) {
    let count = specs.len();
    let (manager, mut story) = begun(options, specs).await;
    let startup = soon("the start", manager.wait_for_startup()).await;
    assert_eq!(startup.ready.len(), count, "{startup:?}");
    for status in manager.status() {
        let until = tokio::time::Instant::now() + PATIENCE;
        manager.wait_for_lists(&status.name, until).await;
    }
    story.forget().await;
    (manager, story)
}

/// Starts the servers.
pub(crate) async fn begun(options: ManagerOptions, specs: Vec<ServerSpec>) -> (Manager, Story) {
    let manager = Manager::new(options);
    let story = Story::of(&manager);
    manager.apply(specs).await;
    (manager, story)
}

/// Does the same with every one of these, side by side.
pub(crate) async fn for_each<T, F: Future<Output = ()>>(
    all: impl IntoIterator<Item = T>,
    check: impl Fn(T) -> F,
) {
    join_all(all.into_iter().map(check)).await;
}

/// Does the same over every transport, side by side.
pub(crate) async fn over_every_transport<F: Future<Output = ()>>(check: impl Fn(Transport) -> F) {
    for_each(Transport::ALL, check).await;
}

/// A server of this transport with this script, as the only one of a manager that is ready.
pub(crate) async fn only(
    transport: Transport,
    script: &Script,
    options: ManagerOptions,
) -> (Faulty, Manager, Story) {
    let server = Faulty::start(transport, script);
    let (manager, story) = ready(options, vec![server.spec(ONE)]).await;
    (server, manager, story)
}

/// Calls the tool that scripted servers have.
pub(crate) async fn echo(manager: &Manager) -> Result<Called, CallError> {
    call(manager, "mcp__one__echo").await
}

/// Calls a tool that takes anything.
pub(crate) async fn call(manager: &Manager, name: &str) -> Result<Called, CallError> {
    let arguments = raw(r#"{"word":"hello"}"#);
    let call = manager.call(name, Some(&arguments), CallContext::default());
    soon("the end of a call", call).await
}

/// How a call is made that may take so long.
pub(crate) fn within(milliseconds: u64) -> CallContext {
    CallContext {
        deadlines: Some(Deadlines::fixed(Duration::from_millis(milliseconds))),
        ..CallContext::default()
    }
}

/// Calls the tool that scripted servers have, and waits no longer than this.
pub(crate) async fn echo_within(manager: &Manager, milliseconds: u64) -> Result<Called, CallError> {
    let call = manager.call("mcp__one__echo", None, within(milliseconds));
    soon("the end of a call", call).await
}

/// The call succeeded, with the answer of the tool that scripted servers have.
#[track_caller]
pub(crate) fn assert_echoed(what: impl std::fmt::Debug, outcome: Result<Called, CallError>) {
    match outcome {
        Ok(called) => assert_eq!(text_of(&called.result), r#"{"word":"hello"}"#, "{what:?}"),
        Err(error) => panic!("{what:?}: {error:?}"),
    }
}

/// The call failed because its server is not there.
#[track_caller]
pub(crate) fn assert_unavailable(what: impl std::fmt::Debug, error: &CallError) {
    assert!(
        matches!(error, CallError::Unavailable { .. }),
        "{what:?}: {error:?}"
    );
}

/// The state of the only server.
pub(crate) fn state(manager: &Manager) -> ServerState {
    let mut all = manager.status();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0).state
}

/// The qualified names of all tools.
pub(crate) fn tools(manager: &Manager) -> Vec<String> {
    let catalog = manager.catalog();
    let names = catalog.tools().map(|(name, _)| name.as_str().to_owned());
    names.collect()
}

/// Adds a rule that lists a tool `echo` with these annotations or other members.
pub(crate) fn listing(script: Script, members: &str) -> Script {
    let schema = r#""inputSchema":{"type":"object"}"#;
    let members = if members.is_empty() {
        schema.to_owned()
    } else {
        format!("{schema},{members}")
    };
    listing_all(script, &format!(r#"{{"name":"echo",{members}}}"#))
}

/// Adds a rule that lists these tools.
pub(crate) fn listing_all(script: Script, tools: &str) -> Script {
    script.on("tools/list").result(format!(
        r#"{{"resultType":"complete","ttlMs":3600000,"cacheScope":"private","tools":[{tools}]}}"#
    ))
}

/// Listens to a manager.
pub(crate) struct Story {
    events: Events,
    told: Vec<Event>,
}

impl Story {
    pub(crate) fn of(manager: &Manager) -> Self {
        Self {
            events: manager.events(),
            told: Vec::new(),
        }
    }

    /// Waits for an event that fits, from now on.
    pub(crate) async fn hears<T>(&mut self, what: &str, fits: impl Fn(Event) -> Option<T>) -> T {
        loop {
            if let Some(found) = fits(self.next(what).await) {
                return found;
            }
        }
    }

    /// Waits until the server is in such a state, from now on. Gives all its states on the way
    /// there, that one included.
    pub(crate) async fn reaches(&mut self, server: &str, kind: StateKind) -> Vec<ServerState> {
        let what = format!("{server} to be {kind}");
        let mut states = Vec::new();
        loop {
            if let Event::ServerStateChanged { server: of, state } = self.next(&what).await
                && of.as_str() == server
            {
                let is_there = state.kind() == kind;
                states.push(state);
                if is_there {
                    return states;
                }
            }
        }
    }

    /// Waits until a call is on its way.
    pub(crate) async fn call_started(&mut self) {
        loop {
            if let Event::ToolCallStarted { .. } = self.next("a call").await {
                return;
            }
        }
    }

    /// How all calls so far ended, in the order of their ends. Nobody is waited for.
    pub(crate) async fn ends(&mut self) -> Vec<CallEnd> {
        self.catch_up().await;
        let ends = self.told.iter().filter_map(|event| match event {
            Event::ToolCallFinished { outcome, .. } => Some(*outcome),
            _ => None,
        });
        ends.collect()
    }

    /// How the catalog changed.
    pub(crate) async fn catalog_changes(&mut self) -> Vec<Arc<CatalogChange>> {
        self.catch_up().await;
        let changes = self.told.iter().filter_map(|event| match event {
            Event::CatalogChanged(change) => Some(Arc::clone(change)),
            _ => None,
        });
        changes.collect()
    }

    /// The states that a server went through, as far as they were told by now.
    pub(crate) async fn states(&mut self, server: &str) -> Vec<StateKind> {
        self.catch_up().await;
        let states = self.told.iter().filter_map(|event| match event {
            Event::ServerStateChanged { server: of, state } if of.as_str() == server => {
                Some(state.kind())
            }
            _ => None,
        });
        states.collect()
    }

    /// Forgets what was heard so far.
    pub(crate) async fn forget(&mut self) {
        self.catch_up().await;
        self.told.clear();
    }

    pub(crate) async fn next(&mut self, what: &str) -> Event {
        let next = tokio::time::timeout(PATIENCE, self.events.next()).await;
        let Ok(Some(event)) = next else {
            panic!("waited in vain for {what}, after {:#?}", self.told);
        };
        self.told.push(event.clone());
        event
    }

    /// Takes what has been told by now.
    async fn catch_up(&mut self) {
        use futures_util::FutureExt as _;
        while let Some(Some(event)) = self.events.next().now_or_never() {
            self.told.push(event);
        }
        tokio::task::yield_now().await;
    }
}

/// The kinds of these states, each only once in a row.
pub(crate) fn kinds(states: &[ServerState]) -> Vec<StateKind> {
    let mut kinds: Vec<StateKind> = states.iter().map(ServerState::kind).collect();
    kinds.dedup();
    kinds
}
