//! Clients of the same user that are refused all the same: programs in a sandbox that the server is not in, and
//! programs that the server has started. Neither is meant to have the power that the server has for its user.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cocode_process::{Restrictions, RestrictionsError, peer_is_descendant};
use tokio::net::UnixStream;

/// A program in a sandbox can come as often as it likes, and is not to fill the log.
const TOLD_EVERY: Duration = Duration::from_mins(1);

/// What clients are told who are in a sandbox, or of whom that is not known: another container may be meant.
const CONFINED: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"this socket is not for programs in a sandbox\"}}\n";
const UNKNOWN: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"this socket serves only processes that can be seen from where it is served, and not those of another container\"}}\n";

const DESCENDANT: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,\"message\":\"this socket does not serve programs that its own process has started\"}}\n";

/// Why a client is not let in.
#[derive(Debug, thiserror::Error)]
pub(super) enum TurnedAway {
    /// It would get out of its sandbox.
    #[error("it is in a sandbox: it has {client}, this process has {own}")]
    Confined {
        client: Restrictions,
        own: Restrictions,
    },
    /// It is a server, or a command of an agent, of this process.
    #[error("this process has started it, or one of its ancestors")]
    Descendant,
    /// It may be in a sandbox, or a descendant.
    #[error("whether it is in a sandbox, or was started by this process, is not known")]
    Unknown(#[source] RestrictionsError),
}

impl TurnedAway {
    /// What the client is told.
    pub(super) fn told(&self) -> &'static [u8] {
        match self {
            Self::Confined { .. } => CONFINED,
            Self::Descendant => DESCENDANT,
            Self::Unknown(_) => UNKNOWN,
        }
    }
}

/// Admits clients that are no more confined than this process, and that it has not started. Reads a few small files
/// of the system.
pub(super) fn check(stream: &UnixStream) -> Result<(), TurnedAway> {
    let own = Restrictions::own().map_err(TurnedAway::Unknown)?;
    let client = Restrictions::of_peer(stream).map_err(TurnedAway::Unknown)?;
    if !own.may_serve(client) {
        return Err(TurnedAway::Confined { client, own });
    }
    if peer_is_descendant(stream).map_err(TurnedAway::Unknown)? {
        return Err(TurnedAway::Descendant);
    }
    Ok(())
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
