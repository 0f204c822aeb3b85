//! Which log messages a server is asked for: those that anybody wants who hears it, from the moment
//! that it is there, again whenever it comes back, and no more than that when somebody leaves.

use std::sync::{Arc, Weak};
use std::time::Duration;

use cocode_client::{RequestOptions, StateKind, StateWatch};
use cocode_core::Era;
use cocode_wire::RawJson;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use crate::instance::Instance;
use crate::level::Level;
use crate::traffic::Traffic;

/// How long others may take to ask before it is not waited for them any more.
const TURN: Duration = Duration::from_secs(5);

/// What clients hear who never said what they want.
pub(crate) const UNSAID: Level = Level::Info;

impl Instance {
    /// Makes sure that the server is asked whenever it comes back. Whoever calls this asks now.
    pub(crate) fn keep_level(self: &Arc<Self>) {
        let state = self.manager().watch_state(self.name());
        if let Some(state) = state
            && self.begin_to_keep_level()
        {
            let traffic = Arc::clone(&self.traffic);
            self.background
                .run(keep(Arc::downgrade(self), traffic, state));
        }
    }

    /// Whoever asks for a level waits for those who asked before, so that the last word is the last. A
    /// server that does not answer keeps nobody else from asking.
    pub(crate) async fn turn_to_ask_for_level(&self) -> Option<SemaphorePermit<'_>> {
        let turn = timeout(TURN, self.asking_for_level.acquire()).await;
        turn.ok().and_then(Result::ok)
    }

    /// Asks the server for log messages, if it is there: the least severe that anybody wants.
    pub(crate) async fn ask_for_level(&self) {
        let _one_at_a_time = self.turn_to_ask_for_level().await;
        if let Some(level) = self.traffic.wanted_level() {
            self.ask_for(level).await;
        }
    }

    /// The same after somebody has left, if the server was asked for more than is wanted now.
    async fn ask_for_less(&self) {
        let _one_at_a_time = self.turn_to_ask_for_level().await;
        let level = self.traffic.wanted_level().unwrap_or(UNSAID);
        if self.asked_level().is_some_and(|asked| asked < level) {
            self.ask_for(level).await;
        }
    }

    async fn ask_for(&self, level: Level) {
        let status = self.manager().status();
        let is_ready = |kind: StateKind| kind == StateKind::Ready;
        let state = status.first().map(|status| status.state.kind());
        if !state.is_some_and(is_ready) {
            return;
        }
        let server = self.name();
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
        self.note_level(level);
        let options = RequestOptions::default();
        let answer = session.request("logging/setLevel", Some(&params), options);
        if let Err(error) = answer.await {
            tracing::warn!(%server, %error, "the server did not take the level of its log messages");
        }
    }
}

/// Asks a server whenever it has become another one or somebody has left, until nobody has it.
async fn keep(instance: Weak<Instance>, traffic: Arc<Traffic>, mut state: StateWatch) {
    loop {
        let is_there = tokio::select! {
            is_there = state.changed() => Some(is_there),
            () = traffic.somebody_left() => None,
        };
        let Some(instance) = instance.upgrade() else {
            return;
        };
        match is_there {
            Some(true) => instance.ask_for_level().await,
            Some(false) => return,
            None => instance.ask_for_less().await,
        }
    }
}
