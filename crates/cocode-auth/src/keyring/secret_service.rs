//! The Secret Service on D-Bus, as GNOME Keyring and others offer it.
//!
//! Secrets cross the bus encrypted, so no trace of messages can show them. Waiting is done by
//! dropping futures, so a service that hangs leaves no thread behind.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use secret_service::{Collection, EncryptionType, Error, Item, SecretService};
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::{KeyringError, PROBE_LIMIT, Service, UNLOCK_LIMIT};
use crate::secret::{Secret, SecretName};

/// What this keyring is called.
pub(crate) const KIND: &str = "Secret Service";

/// How long one step may take when nobody is asked anything.
const STEP_LIMIT: Duration = Duration::from_secs(10);

const CONTENT_TYPE: &str = "text/plain; charset=utf8";

/// What the bus says of a name that nobody has and nobody can be started for.
const NOBODY: [&str; 2] = [
    "org.freedesktop.DBus.Error.ServiceUnknown",
    "org.freedesktop.DBus.Error.NameHasNoOwner",
];
const CANNOT_START: &str = "org.freedesktop.DBus.Error.Spawn.";

/// Where a Secret Service may be.
#[derive(Debug, Clone)]
pub(crate) struct Keyring {
    service: Service,
    session_bus: Option<String>,
}

impl Keyring {
    pub(crate) fn new(service: Service, session_bus: Option<String>) -> Self {
        Self {
            service,
            session_bus,
        }
    }

    /// Finds out whether the service is there and fit for use. Asks nobody anything.
    pub(crate) async fn open(&self) -> Result<OpenKeyring, KeyringError> {
        let address = self.session_bus.as_deref().ok_or(KeyringError::NoBus)?;
        let probing = async {
            let connection = zbus::connection::Builder::address(address)
                .map_err(|error| KeyringError::BusUnreachable(error.into()))?
                .build()
                .await
                .map_err(|error| KeyringError::BusUnreachable(error.into()))?;
            let service = SecretService::connect_with_existing(EncryptionType::Dh, connection)
                .await
                .map_err(failed("open a session"))?;
            service
                .get_default_collection()
                .await
                .map_err(failed("find the default keyring"))?;
            Ok(OpenKeyring {
                marks: self.service,
                service,
            })
        };
        timeout(PROBE_LIMIT, Box::pin(probing))
            .await
            .unwrap_or(Err(KeyringError::TimedOut {
                step: "answer",
                after: PROBE_LIMIT,
            }))
    }
}

/// A Secret Service that answers.
pub(crate) struct OpenKeyring {
    marks: Service,
    service: SecretService<'static>,
}

impl OpenKeyring {
    pub(crate) async fn get(&self, name: &SecretName) -> Result<Option<Secret>, KeyringError> {
        let items = self.find(name).await?;
        let Some(item) = items.first() else {
            return Ok(None);
        };
        let bytes = step("give the secret", STEP_LIMIT, item.get_secret()).await?;
        let bytes = Zeroizing::new(bytes);
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Some(Secret::new(text))),
            // What was found instead must not be told.
            Err(_) => Err(KeyringError::NotText),
        }
    }

    pub(crate) async fn set(&self, name: &SecretName, secret: &Secret) -> Result<(), KeyringError> {
        let secret = secret.expose().as_bytes();
        let items = self.find(name).await?;
        let Some((first, others)) = items.split_first() else {
            let collection = self.default_collection().await?;
            let label = format!("{}: {name}", self.marks.as_str());
            // Replaces, should another process have been quicker.
            let created = Box::pin(collection.create_item(
                &label,
                attributes(self.marks, name),
                secret,
                true,
                CONTENT_TYPE,
            ));
            return step("take the secret", STEP_LIMIT, created).await.map(drop);
        };
        let taken = first.set_secret(secret, CONTENT_TYPE);
        step("take the secret", STEP_LIMIT, taken).await?;
        for other in others {
            step("remove a double", STEP_LIMIT, other.delete()).await?;
        }
        Ok(())
    }

    /// Says whether there was something to remove.
    pub(crate) async fn remove(&self, name: &SecretName) -> Result<bool, KeyringError> {
        let items = self.find(name).await?;
        for item in &items {
            step("remove the secret", STEP_LIMIT, item.delete()).await?;
        }
        Ok(!items.is_empty())
    }

    /// All items of a name, unlocked. Tools that mark items with more than we do may have made
    /// several.
    async fn find(&self, name: &SecretName) -> Result<Vec<Item<'_>>, KeyringError> {
        let searching = Box::pin(self.service.search_items(attributes(self.marks, name)));
        let found = step("search", STEP_LIMIT, searching).await?;
        if !found.locked.is_empty() {
            let locked: Vec<&Item<'_>> = found.locked.iter().collect();
            let unlocking = Box::pin(self.service.unlock_all(&locked));
            step("unlock", UNLOCK_LIMIT, unlocking).await?;
        }
        let mut items = found.unlocked;
        items.extend(found.locked);
        Ok(items)
    }

    async fn default_collection(&self) -> Result<Collection<'_>, KeyringError> {
        let finding = self.service.get_default_collection();
        let collection = step("find the default keyring", STEP_LIMIT, finding).await?;
        if step("tell its state", STEP_LIMIT, collection.is_locked()).await? {
            step("unlock", UNLOCK_LIMIT, Box::pin(collection.unlock())).await?;
        }
        Ok(collection)
    }
}

impl fmt::Debug for OpenKeyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenKeyring")
            .finish_non_exhaustive()
    }
}

/// The marks that many tools use, so that what `secret-tool` stores can be found.
fn attributes(service: Service, name: &SecretName) -> HashMap<&str, &str> {
    HashMap::from([("service", service.as_str()), ("username", name.as_str())])
}

async fn step<T>(
    step: &'static str,
    limit: Duration,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, KeyringError> {
    match timeout(limit, work).await {
        Ok(outcome) => outcome.map_err(failed(step)),
        Err(_) => Err(KeyringError::TimedOut { step, after: limit }),
    }
}

fn failed(step: &'static str) -> impl FnOnce(Error) -> KeyringError {
    move |error| match error {
        Error::Unavailable => KeyringError::NoService,
        Error::NoResult => KeyringError::NoDefault,
        Error::Locked | Error::Prompt | Error::PromptDisconnected => KeyringError::Locked,
        Error::Zbus(zbus::Error::MethodError(name, _, _))
            if NOBODY.contains(&name.as_str()) || name.starts_with(CANNOT_START) =>
        {
            KeyringError::NoService
        }
        error => KeyringError::Failed {
            step,
            source: error.into(),
        },
    }
}
