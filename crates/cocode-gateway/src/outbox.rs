//! What one client tells servers: to each in its order, and only so much as can wait. A server that
//! is not there keeps nothing from the others.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use cocode_wire::RawJson;
use tokio::sync::mpsc;

use crate::instance::Instance;
use crate::view::Inner;

/// Notifications of one client that may wait for a server.
const MAX_WAITING: usize = 64;

/// The notifications of one client that are on their way, by the server that they are for.
#[derive(Default)]
pub(crate) struct Outbox(Mutex<Vec<Queue>>);

struct Queue {
    server: Weak<Instance>,
    waiting: mpsc::Sender<Told>,
}

struct Told {
    method: String,
    params: Option<RawJson>,
}

impl Outbox {
    /// Tells a server something, after everything that it was told before. If too much waits already,
    /// it is lost, as a notification may be.
    pub(crate) fn tell(
        &self,
        view: &Inner,
        server: &Arc<Instance>,
        method: &str,
        params: Option<&RawJson>,
    ) {
        let told = Told {
            method: method.to_owned(),
            params: params.map(RawJson::detached),
        };
        if self.queue(view, server).try_send(told).is_err() {
            tracing::debug!(server = %server.name(), method, "a client tells too much");
        }
    }

    fn queue(&self, view: &Inner, server: &Arc<Instance>) -> mpsc::Sender<Told> {
        let this = Arc::downgrade(server);
        let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|queue| queue.server.strong_count() > 0);
        let known = queues.iter().find(|queue| queue.server.ptr_eq(&this));
        if let Some(known) = known {
            return known.waiting.clone();
        }
        let (waiting, taken) = mpsc::channel(MAX_WAITING);
        view.background(deliver(this.clone(), taken));
        queues.push(Queue {
            server: this,
            waiting: waiting.clone(),
        });
        waiting
    }
}

/// Delivers until the client or the server is gone.
async fn deliver(server: Weak<Instance>, mut waiting: mpsc::Receiver<Told>) {
    while let Some(told) = waiting.recv().await {
        let Some(server) = server.upgrade() else {
            return;
        };
        server.notify(&told.method, told.params.as_ref()).await;
    }
}
