//! One server in the metrics: the state it is in, and how often it had to be asked again.

use std::fmt;
use std::sync::Arc;

use opentelemetry::KeyValue;

use super::instruments::attribute;
use super::{Shared, Telemetry};

/// A server that is counted under its state until this is dropped.
#[must_use = "the server is counted only while this lives"]
pub struct ServerTrace {
    counted: Option<Counted>,
}

struct Counted {
    shared: Arc<Shared>,
    server: Arc<str>,
    state: Option<&'static str>,
}

impl Telemetry {
    /// Begins to count a server. It has no state yet.
    pub fn server(&self, server: &str) -> ServerTrace {
        let shared = self.0.as_ref().filter(|it| it.instruments.is_some());
        let counted = shared.map(|shared| Counted {
            shared: Arc::clone(shared),
            server: shared.names.server(server),
            state: None,
        });
        ServerTrace { counted }
    }
}

impl ServerTrace {
    /// The server is in this state now, and in no other.
    pub fn enter(&mut self, state: &'static str) {
        if let Some(counted) = &mut self.counted {
            counted.enter(Some(state));
        }
    }

    /// A connection to it was made again.
    pub fn reconnected(&self) {
        let Some(counted) = &self.counted else { return };
        if let Some(instruments) = &counted.shared.instruments {
            instruments.reconnects.add(1, &[counted.named()]);
        }
    }

    /// A list was asked for again, by this method, such as `tools/list`.
    pub fn relisted(&self, method: &'static str) {
        let Some(counted) = &self.counted else { return };
        if let Some(instruments) = &counted.shared.instruments {
            let attributes = [counted.named(), KeyValue::new(attribute::METHOD, method)];
            instruments.relists.add(1, &attributes);
        }
    }
}

impl Counted {
    fn named(&self) -> KeyValue {
        KeyValue::new(attribute::SERVER, Arc::clone(&self.server))
    }

    fn enter(&mut self, state: Option<&'static str>) {
        let left = std::mem::replace(&mut self.state, state);
        let Some(instruments) = &self.shared.instruments else {
            return;
        };
        if left == state {
            return;
        }
        // How many there are is the question, not which.
        if let Some(left) = left {
            let attributes = [KeyValue::new(attribute::STATE, left)];
            instruments.servers.add(-1, &attributes);
        }
        if let Some(state) = state {
            let attributes = [KeyValue::new(attribute::STATE, state)];
            instruments.servers.add(1, &attributes);
        }
    }
}

impl Drop for ServerTrace {
    fn drop(&mut self) {
        if let Some(counted) = &mut self.counted {
            counted.enter(None);
        }
    }
}

impl fmt::Debug for ServerTrace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.counted.as_ref().and_then(|counted| counted.state);
        formatter
            .debug_struct("ServerTrace")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
