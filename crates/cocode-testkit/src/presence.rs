//! Whether a server runs at its address: it can be ended, started again, and left hanging.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::background::Background;

/// A server that is up or down.
#[derive(Debug)]
pub(crate) struct Presence(Mutex<Option<Background>>);

impl Presence {
    pub(crate) fn new(server: Background) -> Self {
        Self(Mutex::new(Some(server)))
    }

    /// Ends the server, if it is up. Comes back when all its sockets are closed.
    pub(crate) fn end(&self) {
        let ending = self.lock().take();
        drop(ending);
    }

    /// Puts a new server in the place of one that was ended.
    pub(crate) fn begin(&self, server: Background) {
        let before = self.lock().replace(server);
        assert!(before.is_none(), "two servers at one address");
    }

    pub(crate) fn is_up(&self) -> bool {
        self.lock().is_some()
    }

    pub(crate) fn hang(&self) {
        let server = self.lock();
        server.as_ref().expect("the server is down").hang();
    }

    pub(crate) fn resume(&self) {
        let server = self.lock();
        server.as_ref().expect("the server is down").resume();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Background>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
