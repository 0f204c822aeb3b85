//! Which log messages a server is asked for: those that anybody wants who hears it, from the moment
//! that it is there, and again whenever it comes back.

use std::sync::{Arc, Weak};

use cocode_client::{RequestOptions, StateKind, StateWatch};
use cocode_core::Era;
use cocode_wire::RawJson;

use crate::instance::Instance;

impl Instance {
    /// Makes sure that the server is asked whenever it comes back. Whoever calls this asks now.
    pub(crate) fn keep_level(self: &Arc<Self>) {
        let state = self.manager().watch_state(self.name());
        if let Some(state) = state
            && self.begin_to_keep_level()
        {
            self.background.run(keep(Arc::downgrade(self), state));
        }
    }

    /// Asks the server for log messages, if it is there: the least severe that anybody wants.
    pub(crate) async fn ask_for_level(&self) {
        let status = self.manager().status();
        let is_ready = |kind: StateKind| kind == StateKind::Ready;
        let state = status.first().map(|status| status.state.kind());
        if !state.is_some_and(is_ready) {
            return;
        }
        let server = self.name();
        let Some(level) = self.traffic.wanted_level() else {
            return;
        };
        let session = match self.session().await {
            Ok(session) => session,
            Err(error) => {
                tracing::debug!(%server, %error, "not asked for log messages");
                return;
            }
        };
        let facts = session.server();
        if !facts.capabilities.logging || facts.era() == Era::Modern {
            // One of the stateless era is told with every request.
            return;
        }
        let Ok(params) = RawJson::of(&serde_json::json!({ "level": level.as_str() })) else {
            return;
        };
        let options = RequestOptions::default();
        let asked = session.request("logging/setLevel", Some(&params), options);
        if let Err(error) = asked.await {
            tracing::warn!(%server, %error, "the server did not take the level of its log messages");
        }
    }
}

/// Asks a server whenever it has become another one, until nobody has it.
async fn keep(instance: Weak<Instance>, mut state: StateWatch) {
    while state.changed().await {
        let Some(instance) = instance.upgrade() else {
            return;
        };
        instance.ask_for_level().await;
    }
}
