//! How a server is: the states that a consumer sees, as plain data. Who moves between them is the
//! supervisor.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cocode_core::{Revision, ServerName};
use cocode_wire::{Closed, chain};
use tokio::sync::watch;
use tokio::time::Instant;

use super::connector::ReachError;
use super::server::Standing;
use crate::error::{ConnectError, RequestError};

/// The states of a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerState {
    /// Its user has switched it off.
    Disabled,
    /// It stands in a file that nobody has approved yet.
    PendingTrust,
    /// It does not run. The first call starts it.
    Stopped,
    /// It is being started, or contacted.
    Starting {
        /// It has taken longer than its `startup_timeout_sec`, and nobody waits for it any more.
        slow: bool,
    },
    /// It can be used.
    Ready,
    /// It wants credentials that it does not get.
    NeedsAuth(Trouble),
    /// Signing in needs a client that its user has to register first.
    NeedsClientRegistration(Trouble),
    /// The connection was lost, and is being made again.
    Reconnecting {
        /// Which attempt is being made or waited for, from one.
        attempt: u32,
        /// Why the connection, or the last attempt, failed.
        trouble: Trouble,
    },
    /// It cannot be used. The next call tries once more.
    Failed(Trouble),
}

/// What kind of state a server is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "see the variants of ServerState")]
#[non_exhaustive]
pub enum StateKind {
    Disabled,
    PendingTrust,
    Stopped,
    Starting,
    Ready,
    NeedsAuth,
    NeedsClientRegistration,
    Reconnecting,
    Failed,
}

/// What went wrong with a server.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// What exactly.
    pub cause: Cause,
}

/// The ways in which a server fails.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Cause {
    /// No target could be made of its specification.
    Reach(Arc<ReachError>),
    /// No session could be made.
    Connect(Arc<ConnectError>),
    /// A session ended.
    Lost(Closed),
    /// A request showed that the session is of no use any more.
    Request(Arc<RequestError>),
}

/// A server at one moment.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Which server.
    pub name: ServerName,
    /// How it is.
    pub state: ServerState,
    /// What is known of the connection, or of the last one.
    pub connection: Option<Arc<ConnectionFacts>>,
    /// What was wrong last, even if it is over.
    pub last_trouble: Option<Trouble>,
    /// How often it was connected again after a loss.
    pub reconnects: u32,
    /// Requests that wait for their answers.
    pub in_flight: usize,
    /// Whether a start without it is a failure.
    pub required: bool,
}

/// What a connection is, once it is made.
#[derive(Clone, Debug)]
pub struct ConnectionFacts {
    /// The revision it speaks.
    pub revision: Revision,
    /// What carries it.
    pub transport: &'static str,
    /// The name that the server gives itself.
    pub server_name: Option<String>,
    /// The version that the server gives itself.
    pub server_version: Option<String>,
    /// The name that the server gives itself for people.
    pub server_title: Option<String>,
    /// How it wants to be used, in its own words.
    pub instructions: Option<String>,
    /// The process, if we started one.
    pub pid: Option<u32>,
    /// From the beginning of the attempt to the moment it could be used.
    pub time_to_ready: Duration,
    /// The moment it could be used.
    pub ready_at: Instant,
}

/// Notices changes of one server's state. Unlike [`Events`](super::Events), it costs calls nothing.
#[derive(Debug)]
pub struct StateWatch(watch::Receiver<Standing>);

impl StateWatch {
    pub(crate) fn new(standing: watch::Receiver<Standing>) -> Self {
        Self(standing)
    }

    /// Ends when the state is another than when this was made, or ended last. `false` if the server
    /// is gone, and nothing more will happen to it.
    ///
    /// Cancel safe.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl ServerState {
    /// What kind of state it is.
    pub fn kind(&self) -> StateKind {
        match self {
            Self::Disabled => StateKind::Disabled,
            Self::PendingTrust => StateKind::PendingTrust,
            Self::Stopped => StateKind::Stopped,
            Self::Starting { .. } => StateKind::Starting,
            Self::Ready => StateKind::Ready,
            Self::NeedsAuth(_) => StateKind::NeedsAuth,
            Self::NeedsClientRegistration(_) => StateKind::NeedsClientRegistration,
            Self::Reconnecting { .. } => StateKind::Reconnecting,
            Self::Failed(_) => StateKind::Failed,
        }
    }

    /// What is wrong, if something is.
    pub fn trouble(&self) -> Option<&Trouble> {
        match self {
            Self::NeedsAuth(trouble)
            | Self::NeedsClientRegistration(trouble)
            | Self::Reconnecting { trouble, .. }
            | Self::Failed(trouble) => Some(trouble),
            Self::Disabled
            | Self::PendingTrust
            | Self::Stopped
            | Self::Starting { .. }
            | Self::Ready => None,
        }
    }

    /// Whether the server may still come up by itself within moments.
    pub(crate) fn is_on_its_way(&self) -> bool {
        matches!(self, Self::Starting { .. } | Self::Reconnecting { .. })
    }

    /// Whether nobody needs to wait for the end of its start any more.
    pub(crate) fn is_settled(&self) -> bool {
        !matches!(
            self,
            Self::Starting { slow: false } | Self::Reconnecting { .. }
        )
    }

    /// Whether its tools are worth showing to a model: a short absence changes nothing.
    pub(crate) fn offers_tools(&self) -> bool {
        matches!(
            self,
            Self::Stopped | Self::Starting { .. } | Self::Ready | Self::Reconnecting { .. }
        )
    }
}

impl StateKind {
    /// The word for it, as scripts see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::PendingTrust => "pending-trust",
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::NeedsAuth => "needs-auth",
            Self::NeedsClientRegistration => "needs-client-registration",
            Self::Reconnecting => "reconnecting",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for StateKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl Trouble {
    /// The stable name of this kind of error; `docs/errors` has a page for each.
    pub fn code(&self) -> &'static str {
        match &self.cause {
            Cause::Reach(error) => error.code,
            Cause::Connect(error) => error.code(),
            Cause::Lost(Closed::Exited { .. }) => "server-exited",
            Cause::Lost(_) => "connection-closed",
            Cause::Request(error) => error.code(),
        }
    }

    /// The last lines that the server wrote to stderr, where they may explain it.
    pub fn stderr(&self) -> &[String] {
        match &self.cause {
            Cause::Connect(error) => error.stderr(),
            Cause::Lost(Closed::Exited { stderr, .. }) => stderr,
            Cause::Reach(_) | Cause::Lost(_) | Cause::Request(_) => &[],
        }
    }
}

/// The whole chain of causes in one line.
impl fmt::Display for Trouble {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Reach(error) => formatter.write_str(&chain(&**error)),
            Cause::Connect(error) => formatter.write_str(&chain(&**error)),
            Cause::Lost(closed) => write!(formatter, "{closed}"),
            Cause::Request(error) => formatter.write_str(&chain(&**error)),
        }
    }
}

impl From<Cause> for Trouble {
    fn from(cause: Cause) -> Self {
        Self { cause }
    }
}
