//! Servers within this process, reached like any other.

use std::sync::{Arc, Mutex, PoisonError};

use cocode_client::{DEFAULT_MAX_FRAME_BYTES, Reached, memory_pair};
use cocode_wire::serve::{Endpoint, LineOptions, serve_lines};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

/// Connections within this process; dropping it ends them.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<JoinSet<()>>);

impl Connections {
    /// A connection to an endpoint. Has to be called within a runtime.
    pub(crate) fn reach(&self, endpoint: Arc<dyn Endpoint>) -> Reached {
        let (target, theirs) = memory_pair(DEFAULT_MAX_FRAME_BYTES);
        let (source, sink) = tokio::io::split(theirs);
        let serving = async move {
            let forever = std::future::pending();
            let options = LineOptions::default();
            let closed = serve_lines(source, sink, &*endpoint, options, forever).await;
            tracing::debug!(reason = %closed, "a connection within this process ended");
        };
        let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn_on(serving, &Handle::current());
        Reached {
            target,
            sse_fallback: false,
        }
    }
}
