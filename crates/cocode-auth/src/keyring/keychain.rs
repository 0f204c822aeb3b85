//! The Keychain of macOS. Its calls block while a person is asked, so each runs on a thread of its
//! own and is waited for only so long.

use std::thread;
use std::time::Duration;

use security_framework::base::Error;
use security_framework::passwords::{
    delete_generic_password, get_generic_password, set_generic_password,
};
use tokio::sync::oneshot;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::{KeyringError, PROBE_LIMIT, Service, UNLOCK_LIMIT};
use crate::secret::{Secret, SecretName};

/// What this keyring is called.
pub(crate) const KIND: &str = "Keychain";

/// An account that no secret can have, because names have no spaces.
const NOBODY: &str = "is anybody there";

/// The words of Security.framework for what is no failure of ours.
const ITEM_NOT_FOUND: i32 = -25300;
const NO_DEFAULT_KEYCHAIN: i32 = -25307;
const INTERACTION_NOT_ALLOWED: i32 = -25308;
const AUTHORIZATION_FAILED: i32 = -25293;
const USER_CANCELED: i32 = -128;

/// The user's Keychain.
#[derive(Debug, Clone)]
pub(crate) struct Keyring {
    service: Service,
}

impl Keyring {
    /// The Keychain is not on D-Bus.
    pub(crate) fn new(service: Service, _session_bus: Option<String>) -> Self {
        Self { service }
    }

    /// Finds out whether the Keychain is there and fit for use.
    pub(crate) async fn open(&self) -> Result<OpenKeyring, KeyringError> {
        let service = self.service;
        on_thread("answer", PROBE_LIMIT, move || {
            found(get_generic_password(service.as_str(), NOBODY).map(drop))
        })
        .await?;
        Ok(OpenKeyring { service })
    }
}

/// A Keychain that answers.
#[derive(Debug)]
pub(crate) struct OpenKeyring {
    service: Service,
}

impl OpenKeyring {
    pub(crate) async fn get(&self, name: &SecretName) -> Result<Option<Secret>, KeyringError> {
        let (service, name) = (self.service, name.clone());
        let bytes = on_thread("give the secret", UNLOCK_LIMIT, move || {
            found(get_generic_password(service.as_str(), name.as_str()).map(Zeroizing::new))
        })
        .await?;
        match bytes.as_deref().map(|bytes| std::str::from_utf8(bytes)) {
            None => Ok(None),
            Some(Ok(text)) => Ok(Some(Secret::new(text))),
            // What was found instead must not be told.
            Some(Err(_)) => Err(KeyringError::NotText),
        }
    }

    pub(crate) async fn set(&self, name: &SecretName, secret: &Secret) -> Result<(), KeyringError> {
        let (service, name, secret) = (self.service, name.clone(), secret.clone());
        on_thread("take the secret", UNLOCK_LIMIT, move || {
            set_generic_password(service.as_str(), name.as_str(), secret.expose().as_bytes())
        })
        .await
    }

    /// Says whether there was something to remove.
    pub(crate) async fn remove(&self, name: &SecretName) -> Result<bool, KeyringError> {
        let (service, name) = (self.service, name.clone());
        let removed = on_thread("remove the secret", UNLOCK_LIMIT, move || {
            found(delete_generic_password(service.as_str(), name.as_str()))
        });
        Ok(removed.await?.is_some())
    }
}

fn found<T>(outcome: Result<T, Error>) -> Result<Option<T>, Error> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.code() == ITEM_NOT_FOUND => Ok(None),
        Err(error) => Err(error),
    }
}

async fn on_thread<T: Send + 'static>(
    step: &'static str,
    limit: Duration,
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, KeyringError> {
    let (sender, receiver) = oneshot::channel();
    // Not a thread of the runtime, which would wait for it at its end.
    thread::Builder::new()
        .name("keychain".to_owned())
        .spawn(move || {
            // Nobody waits any more if this fails.
            drop(sender.send(work()));
        })
        .map_err(|error| KeyringError::Failed {
            step,
            source: error.into(),
        })?;
    match timeout(limit, receiver).await {
        Ok(Ok(outcome)) => outcome.map_err(|error| failed(step, error)),
        Ok(Err(error)) => Err(KeyringError::Failed {
            step,
            source: error.into(),
        }),
        Err(_) => Err(KeyringError::TimedOut { step, after: limit }),
    }
}

fn failed(step: &'static str, error: Error) -> KeyringError {
    match error.code() {
        NO_DEFAULT_KEYCHAIN => KeyringError::NoDefault,
        INTERACTION_NOT_ALLOWED | AUTHORIZATION_FAILED | USER_CANCELED => KeyringError::Locked,
        _ => KeyringError::Failed {
            step,
            source: error.into(),
        },
    }
}
