//! Why something could not be done with a database. No message holds a password, nor what is stored.

use std::time::Duration;

use tokio_postgres::Error as PostgresError;
use tokio_postgres::error::SqlState;

/// Why something could not be done with a database.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatabaseError {
    /// The address is none.
    #[error(
        "the address of the database cannot be used: {why}; write it as in \
         postgres://user:password@db.example.com:5432/cocode"
    )]
    Address {
        /// What is wrong with it.
        why: String,
    },
    /// Nobody is there.
    #[error(
        "the database {place} cannot be reached: {why}; see that it runs and takes connections from \
         this machine"
    )]
    Unreachable {
        /// The address, without its password.
        place: String,
        /// What the system said.
        why: String,
    },
    /// The server does not let us in.
    #[error(
        "the database {place} does not let us in: {why}; check the user, the password and the name of \
         the database, and who may connect by the server's pg_hba.conf"
    )]
    Refused {
        /// The address, without its password.
        place: String,
        /// What the server said.
        why: String,
    },
    /// All connections of this process are in use.
    #[error(
        "all connections of this process to the database {place} were in use for {} seconds: it is \
         overloaded, or hangs",
        after.as_secs()
    )]
    Busy {
        /// The address, without its password.
        place: String,
        /// How long was waited.
        after: Duration,
    },
    /// No answer came in time.
    #[error(
        "the database {place} did not answer within {} seconds; what was not done: {action}",
        after.as_secs()
    )]
    Slow {
        /// The address, without its password.
        place: String,
        /// What was tried, as in `list the tokens`.
        action: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The user of the database may not do this.
    #[error(
        "the user of the database {place} may not do what is needed to {action}: {why}; let it own the \
         schema `cocode`, as in CREATE SCHEMA cocode AUTHORIZATION its_name"
    )]
    NotAllowed {
        /// The address, without its password.
        place: String,
        /// What was tried, as in `list the tokens`.
        action: &'static str,
        /// What the server said.
        why: String,
    },
    /// The server, or the way to it, failed.
    #[error("the database {place} failed to {action}: {why}")]
    Failed {
        /// The address, without its password.
        place: String,
        /// What was tried, as in `list the tokens`.
        action: &'static str,
        /// What the server said.
        why: String,
    },
    /// A newer version has been there.
    #[error(
        "the tables of the database {place} have format {found}, and this cocode knows {known}: use \
         the newer version that made them"
    )]
    Newer {
        /// The address, without its password.
        place: String,
        /// The format that was found.
        found: i64,
        /// The newest that is known.
        known: i64,
    },
    /// Not every text can be kept there.
    #[error(
        "the database {place} has the encoding {encoding}, which cannot keep every text: use one that \
         was made with ENCODING 'UTF8'"
    )]
    Encoding {
        /// The address, without its password.
        place: String,
        /// What the server calls it.
        encoding: String,
    },
    /// Somebody else has been there.
    #[error(
        "the schema `cocode` of the database {place} was not made by cocode: use another database, or \
         rename that schema"
    )]
    Foreign {
        /// The address, without its password.
        place: String,
    },
}

impl DatabaseError {
    /// Why a connection was not made.
    pub(crate) fn opening(place: &str, error: &PostgresError) -> Self {
        let place = place.to_owned();
        let why = told(error);
        match error.code() {
            Some(&SqlState::TOO_MANY_CONNECTIONS) => Self::Unreachable { place, why },
            // A server that starts or ends says so with a code of its own.
            Some(code) if code.code().starts_with("57P") => Self::Unreachable { place, why },
            Some(_) => Self::Refused { place, why },
            None if is_about_credentials(&why) => Self::Refused { place, why },
            None => Self::Unreachable { place, why },
        }
    }

    /// Why a statement was not done.
    pub(crate) fn doing(place: &str, action: &'static str, error: &PostgresError) -> Self {
        let place = place.to_owned();
        let why = told(error);
        match error.code() {
            Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Self::NotAllowed { place, action, why },
            _ => Self::Failed { place, action, why },
        }
    }

    /// Whether the same may succeed later, without anybody changing anything of ours.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Busy { .. } | Self::Slow { .. } | Self::Failed { .. }
        )
    }
}

/// A password that is missing, or a way to sign in that is not known here.
fn is_about_credentials(why: &str) -> bool {
    why.contains("password missing") || why.contains("authentication")
}

/// What the server said, in one line and without details: those repeat what is stored.
pub(crate) fn told(error: &PostgresError) -> String {
    match error.as_db_error() {
        Some(said) => {
            let message = said.message().replace(['\n', '\r'], " ");
            format!("{message} ({})", said.code().code())
        }
        None => cocode_wire::chain(error),
    }
}
