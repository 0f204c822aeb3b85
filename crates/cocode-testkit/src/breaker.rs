//! Breaking TCP connections with a reset instead of closing them properly.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use tokio::net::TcpStream;

/// Held by a connection while it lives. What is not TCP has one that does nothing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breaker(Option<Arc<OwnedFd>>);

impl Breaker {
    /// From now on, closing the connection resets it.
    pub(crate) fn arm(&self) {
        if let Some(socket) = &self.0 {
            set_socket_linger(socket, Some(Duration::ZERO))
                .expect("a TCP socket knows this option");
        }
    }
}

/// The breakers of all connections that are open.
#[derive(Debug, Clone, Default)]
pub(crate) struct Breakers(Arc<Mutex<Vec<Weak<OwnedFd>>>>);

impl Breakers {
    /// A breaker for a new connection, to be dropped with it: it keeps the connection open.
    pub(crate) fn add(&self, socket: &TcpStream) -> Breaker {
        let copy = socket.as_fd().try_clone_to_owned();
        let copy = Arc::new(copy.expect("a descriptor can be copied"));
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(&copy));
        Breaker(Some(copy))
    }

    /// From now on, closing any connection that is open resets it.
    pub(crate) fn arm_all(&self) {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in open.iter() {
            Breaker(socket.upgrade()).arm();
        }
    }
}
