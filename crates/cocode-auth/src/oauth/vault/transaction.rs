//! One change of one record, alone among all tasks and processes.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Entry, Vault, VaultError};
use crate::oauth::http::shown;
use crate::oauth::lock::{Held, LockError};
use crate::oauth::record::Record;
use crate::secret::Secret;
use crate::store::{Exchange, MAX_SECRET_BYTES, Place, StoreError};

/// The sole right to change the record of one server, until it is dropped.
///
/// A change that was begun is finished also when its future is dropped, and nobody else gets the
/// lock before that: tokens that an authorization server gave us once are not lost.
#[must_use = "the lock is free again as soon as this is dropped"]
pub struct Transaction {
    vault: Vault,
    entry: Entry,
    held: Arc<Held>,
    /// What is stored, as we know it.
    text: Option<Secret>,
    record: Option<Record>,
    /// A change whose future was dropped: what is stored is known again when it ends.
    left: Option<JoinHandle<()>>,
}

impl Vault {
    pub(super) async fn lock(&self, entry: &Entry) -> Result<Arc<Held>, VaultError> {
        let locks = &self.inner.locks;
        let held = locks.acquire(&entry.lock_name()).await;
        held.map(Arc::new).map_err(|error| match error {
            LockError::File(error) => error.into(),
            LockError::Busy { path, holder } => VaultError::Busy {
                url: shown(&entry.url),
                path,
                holder,
                after: locks.limit(),
            },
        })
    }

    /// Changes what a lock guards, and keeps the lock until that is done.
    pub(super) fn change<T: Send + 'static>(
        &self,
        held: Arc<Held>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.inner.changes.spawn(async move {
            let outcome = work.await;
            // Also after a failure: a keyring that answers too late may have taken it.
            if let Err(error) = held.change_stamp() {
                tracing::warn!(%error, "other processes will not notice changed credentials");
            }
            outcome
        })
    }
}

impl Transaction {
    pub(super) async fn begin(vault: Vault, entry: Entry) -> Result<Self, VaultError> {
        let held = vault.lock(&entry).await?;
        let mut transaction = Self {
            vault,
            entry,
            held,
            text: None,
            record: None,
            left: None,
        };
        transaction.re_read().await?;
        if transaction.text.is_some() {
            let store = &transaction.vault.inner.store;
            store.note_found(&transaction.entry.name).await?;
        }
        Ok(transaction)
    }

    /// The record as it was read or stored last.
    pub fn record(&self) -> Option<&Record> {
        self.record.as_ref()
    }

    /// Reads the record again: after a conflict, or where somebody may have changed it without a
    /// lock, before what they stored is thrown away.
    pub async fn re_read(&mut self) -> Result<Option<&Record>, VaultError> {
        self.settle().await;
        let text = self.vault.inner.store.get(&self.entry.name).await?;
        self.record = text
            .as_ref()
            .map(|text| self.entry.parse(text))
            .transpose()?;
        self.text = text;
        Ok(self.record())
    }

    /// Stores a record in place of the one that was read, and says where it is. Its address and its
    /// revision are set here.
    pub async fn commit(&mut self, mut record: Record) -> Result<Place, VaultError> {
        self.settle().await;
        record.url = self.entry.url.as_str().to_owned();
        record.revision = self.record().map_or(0, |record| record.revision) + 1;
        record.forget_oldest();
        let text = record.to_text().map_err(|source| VaultError::Unwritable {
            url: shown(&self.entry.url),
            source,
        })?;
        if text.expose().len() > MAX_SECRET_BYTES {
            return Err(VaultError::TooLong {
                url: shown(&self.entry.url),
                length: text.expose().len(),
            });
        }
        let (store, name) = (self.vault.inner.store.clone(), self.entry.name.clone());
        let (expected, new) = (self.text.clone(), text.clone());
        let exchanging = async move { store.exchange(&name, expected.as_ref(), &new).await };
        match self.change(exchanging).await? {
            Exchange::Done(place) => {
                self.text = Some(text);
                self.record = Some(record);
                Ok(place)
            }
            Exchange::Unexpected => Err(self.conflict()),
        }
    }

    /// Forgets the record that was read. Says whether there was one.
    pub async fn clear(&mut self) -> Result<bool, VaultError> {
        self.settle().await;
        let (store, name, expected) = (
            self.vault.inner.store.clone(),
            self.entry.name.clone(),
            self.text.clone(),
        );
        let removing = async move { store.remove_expected(&name, expected.as_ref()).await };
        if !self.change(removing).await? {
            return Err(self.conflict());
        }
        self.record = None;
        Ok(self.text.take().is_some())
    }

    /// Does the work of a change, to the end.
    async fn change<T: Send + 'static>(
        &mut self,
        work: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, VaultError> {
        let (sender, receiver) = oneshot::channel();
        let change = self.vault.change(Arc::clone(&self.held), async move {
            // Nobody waits any more if this fails.
            drop(sender.send(work.await));
        });
        self.left = Some(change);
        self.settle().await;
        match receiver.await {
            Ok(outcome) => Ok(outcome?),
            Err(_dropped) => Err(self.entry.interrupted()),
        }
    }

    /// Waits for a change that was begun.
    async fn settle(&mut self) {
        if let Some(change) = &mut self.left
            && let Err(error) = change.await
        {
            tracing::debug!(%error, "a change of credentials was interrupted");
        }
        self.left = None;
    }

    fn conflict(&self) -> VaultError {
        VaultError::Conflict {
            url: shown(&self.entry.url),
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Transaction")
            .field("url", &shown(&self.entry.url))
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}
