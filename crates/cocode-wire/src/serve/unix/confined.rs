//! Clients in a sandbox that the server is not in. They are of the same user, but whoever made the sandbox did not
//! mean them to do what the server does for its user.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cocode_process::{Restrictions, RestrictionsError};
use tokio::net::UnixStream;

/// A program in a sandbox can come as often as it likes, and is not to fill the log.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// What clients are told who are in a sandbox, or of whom that is not known: another container may be meant.
const CONFINED: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"this socket is not for programs in a sandbox\"}}\n";
const UNKNOWN: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"this socket serves only processes that can be seen from where it is served, and not those of another container\"}}\n";

/// Why a client is not let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum TurnedAway {
    /// It would get out of its sandbox.
    #[error("it is in a sandbox: it has {client}, this process has {own}")]
    Confined {
        client: Restrictions,
        own: Restrictions,
    },
    /// It may be in a sandbox.
    #[error("whether it is in a sandbox is not known")]
    Unknown(#[source] RestrictionsError),
}

impl TurnedAway {
    /// What the client is told.
    pub(super) fn told(&self) -> &'static [u8] {
        match self {
            Self::Confined { .. } => CONFINED,
            Self::Unknown(_) => UNKNOWN,
        }
    }
}

/// Lets those in that are no more confined than this process. Reads a few small files of the system.
pub(super) fn check(stream: &UnixStream) -> Result<(), TurnedAway> {
    let own = Restrictions::own().map_err(TurnedAway::Unknown)?;
    let client = Restrictions::of_peer(stream).map_err(TurnedAway::Unknown)?;
    if own.may_serve(client) {
        Ok(())
    } else {
        Err(TurnedAway::Confined { client, own })
    }
}

/// What is said of those who are not let in, once in a while.
#[derive(Debug, Default)]
pub(super) struct Complaints {
    told: Mutex<Option<Instant>>,
}

impl Complaints {
    pub(super) fn add(&self, pid: Option<i32>, why: &TurnedAway) {
        let why: &dyn std::error::Error = why;
        if self.is_due(Instant::now()) {
            tracing::warn!(pid, why, "a client was turned away");
        } else {
            tracing::debug!(pid, why, "a client was turned away");
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = told.is_none_or(|told| now.duration_since(told) >= TOLD_EVERY);
        if is_due {
            *told = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
#[path = "confined_tests.rs"]
mod tests;
