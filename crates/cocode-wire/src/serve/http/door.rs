//! The door of a running server: who is in, and who has to go.

use std::sync::{Arc, Weak};
use std::time::Duration;

use super::guests::Socket;
use super::handler::Shared;
use super::session::{Session, Transport};
use crate::serve::session_store::Whose;

/// A hand on a server, or on several, while they run; it does nothing at one that has ended.
#[derive(Clone)]
pub struct Door(Vec<Weak<Shared>>);

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
    /// What the client calls itself, as far as it has said so: its own words, without what would disturb
    /// whoever reads them, and not too many.
    pub client: Option<String>,
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
        Self(vec![Arc::downgrade(shared)])
    }

    /// A hand on the servers of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Sends a guest away: ends its sessions, its streams and every WebSocket of it. A request that
    /// was let in before and is answered with one document still gets it. Nobody goes on with its
    /// sessions elsewhere, as soon as the store of sessions is told.
    ///
    /// To keep the guest out is for the site, and has to be done before.
    pub fn evict(&self, guest_id: &str) {
        self.send_away(&Whose::Guest(guest_id.to_owned()));
    }

    /// The same for what a guest has begun with one [credential](super::Guest::by), whoever has gone on with it,
    /// and wherever: sessions, and every stream and WebSocket that was opened with it. All else of the guest stays.
    pub fn evict_by(&self, guest_id: &str, credential: &str) {
        self.send_away(&Whose::Credential {
            guest: guest_id.to_owned(),
            credential: credential.to_owned(),
        });
    }

    /// The same for everybody who is no guest: for when a site begins to ask who somebody is. It has to do so
    /// already.
    pub fn evict_strangers(&self) {
        self.send_away(&Whose::Strangers);
    }

    fn send_away(&self, whose: &Whose) {
        for shared in self.servers() {
            shared.guests.evict(Some(whose));
            shared.sessions.end_of(whose);
            if let Some(keeper) = &shared.keeper {
                keeper.end_of(whose.clone());
            }
        }
    }

    /// The same for everybody who is a guest.
    pub fn evict_all(&self) {
        for shared in self.servers() {
            shared.guests.evict(None);
            let is_guests = |session: &Session| session.ground.visitor.guest.is_some();
            shared.sessions.end_where(is_guests);
        }
    }

    /// The sessions that there are.
    pub fn sessions(&self) -> Vec<SessionFacts> {
        let mut all = Vec::new();
        for shared in self.servers() {
            all.extend(shared.sessions.facts(SessionFacts::of));
            all.extend(shared.guests.sockets().into_iter().map(SessionFacts::from));
        }
        all
    }

    fn servers(&self) -> impl Iterator<Item = Arc<Shared>> {
        self.0.iter().filter_map(Weak::upgrade)
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
            client: session.client.get().map(str::to_owned),
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
            client: socket.client.get().map(str::to_owned),
            age: socket.since.elapsed(),
            idle: Duration::ZERO,
        }
    }
}
