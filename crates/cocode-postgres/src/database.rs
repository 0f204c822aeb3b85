//! A database: where it is, and the few connections that a process has with it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cocode_wire::HttpClient;
use tokio::sync::{OnceCell, Semaphore};
use tokio_postgres::{Config, Error as PostgresError};

use crate::address::Address;
use crate::connection::{Connection, Idle, Lone};
use crate::error::DatabaseError;
use crate::limits::{MAX_CONNECTIONS, MIGRATION_TIMEOUT, TURN_TIMEOUT, WORK_TIMEOUT};
use crate::schema;
use crate::tls::Encryption;

/// A database that several processes share. Copies share their connections.
#[derive(Clone)]
pub struct Database(Arc<Shared>);

struct Shared {
    place: String,
    config: Config,
    encryption: Encryption,
    turns: Arc<Semaphore>,
    idle: Idle,
    /// Whether the tables are known to be in the present format.
    is_prepared: OnceCell<()>,
}

impl Database {
    /// Takes an address such as `postgres://user:password@host:5432/database`, without contacting
    /// anybody yet. Certificates are trusted as `http` does.
    ///
    /// `sslmode` is `disable`, `prefer` (if the server can), or `require`, which is the same as
    /// `verify-full`: whenever there is TLS, the certificate has to be good for the host. Without it,
    /// the connection is encrypted unless the database is on this machine. `sslrootcert` names a file
    /// with certificate authorities to trust besides.
    pub fn new(address: &str, http: &HttpClient) -> Result<Self, DatabaseError> {
        let Address {
            config,
            place,
            ca_file,
        } = Address::parse(address)?;
        Ok(Self(Arc::new(Shared {
            place,
            config,
            encryption: Encryption::new(http, ca_file),
            turns: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            idle: Idle::default(),
            is_prepared: OnceCell::new(),
        })))
    }

    /// The address for people, without its password.
    pub fn place(&self) -> &str {
        &self.0.place
    }

    /// One of the few connections of this process, with the tables in the present format.
    pub async fn connection(&self) -> Result<Connection, DatabaseError> {
        let turn = Arc::clone(&self.0.turns).acquire_owned();
        let turn = tokio::time::timeout(TURN_TIMEOUT, turn).await;
        // The semaphore is never closed, so that nothing but time can be the reason.
        let Ok(Ok(turn)) = turn else {
            return Err(DatabaseError::Busy {
                place: self.0.place.clone(),
                after: TURN_TIMEOUT,
            });
        };
        let mut lone = match self.0.idle.take() {
            Some(idle) => idle,
            None => self.open().await?,
        };
        self.prepare(&mut lone).await?;
        Ok(Connection::new(lone, self.0.idle.clone(), turn))
    }

    /// A connection besides those few, for what is bound to a session and held for long: locks.
    pub async fn lone(&self) -> Result<Lone, DatabaseError> {
        let mut lone = self.open().await?;
        self.prepare(&mut lone).await?;
        Ok(lone)
    }

    /// Gives work its deadline. `action` is what it does, as in `list the tokens`. A connection that it
    /// uses has to be given to it, so that one whose work was cut short is closed.
    pub async fn timely<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = Result<T, DatabaseError>>,
    ) -> Result<T, DatabaseError> {
        let done = tokio::time::timeout(WORK_TIMEOUT, work).await;
        done.unwrap_or_else(|_elapsed| Err(self.slow(action, WORK_TIMEOUT)))
    }

    fn slow(&self, action: &'static str, after: Duration) -> DatabaseError {
        DatabaseError::Slow {
            place: self.0.place.clone(),
            action,
            after,
        }
    }

    /// Makes an error of what the server said, for `map_err`. `action` is what was tried, as in `list
    /// the tokens`.
    pub fn failed(&self, action: &'static str) -> impl Fn(PostgresError) -> DatabaseError + '_ {
        move |error| DatabaseError::doing(&self.0.place, action, &error)
    }

    async fn open(&self) -> Result<Lone, DatabaseError> {
        let Shared {
            place,
            config,
            encryption,
            ..
        } = &*self.0;
        Lone::open(place, config, encryption).await
    }

    async fn prepare(&self, lone: &mut Lone) -> Result<(), DatabaseError> {
        let preparing = || async move {
            let work = schema::migrate(lone, schema::FORMATS, &self.0.place);
            let done = tokio::time::timeout(MIGRATION_TIMEOUT, work).await;
            done.unwrap_or_else(|_elapsed| Err(self.slow(schema::ACTION, MIGRATION_TIMEOUT)))
        };
        self.0.is_prepared.get_or_try_init(preparing).await?;
        Ok(())
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("Database")
            .field(&self.0.place)
            .finish()
    }
}
