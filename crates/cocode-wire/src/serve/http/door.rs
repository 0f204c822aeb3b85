//! The door of a running server: who is in, and who has to go.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::guests::Socket;
use super::handler::Shared;
use super::session::{Session, Transport};

/// A hand on a server while it runs; it does nothing once the server has ended.
#[derive(Clone)]
pub struct Door(Weak<Shared>);

/// What is told of a session. Its id is not: whoever knows that has the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// The id of the guest whose it is.
    pub guest: Option<Arc<str>>,
    /// The name of the endpoint that it is at.
    pub endpoint: Option<String>,
    /// What carries it.
    pub transport: SessionTransport,
    /// The revision that was agreed on, as far as that is known.
    pub revision: Option<String>,
    /// How long it has been there.
    pub age: Duration,
    /// How long nothing was open or under way for it.
    pub idle: Duration,
}

/// What carries a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionTransport {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// A WebSocket, which is a session as long as it lasts.
    WebSocket,
}

impl SessionTransport {
    /// Its name, as it is written in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Sse => "sse",
            Self::WebSocket => "ws",
        }
    }
}

impl Door {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::downgrade(shared))
    }

    /// Sends a guest away: ends its sessions, its streams and every WebSocket of it. A request that
    /// was let in before and is answered with one document still gets it.
    ///
    /// To keep the guest out is for the site, and has to be done before.
    pub fn evict(&self, guest_id: &str) {
        if let Some(shared) = self.0.upgrade() {
            shared.guests.evict(guest_id);
            shared.sessions.end_of(guest_id);
        }
    }

    /// The sessions that there are.
    pub fn sessions(&self) -> Vec<SessionFacts> {
        let Some(shared) = self.0.upgrade() else {
            return Vec::new();
        };
        let mut all = shared.sessions.facts(SessionFacts::of);
        all.extend(shared.guests.sockets().into_iter().map(SessionFacts::from));
        all
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Door").finish_non_exhaustive()
    }
}

impl SessionFacts {
    fn of(session: &Session) -> Self {
        let ground = &session.ground;
        let guest = ground.visitor.guest.as_ref();
        Self {
            guest: guest.map(|guest| Arc::clone(guest.shared_id())),
            endpoint: ground.endpoint.clone(),
            transport: match ground.transport {
                Transport::Streamable => SessionTransport::Http,
                Transport::Sse => SessionTransport::Sse,
            },
            revision: session.revision().map(str::to_owned),
            age: session.age(),
            idle: session.idle(),
        }
    }
}

impl From<Socket> for SessionFacts {
    fn from(socket: Socket) -> Self {
        Self {
            guest: socket.guest,
            endpoint: socket.endpoint,
            transport: SessionTransport::WebSocket,
            revision: None,
            age: socket.since.elapsed(),
            idle: Duration::ZERO,
        }
    }
}
