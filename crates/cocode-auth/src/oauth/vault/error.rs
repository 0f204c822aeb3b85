//! Why credentials cannot be read or stored. No message contains any.

use std::path::PathBuf;
use std::process;
use std::time::Duration;

use crate::file::FileError;
use crate::secret::InvalidSecretName;
use crate::store::{MAX_SECRET_BYTES, StoreError};

/// Why credentials cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The keyring or the file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else is using the credentials, and does not end.
    #[error(
        "waited {} seconds for {}, which is signing in or renewing the credentials for {url} (it \
         holds `{}`): try again, or end it", after.as_secs(), holder_name(*holder), path.display()
    )]
    Busy {
        /// The server.
        url: String,
        /// The lock file.
        path: PathBuf,
        /// The process that holds it, if it said so.
        holder: Option<u32>,
        /// How long was waited.
        after: Duration,
    },
    /// Somebody who does not know our lock changed the record after it was read. Nothing was stored.
    #[error(
        "the credentials for {url} were changed by somebody else, perhaps on another machine that \
         shares the directory: try again"
    )]
    Conflict {
        /// The server.
        url: String,
    },
    /// It is no record, or that of another server.
    #[error(
        "the stored credentials for {what} are damaged (at column {column}): sign out there to \
         remove them, and sign in again"
    )]
    Damaged {
        /// The server, or the name of the record if it is not known.
        what: String,
        /// Where reading stopped.
        column: usize,
    },
    /// A later version of the program wrote it.
    #[error(
        "the stored credentials for {what} have version {version}, written by a newer cocode: use \
         that one, or sign out there and sign in again"
    )]
    NewerVersion {
        /// The server, or the name of the record if it is not known.
        what: String,
        /// The version it has.
        version: u64,
    },
    /// No store is sure to take it.
    #[error(
        "the credentials for {url} are {length} bytes long, and no more than {MAX_SECRET_BYTES} \
         can be stored: the tokens of its authorization server are too long"
    )]
    TooLong {
        /// The server.
        url: String,
        /// How long the record is.
        length: usize,
    },
    /// It cannot be put into words.
    #[error("the credentials for {url} cannot be written")]
    Unwritable {
        /// The server.
        url: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// No name can be made of the address.
    #[error("credentials for {url} cannot be named")]
    Name {
        /// The server.
        url: String,
        /// Why.
        #[source]
        source: InvalidSecretName,
    },
    /// The program is ending, or failed within.
    #[error("storing the credentials for {url} was interrupted")]
    Interrupted {
        /// The server.
        url: String,
    },
}

impl From<FileError> for VaultError {
    fn from(error: FileError) -> Self {
        Self::Store(error.into())
    }
}

fn holder_name(holder: Option<u32>) -> String {
    match holder {
        Some(pid) if pid == process::id() => "another part of this process".to_owned(),
        Some(pid) => format!("process {pid}"),
        None => "another process".to_owned(),
    }
}
