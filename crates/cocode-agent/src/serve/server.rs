//! The server: what its clients share.

use std::sync::Arc;

use cocode_wire::serve::{Conversation, Endpoint, Sink};
use tokio_util::sync::CancellationToken;

use super::allowances::Allowances;
use super::marks::Marks;
use super::options::AgentServerOptions;
use super::parking::Parking;
use super::talk::Talk;
use super::turns::Turns;

/// An agent that MCP clients of either era talk to. Making one touches no file and opens no store.
pub struct AgentServer {
    shared: Arc<Shared>,
}

/// What the clients of a server share.
pub(super) struct Shared {
    pub(super) options: AgentServerOptions,
    /// Ends all turns.
    pub(super) ending: CancellationToken,
    pub(super) turns: Turns,
    pub(super) parking: Arc<Parking>,
    pub(super) marks: Arc<Marks>,
    pub(super) allowances: Arc<Allowances>,
}

impl AgentServer {
    /// A server of these.
    pub fn new(options: AgentServerOptions) -> Self {
        let shared = Arc::new(Shared {
            options,
            ending: CancellationToken::new(),
            turns: Turns::default(),
            parking: Arc::new(Parking::new()),
            marks: Arc::default(),
            allowances: Arc::default(),
        });
        Self { shared }
    }

    /// Interrupts all turns, and waits until they have ended, so that nothing that they had begun goes
    /// on. Whoever waits for one of them is answered; none begins any more.
    pub async fn shutdown(&self) {
        self.shared.ending.cancel();
        self.shared.parking.clear();
        self.shared.turns.end().await;
    }
}

impl Endpoint for AgentServer {
    /// Nothing is told to a client outside of its requests.
    fn converse(&self, _outlet: Arc<dyn Sink>) -> Arc<dyn Conversation> {
        Arc::new(Talk::new(Arc::clone(&self.shared)))
    }

    fn stateless(&self) -> Arc<dyn Conversation> {
        Arc::new(Talk::new(Arc::clone(&self.shared)))
    }
}

impl std::fmt::Debug for AgentServer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AgentServer")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
