//! Keeps the records of MCP servers for all processes of a user. Knows nothing of what is in them.
//!
//! A record is in the keyring of the system or in `credentials.json`, by the rules of the store of
//! secrets, under a name that is made of the address of its server. Whoever changes one does it in a
//! [`Transaction`], which shuts out all other tasks and processes: so of forty that find an expired
//! token, one gets a new one and the others find that.
//!
//! Those who wait for a change, such as a server that needs somebody to sign in, ask for its
//! [`Stamp`]: 32 bytes at the start of the lock file of the server, `locks/oauth-….lock`, which every
//! change exchanges for others. To look at it needs neither the keyring nor a lock. A process that is
//! killed between the change and the stamp leaves its name in the lock file, and the next one that
//! takes the lock makes up for the stamp.

mod error;
mod transaction;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;
use url::Url;

use super::http::shown;
use super::lock::{Locks, Stamp, WAIT_LIMIT};
use super::record::{Record, RecordError, canonical_url};
use crate::secret::{Secret, SecretName};
use crate::store::{Place, Readable, SecretStore, StoreDescription, StoreOptions};

pub use error::VaultError;
pub use transaction::Transaction;

/// The directory for locks, in the one for credentials.
const LOCK_DIRECTORY: &str = "locks";

/// How many digits of the hash of an address make a name.
const ID_LENGTH: usize = 32;

/// The store of credentials. Making one touches nothing, and copies are cheap.
#[derive(Clone)]
pub struct Vault {
    inner: Arc<Inner>,
}

struct Inner {
    store: SecretStore,
    locks: Locks,
    /// Changes that finish also when nobody waits for them any more.
    changes: TaskTracker,
}

/// A record and where it is.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What is kept.
    pub record: Record,
    /// Where.
    pub place: Place,
}

/// Records that cannot be read, for one reason.
#[derive(Debug)]
pub struct Unreadable {
    /// Which ones, see [`Vault::id`].
    pub ids: Vec<String>,
    /// Why.
    pub error: VaultError,
}

/// All records of a vault.
#[derive(Debug, Default)]
pub struct Listing {
    /// Those that can be read, in the order of their addresses.
    pub records: Vec<Listed>,
    /// The others.
    pub unreadable: Vec<Unreadable>,
}

impl Vault {
    /// The vault in the directory of these options, beside the secrets.
    pub fn new(options: StoreOptions) -> Self {
        Self::with_wait_limit(options, WAIT_LIMIT)
    }

    /// A vault whose transactions wait as long as this for others.
    pub fn with_wait_limit(options: StoreOptions, limit: Duration) -> Self {
        let locks = Locks::new(options.directory.join(LOCK_DIRECTORY), limit);
        Self {
            inner: Arc::new(Inner {
                store: SecretStore::for_credentials(options),
                locks,
                changes: TaskTracker::new(),
            }),
        }
    }

    /// What the record of a server is called where its address must not be: 32 hexadecimal digits.
    pub fn id(url: &Url) -> String {
        let digest = Sha256::digest(canonical_url(url).as_str());
        let digits = digest.iter().flat_map(|byte| {
            [byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0'))
        });
        digits.take(ID_LENGTH).collect()
    }

    /// The record of a server, as it is now.
    pub async fn read(&self, url: &Url) -> Result<Option<Record>, VaultError> {
        let entry = Entry::of(url)?;
        let text = self.inner.store.get(&entry.name).await?;
        text.map(|text| entry.parse(&text)).transpose()
    }

    /// Shuts out all others from the record of a server, in this process and elsewhere, and reads
    /// it. Waits for those who were first; dropping the future leaves the queue.
    pub async fn transaction(&self, url: &Url) -> Result<Transaction, VaultError> {
        Transaction::begin(self.clone(), Entry::of(url)?).await
    }

    /// Forgets a server, also if its record is damaged. Says whether there was one.
    pub async fn remove(&self, url: &Url) -> Result<bool, VaultError> {
        let entry = Entry::of(url)?;
        let held = self.lock(&entry).await?;
        let (store, name) = (self.inner.store.clone(), entry.name.clone());
        let removing = self.change(held, async move { store.remove(&name).await });
        match removing.await {
            Ok(outcome) => Ok(outcome?),
            Err(error) => {
                tracing::debug!(%error, "a change of credentials was interrupted");
                Err(entry.interrupted())
            }
        }
    }

    /// All records. Those that cannot be read stand beside.
    pub async fn list(&self) -> Result<Listing, VaultError> {
        let Readable {
            secrets,
            unreadable,
        } = self.inner.store.read_all().await?;
        let mut listing = Listing::default();
        for (name, place, text) in secrets {
            match parse_listed(&name, &text) {
                Ok(record) => listing.records.push(Listed { record, place }),
                Err(error) => listing.unreadable.push(Unreadable {
                    ids: vec![id_in(&name)],
                    error,
                }),
            }
        }
        for (names, error) in unreadable {
            listing.unreadable.push(Unreadable {
                ids: names.iter().map(id_in).collect(),
                error: error.into(),
            });
        }
        listing
            .records
            .sort_by(|left, right| left.record.url.cmp(&right.record.url));
        Ok(listing)
    }

    /// Which store takes what is stored first now, and why.
    pub async fn describe(&self) -> StoreDescription {
        self.inner.store.describe().await
    }

    /// The stamp that the record of a server has now. Take it before reading the record: what
    /// changes between is then noticed.
    pub async fn stamp(&self, url: &Url) -> Result<Stamp, VaultError> {
        let entry = Entry::of(url)?;
        let stamp = self.inner.locks.stamp(&entry.lock_name()).await;
        stamp.map_err(VaultError::from)
    }

    /// Whether the record of a server may have changed. Cheap enough to be asked every second.
    pub async fn changed_since(&self, url: &Url, stamp: &Stamp) -> Result<bool, VaultError> {
        Ok(self.stamp(url).await? != *stamp)
    }

    /// Waits until all changes that were begun are stored, for those who end the process.
    pub async fn settle(&self) {
        self.inner.changes.close();
        self.inner.changes.wait().await;
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Vault")
            .field("store", &self.inner.store)
            .finish_non_exhaustive()
    }
}

/// What a server is called here.
#[derive(Clone, Debug)]
struct Entry {
    url: Url,
    name: SecretName,
}

impl Entry {
    fn of(url: &Url) -> Result<Self, VaultError> {
        let url = canonical_url(url);
        let name = format!("{NAME_PREFIX}{}", Vault::id(&url));
        match name.parse() {
            Ok(name) => Ok(Self { url, name }),
            Err(source) => Err(VaultError::Name {
                url: shown(&url),
                source,
            }),
        }
    }

    fn lock_name(&self) -> String {
        format!("oauth-{}", id_in(&self.name))
    }

    fn parse(&self, text: &Secret) -> Result<Record, VaultError> {
        let record =
            Record::parse(text.expose()).map_err(|error| unreadable(shown(&self.url), error))?;
        // Tokens go to the server that they are for, whatever the name says.
        if record.url == self.url.as_str() {
            Ok(record)
        } else {
            Err(VaultError::Damaged {
                what: shown(&self.url),
                column: 0,
            })
        }
    }

    fn interrupted(&self) -> VaultError {
        VaultError::Interrupted {
            url: shown(&self.url),
        }
    }
}

const NAME_PREFIX: &str = "oauth:";

fn id_in(name: &SecretName) -> String {
    let name = name.as_str();
    name.strip_prefix(NAME_PREFIX).unwrap_or(name).to_owned()
}

fn parse_listed(name: &SecretName, text: &Secret) -> Result<Record, VaultError> {
    let damaged = |error| unreadable(name.to_string(), error);
    let record = Record::parse(text.expose()).map_err(damaged)?;
    match Url::parse(&record.url) {
        Ok(url) if id_in(name) == Vault::id(&url) => Ok(record),
        _ => Err(VaultError::Damaged {
            what: name.to_string(),
            column: 0,
        }),
    }
}

fn unreadable(what: String, error: RecordError) -> VaultError {
    match error {
        RecordError::NewerVersion(version) => VaultError::NewerVersion { what, version },
        RecordError::Malformed { column } => VaultError::Damaged { what, column },
    }
}
