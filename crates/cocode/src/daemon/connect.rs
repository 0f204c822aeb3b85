//! Connects to the daemon of the user, and checks who listens there before anything is said.

use std::io;
use std::path::Path;
use std::time::Duration;

use cocode_process::{Restrictions, RestrictionsError};
use tokio::net::UnixStream;

use super::place::Place;
use super::summon::Unavailable;

/// How long a daemon may take for what needs nothing but itself. After this it hangs.
pub(super) const LOOK_WITHIN: Duration = Duration::from_secs(3);

/// Kind of data that is sent to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PayloadKind {
    /// The environment: any sandbox around the listener is a reason not to.
    Environment,
    /// Questions and commands. A service manager may have filtered the system calls of a gateway, so only the
    /// sandbox of cocode is a reason not to.
    Commands,
}

/// Connects to the daemon at this place, if one listens there, is the user's own, and may be sent this.
pub(super) async fn connect(place: &Place, sends: PayloadKind) -> Result<UnixStream, Unavailable> {
    let stream = connect_at(&place.socket, place, sends).await?;
    place.check_directory()?;
    Ok(stream)
}

/// The same by another path to the socket.
pub(super) async fn connect_at(
    socket: &Path,
    place: &Place,
    sends: PayloadKind,
) -> Result<UnixStream, Unavailable> {
    let path = || place.socket.clone();
    let failed = |source| Unavailable::Connect {
        path: path(),
        source,
    };
    let untrusted = |reason| Unavailable::Untrusted {
        path: path(),
        reason,
    };
    let connecting = tokio::time::timeout(LOOK_WITHIN, UnixStream::connect(socket)).await;
    let stream = match connecting {
        Ok(Ok(stream)) => stream,
        // The backlog of the listener is full.
        Ok(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
            return Err(Unavailable::Hangs { pid: None });
        }
        Err(_elapsed) => return Err(Unavailable::Hangs { pid: None }),
        Ok(Err(error)) => return Err(failed(error)),
    };
    let peer = stream.peer_cred().map_err(failed)?;
    // The listener receives the environment, and its answers are trusted: not even root is another user.
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Err(untrusted("belongs to another user"));
    }
    let checked = || Ok((Restrictions::own()?, Restrictions::of_peer(&stream)?));
    let (own, peer) = checked().map_err(|source| match source {
        // It ends just now, or has left its socket to another process.
        RestrictionsError::Ended => failed(io::Error::other(source)),
        source => Unavailable::Unchecked {
            path: path(),
            source,
        },
    })?;
    let is_confined = match sends {
        PayloadKind::Environment => !own.may_serve(peer),
        PayloadKind::Commands => peer.is_sandboxed && !own.is_sandboxed,
    };
    if is_confined {
        return Err(untrusted("is in a sandbox that this process is not in"));
    }
    if !peer.may_serve(own) {
        return Err(Unavailable::Sandboxed { path: path() });
    }
    Ok(stream)
}

/// The process at the other end, as far as the system tells.
pub(super) fn peer(stream: &UnixStream) -> Option<i32> {
    let peer = stream.peer_cred().ok()?;
    // Nothing if it is not to be seen from here.
    peer.pid().filter(|pid| *pid > 0)
}
