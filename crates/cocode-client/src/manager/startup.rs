//! The start of many servers: who is there, who is not, and who is still on the way.

use std::sync::Arc;

use cocode_core::ServerName;
use tokio::time::{Instant, timeout_at};

use super::Manager;
use super::events::Event;
use super::server::Server;
use super::shared::Shared;
use super::state::{ServerState, StateKind};
use crate::clock::later;

/// What became of a start. A server that is required may be missing: see
/// [`Startup::check_required`].
#[derive(Clone, Debug, Default)]
pub struct Startup {
    /// Servers that can be used, or will be started when they are needed.
    pub ready: Vec<ServerName>,
    /// Servers that cannot, and how they are.
    pub failed: Vec<(ServerName, ServerState)>,
    /// Servers that nobody waits for any more. They may come up later.
    pub slow: Vec<ServerName>,
    required: Vec<ServerName>,
}

/// Servers without which a start is a failure are not there.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", self.told())]
pub struct RequiredServersMissing {
    /// Those that cannot be used, and how they are.
    pub failed: Vec<(ServerName, ServerState)>,
    /// Those that did not come up in time.
    pub slow: Vec<ServerName>,
}

impl Manager {
    /// Waits until every server is ready, has failed, or has taken longer than its
    /// `startup_timeout_sec`.
    pub async fn wait_for_startup(&self) -> Startup {
        let shared = self.shared();
        let servers = shared.servers();
        settled(servers.values().cloned().collect(), |_, _| {}).await
    }
}

impl Startup {
    /// An error if a server that is required is not there.
    pub fn check_required(&self) -> Result<(), RequiredServersMissing> {
        let is_required = |name: &ServerName| self.required.contains(name);
        let failed = self.failed.iter().filter(|(name, _)| is_required(name));
        let slow = self.slow.iter().filter(|name| is_required(name));
        let missing = RequiredServersMissing {
            failed: failed.cloned().collect(),
            slow: slow.cloned().collect(),
        };
        if missing.failed.is_empty() && missing.slow.is_empty() {
            Ok(())
        } else {
            Err(missing)
        }
    }
}

impl RequiredServersMissing {
    fn told(&self) -> String {
        let failed = self.failed.iter().map(|(name, state)| {
            let trouble = state.trouble().map(|trouble| format!(": {trouble}"));
            let trouble = trouble.unwrap_or_default();
            format!("`{name}` ({}{trouble})", state.kind())
        });
        let slow = self
            .slow
            .iter()
            .map(|name| format!("`{name}` (not ready within its startup_timeout_sec)"));
        let all: Vec<String> = failed.chain(slow).collect();
        format!("required servers are not there: {}", all.join(", "))
    }
}

/// Tells of a start as it goes on, and of its end.
pub(super) async fn tell(shared: Arc<Shared>, servers: Vec<Arc<Server>>) {
    let bus = shared.bus.clone();
    let all = servers.clone();
    let startup = settled(servers, |server, state| {
        bus.tell(|| Event::StartupUpdate {
            server: server.name.clone(),
            state,
        });
    })
    .await;
    let Startup {
        ready,
        failed,
        slow,
        required: _,
    } = startup;
    let failed = failed.into_iter().map(|(name, state)| {
        let trouble = state.trouble().map(ToString::to_string);
        (name, trouble.unwrap_or_else(|| state.kind().to_string()))
    });
    let failed = failed.collect();
    let facts = |name: &ServerName| all.iter().find(|server| server.name == *name)?.facts();
    let ready = ready.into_iter().map(|name| {
        let facts = facts(&name);
        (name, facts)
    });
    let ready = ready.collect();
    bus.tell(|| Event::StartupComplete {
        ready,
        failed,
        slow,
    });
}

async fn settled(servers: Vec<Arc<Server>>, told: impl Fn(&Server, StateKind)) -> Startup {
    let begun = Instant::now();
    let each = servers.into_iter().map(|server| {
        let told = &told;
        async move {
            let state = settle(&server, begun, told).await;
            (server, state)
        }
    });
    let mut startup = Startup::default();
    for (server, state) in futures_util::future::join_all(each).await {
        let name = server.name.clone();
        if server.spec().required {
            startup.required.push(name.clone());
        }
        match state {
            ServerState::Ready | ServerState::Stopped => startup.ready.push(name),
            state if state.is_on_its_way() => startup.slow.push(name),
            state => startup.failed.push((name, state)),
        }
    }
    startup
}

async fn settle(
    server: &Server,
    begun: Instant,
    told: &impl Fn(&Server, StateKind),
) -> ServerState {
    let until = later(begun, server.spec().startup_timeout);
    let mut standing = server.watch();
    let mut last = None;
    loop {
        let state = standing.borrow_and_update().state.clone();
        if last.replace(state.kind()) != Some(state.kind()) {
            told(server, state.kind());
        }
        if state.is_settled() {
            return state;
        }
        match timeout_at(until, standing.changed()).await {
            Ok(Ok(())) => {}
            // Gone, or not in time: it is as it is.
            Ok(Err(_)) | Err(_) => return server.state(),
        }
    }
}
