//! What happens in a manager, told to whoever listens.
//!
//! **Overflow.** Telling never waits: a listener that falls more than [`EVENTS_KEPT`] events behind
//! loses the oldest of them, is told how many ([`Event::Missed`]), and goes on with what is left.
//! Nothing may depend on having seen every event: the state itself is always in
//! [`Manager::status`](super::Manager::status) and [`Manager::catalog`](super::Manager::catalog).

use std::sync::Arc;
use std::time::Duration;

use cocode_core::{ServerName, ToolName};
use cocode_wire::RawJson;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::catalog::CatalogChange;
use super::state::{ConnectionFacts, ServerState, StateKind};
use crate::progress::Progress;

/// Events that are kept for a listener that is behind.
pub const EVENTS_KEPT: usize = 4096;

/// Something that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A server is in another state.
    ServerStateChanged {
        /// Which server.
        server: ServerName,
        /// How it is now.
        state: ServerState,
    },
    /// A server that belongs to a start has come a step further.
    StartupUpdate {
        /// Which server.
        server: ServerName,
        /// What it is now.
        state: StateKind,
    },
    /// Every server of a start is ready, has failed, or is too slow to be waited for.
    StartupComplete {
        /// Those that can be used, and what is known of those that are connected.
        ready: Vec<(ServerName, Option<Arc<ConnectionFacts>>)>,
        /// Those that cannot, and why.
        failed: Vec<(ServerName, String)>,
        /// Those that are still being started.
        slow: Vec<ServerName>,
    },
    /// A tool is being called.
    ToolCallStarted {
        /// Which call.
        call: CallId,
        /// Whose tool.
        server: ServerName,
        /// Which tool, by the server's name for it.
        tool: ToolName,
    },
    /// A tool reports how far it is.
    ToolCallProgressed {
        /// Which call.
        call: CallId,
        /// How far.
        progress: Progress,
    },
    /// A call is over.
    ToolCallFinished {
        /// Which call.
        call: CallId,
        /// Whose tool.
        server: ServerName,
        /// Which tool, by the server's name for it.
        tool: ToolName,
        /// How it ended.
        outcome: CallEnd,
        /// Whether the result says that the tool failed.
        is_error: bool,
        /// Size of the result, if there is one.
        bytes: Option<usize>,
        /// How long it took.
        elapsed: Duration,
    },
    /// The catalog is another one.
    CatalogChanged(Arc<CatalogChange>),
    /// A resource that was subscribed to has changed.
    ResourceUpdated {
        /// Whose resource.
        server: ServerName,
        /// Which one.
        uri: String,
    },
    /// A server sent a log message.
    LogReceived {
        /// Which server.
        server: ServerName,
        /// How severe it is, in the words of the protocol.
        level: String,
        /// The part of the server it comes from.
        logger: Option<String>,
        /// What it says.
        data: RawJson,
    },
    /// A server asks the person something.
    ElicitationRequested {
        /// Which server.
        server: ServerName,
        /// The number of the question.
        question: u64,
        /// What it wants to know.
        message: String,
    },
    /// A question was answered, or is not asked any more.
    ElicitationAnswered {
        /// Which server.
        server: ServerName,
        /// The number of the question.
        question: u64,
        /// How.
        action: &'static str,
    },
    /// The configuration was changed, and something in the change cannot be used: what was there
    /// before goes on.
    ConfigurationRejected {
        /// What is wrong, each with its file and line.
        problems: Vec<String>,
    },
    /// The listener was too slow, and so many events are lost to it.
    Missed(u64),
}

/// The number of a call, unique within a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallEnd {
    /// With a result.
    Ok,
    /// With a result that says that the tool failed.
    ToolError,
    /// Without a result: the stable name of the error.
    Failed(&'static str),
    /// Nobody wanted the result any more.
    Cancelled,
}

impl std::fmt::Display for CallId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// Tells events to whoever listens.
#[derive(Clone, Debug)]
pub(crate) struct Bus {
    events: broadcast::Sender<Event>,
}

/// The events since this was made.
#[derive(Debug)]
pub struct Events {
    events: broadcast::Receiver<Event>,
}

impl Bus {
    pub(crate) fn new() -> Self {
        let (events, _first) = broadcast::channel(EVENTS_KEPT);
        Self { events }
    }

    /// Whether anybody would hear.
    pub(crate) fn is_heard(&self) -> bool {
        self.events.receiver_count() > 0
    }

    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if self.is_heard() {
            // Whoever listened may have left just now.
            drop(self.events.send(event()));
        }
    }

    pub(crate) fn listen(&self) -> Events {
        Events {
            events: self.events.subscribe(),
        }
    }
}

impl Events {
    /// The next event; nothing once the manager is gone.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(Event::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bus, EVENTS_KEPT, Event};

    #[tokio::test]
    async fn a_slow_listener_is_told_what_it_missed_and_goes_on() {
        let bus = Bus::new();
        let mut events = bus.listen();
        for _ in 0..EVENTS_KEPT + 10 {
            bus.tell(|| Event::Missed(0));
        }
        let mut missed = 0;
        let mut seen = 0;
        drop(bus);
        while let Some(event) = events.next().await {
            match event {
                Event::Missed(0) => seen += 1,
                Event::Missed(count) => missed += count,
                other => unreachable!("{other:?}"),
            }
        }
        assert_eq!((missed, seen), (10, EVENTS_KEPT));
    }

    #[test]
    fn an_event_that_nobody_hears_is_not_even_made() {
        Bus::new().tell(|| unreachable!("nobody listens"));
    }
}
