//! The legacy connection to a dual-era server, which its legacy clients share.
//!
//! A server that serves both eras does for legacy clients what its modern era has no place for, such as
//! sending requests on the stream of a call. So they are served by a second connection, opened with
//! `initialize`, and the modern one is bridged only where the server refuses that. Programs have one
//! connection each: a second one would be a second process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cocode_client::{ListKind, ManagerOptions};
use cocode_core::{Era, Protocol, ServerSpec, ToolName};
use cocode_wire::RpcError;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Instance, Reaper};

/// Interval before a server that refused `initialize` is tried again.
const RETRY_AFTER: Duration = Duration::from_mins(10);

/// State of the legacy connection to a server.
pub(super) struct LegacyPeer {
    state: Mutex<State>,
    /// Lets one connect at a time.
    connecting: Semaphore,
}

#[derive(Clone, Default)]
enum State {
    #[default]
    Untried,
    Refused(Instant),
    Served(Arc<Instance>),
}

impl Default for LegacyPeer {
    fn default() -> Self {
        Self {
            state: Mutex::default(),
            connecting: Semaphore::new(1),
        }
    }
}

impl LegacyPeer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Instance {
    /// The connection for legacy clients, opened if there is none. Nothing if they use this one.
    ///
    /// An error says that the server itself cannot be reached.
    pub(crate) async fn legacy_peer(
        &self,
        options: &ManagerOptions,
        reaper: &Reaper,
    ) -> Result<Option<Arc<Self>>, RpcError> {
        if !self.may_be_dual_era().await? {
            return Ok(None);
        }
        // The semaphore is never closed. Each attempt ends with the timeout of a connection.
        let _one_at_a_time = self.legacy_peer.connecting.acquire().await.ok();
        let known = self.legacy_peer.lock().clone();
        let is_served = matches!(known, State::Served(_));
        let peer = match known {
            State::Refused(at) if at.elapsed() < RETRY_AFTER => return Ok(None),
            State::Served(peer) => peer,
            State::Untried | State::Refused(_) => {
                let spec = ServerSpec {
                    protocol: Protocol::Legacy,
                    ..(*self.spec).clone()
                };
                Self::start(spec, options, None, reaper).await
            }
        };
        let connected = peer.session().await;
        let (state, peer) = match connected {
            Ok(_session) => (State::Served(Arc::clone(&peer)), Some(peer)),
            Err(error) => {
                let server = &self.name;
                tracing::debug!(%server, %error, "legacy clients use the modern connection");
                // One that has worked before comes back by itself.
                if is_served {
                    return Ok(None);
                }
                (State::Refused(Instant::now()), None)
            }
        };
        *self.legacy_peer.lock() = state;
        Ok(peer)
    }

    /// The connection for legacy clients, if one is open.
    pub(crate) fn open_legacy_peer(&self) -> Option<Arc<Self>> {
        match &*self.legacy_peer.lock() {
            State::Served(peer) => Some(Arc::clone(peer)),
            State::Untried | State::Refused(_) => None,
        }
    }

    /// Whether it is for all legacy clients, and does not list this tool.
    pub(crate) fn lacks_tool(&self, tool: &str) -> bool {
        let catalog = self.manager.catalog();
        let listed = catalog.server(&self.name);
        let listed = listed.filter(|listed| listed.known.contains(&ListKind::Tools));
        self.is_shared() && listed.is_some_and(|listed| listed.tool(&ToolName::new(tool)).is_none())
    }

    async fn may_be_dual_era(&self) -> Result<bool, RpcError> {
        let session = self.session().await?;
        let facts = session.server();
        Ok(facts.era() == Era::Modern
            && facts.transport == "http"
            && self.spec.protocol == Protocol::Auto)
    }
}
