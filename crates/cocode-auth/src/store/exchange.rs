//! What a store of credentials does beyond one of secrets: it replaces only what it expects to find,
//! leaves a thing where it is, and reads all that can be read.
//!
//! A refresh must not change where credentials are: a process without a keyring may be using them
//! out of the file. So they go to the keyring, or not, when they are stored first.

use super::{Place, SecretStore, StoreChoice, StoreError, check};
use crate::file::Content;
use crate::keyring::{KeyringError, OpenKeyring};
use crate::secret::{Secret, SecretName};

/// How an exchange ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exchange {
    /// The new secret is in this place.
    Done(Place),
    /// Something else is there than was expected, and still is.
    Unexpected,
}

/// All that a store holds, as far as it can be read.
#[derive(Debug, Default)]
pub(crate) struct Readable {
    pub(crate) secrets: Vec<(SecretName, Place, Secret)>,
    /// What cannot be read, by the reason.
    pub(crate) unreadable: Vec<(Vec<SecretName>, StoreError)>,
}

impl SecretStore {
    /// Puts a secret in the place of the expected one, or where there is none.
    ///
    /// Nobody can come between in the file. In the keyring others must be kept out by a lock.
    pub(crate) async fn exchange(
        &self,
        name: &SecretName,
        expected: Option<&Secret>,
        new: &Secret,
    ) -> Result<Exchange, StoreError> {
        check(name, new)?;
        // Before anything changes: a note that cannot be made is an error without effects.
        let content = self.file.read().await?;
        if let Some(keyring) = self.keyring_for(name, &content).await? {
            let found = keyring.get(name).await?;
            if !is_same(found.as_ref(), expected) {
                return Ok(Exchange::Unexpected);
            }
            keyring.set(name, new).await?;
            let noted = name.clone();
            self.file
                .update(move |content| content.note_in_keyring(noted))
                .await?;
            return Ok(Exchange::Done(Place::Keyring));
        }
        let (choice, name) = (self.choice, name.clone());
        let (expected, new) = (expected.cloned(), new.clone());
        let exchanged = self
            .file
            .update(move |content| {
                let moved = choice == StoreChoice::Auto && content.is_in_keyring(&name);
                if moved || !is_same(content.secret(&name), expected.as_ref()) {
                    return false;
                }
                content.keep(name, new);
                true
            })
            .await?;
        Ok(if exchanged {
            Exchange::Done(Place::File)
        } else {
            Exchange::Unexpected
        })
    }

    /// Removes a secret from everywhere, if it is the expected one. Says whether it was.
    ///
    /// Others must be kept out by a lock.
    pub(crate) async fn remove_expected(
        &self,
        name: &SecretName,
        expected: Option<&Secret>,
    ) -> Result<bool, StoreError> {
        if !is_same(self.get(name).await?.as_ref(), expected) {
            return Ok(false);
        }
        self.remove(name).await?;
        Ok(true)
    }

    /// Notes that a secret is in the keyring, where it was just found. Who put it there may not have
    /// lived to say so.
    pub(crate) async fn note_found(&self, name: &SecretName) -> Result<(), StoreError> {
        let is_unknown = |content: &Content, name: &SecretName| {
            content.secret(name).is_none() && !content.is_in_keyring(name)
        };
        if self.choice == StoreChoice::File || !is_unknown(&self.file.read().await?, name) {
            return Ok(());
        }
        let name = name.clone();
        self.file
            .update(move |content| is_unknown(content, &name) && content.note_in_keyring(name))
            .await?;
        Ok(())
    }

    /// Reads all that was put here. What cannot be read does not keep the rest from being read.
    pub(crate) async fn read_all(&self) -> Result<Readable, StoreError> {
        let content = self.file.read().await?;
        let mut all = Readable::default();
        if self.choice != StoreChoice::Keyring {
            all.secrets
                .extend(content.names_in_file().filter_map(|name| {
                    let secret = content.secret(name)?;
                    Some((name.clone(), Place::File, secret.clone()))
                }));
        }
        let mut names = content.names_in_keyring().cloned();
        if self.choice == StoreChoice::File || content.names_in_keyring().next().is_none() {
            return Ok(all);
        }
        let keyring = match self.keyring.open().await {
            Ok(keyring) => keyring,
            Err(error) => {
                all.unreadable.push((names.collect(), error.into()));
                return Ok(all);
            }
        };
        while let Some(name) = names.next() {
            match keyring.get(&name).await {
                Ok(Some(secret)) => all.secrets.push((name, Place::Keyring, secret)),
                // Whoever removed it did not live to take the note away.
                Ok(None) => {}
                Err(error @ KeyringError::NotText) => {
                    all.unreadable.push((vec![name], error.into()));
                }
                // The next would fail in the same way, perhaps after asking the user again.
                Err(error) => {
                    let left = std::iter::once(name).chain(names).collect();
                    all.unreadable.push((left, error.into()));
                    break;
                }
            }
        }
        Ok(all)
    }

    /// The keyring, if a secret is there or is to be put there.
    async fn keyring_for(
        &self,
        name: &SecretName,
        content: &Content,
    ) -> Result<Option<OpenKeyring>, StoreError> {
        match self.choice {
            StoreChoice::File => Ok(None),
            StoreChoice::Keyring => Ok(Some(self.keyring.open().await?)),
            StoreChoice::Auto if content.secret(name).is_some() => Ok(None),
            StoreChoice::Auto => match self.keyring.open().await {
                Ok(keyring) => Ok(Some(keyring)),
                // In the file it would be a second copy, and soon the other would be an old one.
                Err(error) if content.is_in_keyring(name) => Err(error.into()),
                Err(_) => Ok(None),
            },
        }
    }
}

fn is_same(found: Option<&Secret>, expected: Option<&Secret>) -> bool {
    found.map(Secret::expose) == expected.map(Secret::expose)
}
