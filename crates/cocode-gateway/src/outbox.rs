//! What one client tells servers: in its order, and only so much as can wait.

use std::sync::{Arc, OnceLock, Weak};

use cocode_wire::RawJson;
use tokio::sync::mpsc;

use crate::instance::Instance;
use crate::view::Inner;

/// Notifications of one client that may wait for servers.
const MAX_WAITING: usize = 64;

/// The notifications of one client that are on their way to servers.
#[derive(Default)]
pub(crate) struct Outbox(OnceLock<mpsc::Sender<Told>>);

struct Told {
    server: Weak<Instance>,
    method: String,
    params: Option<RawJson>,
}

impl Outbox {
    /// Tells a server something, after everything that was told before. If too much waits already,
    /// it is lost, as a notification may be.
    pub(crate) fn tell(
        &self,
        view: &Inner,
        server: &Arc<Instance>,
        method: &str,
        params: Option<&RawJson>,
    ) {
        let queue = self.0.get_or_init(|| {
            let (queue, waiting) = mpsc::channel(MAX_WAITING);
            view.background(deliver(waiting));
            queue
        });
        let told = Told {
            server: Arc::downgrade(server),
            method: method.to_owned(),
            params: params.map(RawJson::detached),
        };
        if queue.try_send(told).is_err() {
            tracing::debug!(server = %server.name(), method, "a client tells too much");
        }
    }
}

/// Delivers until the client is gone.
async fn deliver(mut waiting: mpsc::Receiver<Told>) {
    while let Some(told) = waiting.recv().await {
        if let Some(server) = told.server.upgrade() {
            server.notify(&told.method, told.params.as_ref()).await;
        }
    }
}
