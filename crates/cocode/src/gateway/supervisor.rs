//! What the supervisor of this process, such as systemd, is told: that the gateway serves, that it still
//! does, and that it ends. Nothing, if nobody asks.
//!
//! The signs of life come from the runtime that serves clients. If that hangs, they stay away, and the
//! supervisor starts another gateway in the place of one that would keep its clients waiting.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use crate::environment::Variables;

/// How long a supervisor that does not listen is waited for.
const SAID_WITHIN: Duration = Duration::from_secs(1);

/// Whoever watches over this process, if anybody does. The signs of life end with this.
#[derive(Debug)]
pub(super) struct Supervisor {
    notices: Option<Arc<Notices>>,
    _signs_of_life: JoinSet<()>,
}

impl Supervisor {
    /// Says that the gateway serves clients, and from now on that it still does.
    pub(super) async fn ready(variables: &Variables) -> Self {
        let mut signs_of_life = JoinSet::new();
        let notices = Notices::wanted(variables).map(Arc::new);
        if let Some(notices) = &notices {
            notices.say("READY=1").await;
            if let Some(period) = watchdog(variables, std::process::id()) {
                signs_of_life.spawn(live(Arc::clone(notices), period));
            }
        }
        Self {
            notices,
            _signs_of_life: signs_of_life,
        }
    }

    /// Says that the gateway ends because somebody wants that.
    pub(super) async fn stopping(&self) {
        if let Some(notices) = &self.notices {
            notices.say("STOPPING=1").await;
        }
    }
}

/// Says again and again that the gateway lives, twice as often as it has to.
async fn live(notices: Arc<Notices>, period: Duration) {
    let mut beats = tokio::time::interval(period / 2);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        notices.say("WATCHDOG=1").await;
    }
}

/// How often the supervisor wants a sign of life, if it wants one of this process.
fn watchdog(variables: &Variables, own_id: u32) -> Option<Duration> {
    let period = variables.text("WATCHDOG_USEC")?;
    // Whoever was started by the process that is meant may have inherited the variables.
    if let Some(id) = variables.text("WATCHDOG_PID")
        && id.parse() != Ok(own_id)
    {
        return None;
    }
    match period.parse() {
        Ok(0) => None,
        Ok(microseconds) => Some(Duration::from_micros(microseconds)),
        Err(_) => {
            tracing::warn!(
                period,
                "WATCHDOG_USEC is no number, so nobody is told that this lives"
            );
            None
        }
    }
}

/// The socket of a supervisor.
#[derive(Debug)]
struct Notices {
    address: io::Result<SocketAddr>,
    has_failed: AtomicBool,
}

impl Notices {
    /// The socket that the supervisor has named, if any.
    fn wanted(variables: &Variables) -> Option<Self> {
        let name = variables.get("NOTIFY_SOCKET".as_ref())?;
        let is_named = !name.is_empty();
        is_named.then(|| Self {
            address: address(&name),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Says something. That it cannot be said harms nobody but who waits for it, and is noted once.
    async fn say(&self, what: &str) {
        let said = tokio::time::timeout(SAID_WITHIN, self.try_say(what)).await;
        let said = said.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if let Err(error) = said
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            tracing::warn!(%error, what, "the supervisor of this process (NOTIFY_SOCKET) cannot be told");
        }
    }

    /// Each time with a socket of its own: that of the supervisor may be another one by now.
    async fn try_say(&self, what: &str) -> io::Result<()> {
        let address = match &self.address {
            Ok(address) => address,
            Err(error) => return Err(io::Error::new(error.kind(), error.to_string())),
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect_addr(address)?;
        let socket = tokio::net::UnixDatagram::from_std(socket)?;
        socket.send(what.as_bytes()).await.map(drop)
    }
}

/// The address that a supervisor writes: a path, or `@` and an abstract name.
fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'/', ..] => SocketAddr::from_pathname(name),
        [b'@', name @ ..] => abstract_address(name),
        _ => {
            let message = "this is neither a path nor an abstract name";
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt as _;

    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_name: &[u8]) -> io::Result<SocketAddr> {
    let message = "there are no abstract names on this system";
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

#[cfg(test)]
#[path = "supervisor_tests.rs"]
mod tests;
