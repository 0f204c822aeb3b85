//! Connections: one that is borrowed from the few of a process, and one that is held for long.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio_postgres::{Client, Config};

use crate::error::DatabaseError;
use crate::limits::OPENING_TIMEOUT;
use crate::tls::Encryption;

/// A connection with the task that carries it. Dropping it closes it, and the server frees what it
/// held: transactions, and locks of its session.
pub struct Lone {
    client: Client,
    /// Ends with the connection.
    _driver: JoinSet<()>,
}

impl Lone {
    pub(crate) async fn open(
        place: &str,
        config: &Config,
        encryption: &Encryption,
    ) -> Result<Self, DatabaseError> {
        let opening = config.connect(encryption.clone());
        let opened = tokio::time::timeout(OPENING_TIMEOUT, opening).await;
        let opened = opened.map_err(|_elapsed| DatabaseError::Slow {
            place: place.to_owned(),
            action: "connect",
            after: OPENING_TIMEOUT,
        })?;
        let (client, connection) = opened.map_err(|error| DatabaseError::opening(place, &error))?;
        let mut driver = JoinSet::new();
        let place = place.to_owned();
        driver.spawn(async move {
            if let Err(error) = connection.await {
                let error = crate::error::told(&error);
                tracing::debug!(%place, %error, "a connection to the database ended");
            }
        });
        Ok(Self {
            client,
            _driver: driver,
        })
    }
}

impl Deref for Lone {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Lone {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl fmt::Debug for Lone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Lone").finish_non_exhaustive()
    }
}

/// Connections that nobody uses now.
#[derive(Clone, Default)]
pub(crate) struct Idle(Arc<Mutex<Vec<Lone>>>);

impl Idle {
    /// One that still works, as far as is known.
    pub(crate) fn take(&self) -> Option<Lone> {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|lone| !lone.is_closed());
        idle.pop()
    }

    fn put(&self, lone: Lone) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(lone);
    }
}

/// One of the few connections of a process. [`give_back`](Self::give_back) lets others use it; one that
/// is dropped is closed, because nobody knows what is still under way on it.
pub struct Connection {
    lone: Lone,
    idle: Idle,
    _turn: OwnedSemaphorePermit,
}

impl Connection {
    pub(crate) fn new(lone: Lone, idle: Idle, turn: OwnedSemaphorePermit) -> Self {
        Self {
            lone,
            idle,
            _turn: turn,
        }
    }

    /// Lets others use it. Nothing may be under way on it: no transaction, no answer that was not read,
    /// no lock of its session.
    pub fn give_back(self) {
        self.idle.put(self.lone);
    }
}

impl Deref for Connection {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.lone
    }
}

impl DerefMut for Connection {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.lone
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}
