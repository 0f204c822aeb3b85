//! What goes wrong with conversations, before it is told: whether it was the connection, so that the
//! same can be tried on another.

use cocode_agent::StoreError;
use tokio_postgres::Error as PostgresError;
use tokio_postgres::error::SqlState;

use crate::database::Database;
use crate::error::DatabaseError;

/// What went wrong.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nothing is wrong with the database.
    Told(StoreError),
    /// The database, or the way to it.
    Database(DatabaseError),
    /// The connection broke: nobody knows what has become of what was asked.
    Cut(DatabaseError),
}

impl Trouble {
    /// What a statement failed with, for `map_err`.
    pub(super) fn doing(
        database: &Database,
        action: &'static str,
    ) -> impl Fn(PostgresError) -> Self {
        let database = database.clone();
        move |error| {
            let is_cut = is_cut(&error);
            let told = database.failed(action)(error);
            if is_cut {
                Self::Cut(told)
            } else {
                Self::Database(told)
            }
        }
    }
}

/// Whether an error means that the connection is gone.
fn is_cut(error: &PostgresError) -> bool {
    match error.code() {
        Some(code) => [&SqlState::ADMIN_SHUTDOWN, &SqlState::CRASH_SHUTDOWN].contains(&code),
        None => error.is_closed() || is_of_the_system(error),
    }
}

fn is_of_the_system(error: &PostgresError) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// Does what can be done twice without harm, once more if the connection broke.
pub(super) async fn again<T, F: Future<Output = Result<T, Trouble>>>(
    attempt: impl Fn() -> F,
) -> Result<T, Trouble> {
    match attempt().await {
        Err(Trouble::Cut(error)) => {
            tracing::debug!(%error, "a connection broke, and another is tried");
            attempt().await
        }
        done => done,
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Told(error)
    }
}

impl From<DatabaseError> for Trouble {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error)
    }
}

impl From<Trouble> for StoreError {
    fn from(trouble: Trouble) -> Self {
        let error = match trouble {
            Trouble::Told(error) => return error,
            Trouble::Database(error) | Trouble::Cut(error) => error,
        };
        match error {
            DatabaseError::Newer {
                place,
                found,
                known,
            } => Self::Newer {
                place,
                found,
                known,
            },
            other => Self::Broken {
                // The address is in what follows.
                place: "in PostgreSQL".to_owned(),
                why: other.to_string(),
            },
        }
    }
}
