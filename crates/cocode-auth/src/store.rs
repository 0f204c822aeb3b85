//! Where secrets are kept: the keyring of the system, or a private file where there is none.
//!
//! A name is kept in one place, the one where it was set last. So a secret in the file is never
//! older than one of the same name in the keyring, and is the one that counts.

mod exchange;

use std::fmt;
use std::path::PathBuf;

use crate::file::{FileError, FileKind, SecretFile};
use crate::keyring::{KIND, Keyring, KeyringError, Service};
use crate::secret::{Secret, SecretName};

pub(crate) use exchange::{Exchange, Readable};

/// The longest secret that is kept.
pub const MAX_SECRET_BYTES: usize = 64 * 1024;

/// Which store the configuration asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreChoice {
    /// The keyring if there is one, else the file.
    #[default]
    Auto,
    /// The keyring only.
    Keyring,
    /// The file only.
    File,
}

/// A place for secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The keyring of the system.
    Keyring,
    /// The file of secrets.
    File,
}

/// What a store needs to know; nothing is read from the environment.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Which store to use.
    pub choice: StoreChoice,
    /// The directory for the file of secrets, made with mode 0700 when it is first needed.
    pub directory: PathBuf,
    /// The D-Bus session bus, see [`session_bus_address`](crate::session_bus_address).
    pub session_bus: Option<String>,
}

/// The store of secrets. Making one touches nothing.
#[derive(Debug, Clone)]
pub struct SecretStore {
    choice: StoreChoice,
    file: SecretFile,
    keyring: Keyring,
}

/// A secret that a store has, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSecret {
    /// What it is called.
    pub name: SecretName,
    /// Where it is.
    pub place: Place,
}

/// Which store is used, and why.
#[derive(Debug)]
pub struct StoreDescription {
    /// Where secrets are put.
    pub place: Place,
    /// The file of secrets, also if another place is used.
    pub file: PathBuf,
    /// What the choice was.
    pub choice: StoreChoice,
    /// Why the keyring cannot be used, if it was tried.
    pub keyring_error: Option<KeyringError>,
}

/// Why a store failed. No message contains a secret.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The keyring was asked for, or has the secret, and cannot be used.
    #[error("the system keyring cannot be used (start or unlock it, or choose the file store)")]
    Keyring(#[from] KeyringError),
    /// The file of secrets cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// An empty secret is always a mistake.
    #[error("the value for the secret `{0}` is empty")]
    Empty(SecretName),
    /// No token is that long.
    #[error("the value for the secret `{0}` is longer than {MAX_SECRET_BYTES} bytes")]
    TooLong(SecretName),
}

impl SecretStore {
    /// A store by these options.
    pub fn new(options: StoreOptions) -> Self {
        Self::of(FileKind::Secrets, Service::Secrets, options)
    }

    /// A store beside it for what signing in brings. Neither shows what the other holds.
    pub(crate) fn for_credentials(options: StoreOptions) -> Self {
        Self::of(FileKind::Credentials, Service::Credentials, options)
    }

    fn of(kind: FileKind, service: Service, options: StoreOptions) -> Self {
        let StoreOptions {
            choice,
            directory,
            session_bus,
        } = options;
        Self {
            choice,
            file: SecretFile::new(kind, directory),
            keyring: Keyring::new(service, session_bus),
        }
    }

    /// Looks a secret up.
    pub async fn get(&self, name: &SecretName) -> Result<Option<Secret>, StoreError> {
        match self.choice {
            StoreChoice::File => Ok(self.file.read().await?.secret(name).cloned()),
            StoreChoice::Keyring => Ok(self.keyring.open().await?.get(name).await?),
            StoreChoice::Auto => {
                let content = self.file.read().await?;
                if let Some(secret) = content.secret(name) {
                    return Ok(Some(secret.clone()));
                }
                match self.keyring.open().await {
                    Ok(keyring) => Ok(keyring.get(name).await?),
                    Err(error) if content.is_in_keyring(name) => Err(error.into()),
                    Err(_) => Ok(None),
                }
            }
        }
    }

    /// Keeps a secret, in place of an older one of that name, and says where it was put.
    pub async fn set(&self, name: &SecretName, secret: &Secret) -> Result<Place, StoreError> {
        check(name, secret)?;
        let keyring = match self.choice {
            StoreChoice::File => None,
            StoreChoice::Keyring => Some(self.keyring.open().await?),
            StoreChoice::Auto => self.keyring.open().await.ok(),
        };
        if let Some(keyring) = keyring {
            // Before the keyring changes: a note that cannot be made is an error without effects.
            self.file.read().await?;
            keyring.set(name, secret).await?;
            let noted = name.clone();
            self.file
                .update(move |content| content.note_in_keyring(noted))
                .await?;
            return Ok(Place::Keyring);
        }
        let (name, secret) = (name.clone(), secret.clone());
        self.file
            .update(move |content| {
                content.keep(name, secret);
                true
            })
            .await?;
        Ok(Place::File)
    }

    /// Removes a secret from all places that the choice allows. Says whether there was one.
    pub async fn remove(&self, name: &SecretName) -> Result<bool, StoreError> {
        let content = self.file.read().await?;
        let from_keyring = match self.choice {
            StoreChoice::File => false,
            StoreChoice::Keyring => self.keyring.open().await?.remove(name).await?,
            StoreChoice::Auto => match self.keyring.open().await {
                Ok(keyring) => keyring.remove(name).await?,
                // It is there, out of reach: to say that it is gone would be wrong.
                Err(error) if content.is_in_keyring(name) => return Err(error.into()),
                Err(_) => false,
            },
        };
        let mut from_file = false;
        if content.secret(name).is_some() || content.is_in_keyring(name) {
            let (choice, name) = (self.choice, name.clone());
            from_file = self
                .file
                .update(move |content| match choice {
                    StoreChoice::File => content.remove_from_file(&name),
                    StoreChoice::Keyring => content.remove_note(&name),
                    StoreChoice::Auto => {
                        content.remove_note(&name) | content.remove_from_file(&name)
                    }
                })
                .await?;
        }
        Ok(from_keyring || from_file)
    }

    /// The names of all secrets that were set through a store in this directory, in order. Asks no
    /// keyring.
    pub async fn list(&self) -> Result<Vec<StoredSecret>, StoreError> {
        let content = self.file.read().await?;
        let mut secrets = Vec::new();
        if self.choice != StoreChoice::Keyring {
            secrets.extend(content.names_in_file().map(stored(Place::File)));
        }
        if self.choice != StoreChoice::File {
            secrets.extend(content.names_in_keyring().map(stored(Place::Keyring)));
        }
        secrets.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(secrets)
    }

    /// Finds out which store is used now, and why. Changes nothing and asks nobody.
    pub async fn describe(&self) -> StoreDescription {
        let (place, keyring_error) = match self.choice {
            StoreChoice::File => (Place::File, None),
            StoreChoice::Keyring => (Place::Keyring, self.keyring.open().await.err()),
            StoreChoice::Auto => match self.keyring.open().await {
                Ok(_) => (Place::Keyring, None),
                Err(error) => (Place::File, Some(error)),
            },
        };
        StoreDescription {
            place,
            file: self.file.path(),
            choice: self.choice,
            keyring_error,
        }
    }
}

fn check(name: &SecretName, secret: &Secret) -> Result<(), StoreError> {
    match secret.expose().len() {
        0 => Err(StoreError::Empty(name.clone())),
        length if length > MAX_SECRET_BYTES => Err(StoreError::TooLong(name.clone())),
        _ => Ok(()),
    }
}

fn stored(place: Place) -> impl Fn(&SecretName) -> StoredSecret {
    move |name| StoredSecret {
        name: name.clone(),
        place,
    }
}

impl fmt::Display for StoreDescription {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::File => write!(formatter, "file {}, because ", self.file.display())?,
            Place::Keyring => write!(formatter, "system keyring ({KIND}), because ")?,
        }
        match (self.choice, &self.keyring_error) {
            (StoreChoice::File | StoreChoice::Keyring, None) => {
                write!(formatter, "the configuration says so")
            }
            (StoreChoice::File | StoreChoice::Keyring, Some(error)) => {
                write!(
                    formatter,
                    "the configuration says so, but it cannot be used: {error}"
                )
            }
            (StoreChoice::Auto, None) => write!(formatter, "it is there and answers"),
            (StoreChoice::Auto, Some(error @ (KeyringError::NoBus | KeyringError::NoService))) => {
                write!(formatter, "{error}")
            }
            (StoreChoice::Auto, Some(error)) => {
                write!(formatter, "the system keyring cannot be used: {error}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(
        place: Place,
        choice: StoreChoice,
        keyring_error: Option<KeyringError>,
        expected: &str,
    ) {
        let description = StoreDescription {
            place,
            file: "secrets.json".into(),
            choice,
            keyring_error,
        };
        assert_eq!(description.to_string(), expected);
    }

    #[test]
    fn descriptions_say_what_is_used_and_why() {
        check(
            Place::File,
            StoreChoice::Auto,
            Some(KeyringError::NoService),
            "file secrets.json, because no Secret Service answers on D-Bus",
        );
        check(
            Place::File,
            StoreChoice::Auto,
            Some(KeyringError::NoDefault),
            "file secrets.json, because the system keyring cannot be used: it has no default \
             keyring yet",
        );
        check(
            Place::File,
            StoreChoice::File,
            None,
            "file secrets.json, because the configuration says so",
        );
        check(
            Place::Keyring,
            StoreChoice::Keyring,
            Some(KeyringError::NoBus),
            &format!(
                "system keyring ({KIND}), because the configuration says so, but it cannot be \
                 used: there is no D-Bus session bus"
            ),
        );
    }
}
