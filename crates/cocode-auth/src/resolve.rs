//! From a reference to its secret, when a server is contacted and not before. Nothing is cached.

use crate::command::{self, CommandError, CommandSettings};
use crate::reference::Reference;
use crate::secret::{Secret, SecretName};
use crate::store::{SecretStore, StoreError};

/// Looks up what references stand for.
#[derive(Debug, Clone)]
pub struct References {
    store: SecretStore,
    commands: CommandSettings,
}

/// Why a reference leads to no secret. The messages name the reference and the way out, and no
/// secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The store does not have it.
    #[error("`keyring:{name}` is not set; looked in: {looked_in}. Run `cocode secret set {name}`")]
    NotSet {
        /// The name that was looked for.
        name: SecretName,
        /// The store, and why it is that one.
        looked_in: String,
    },
    /// The store failed.
    #[error("`keyring:{name}` cannot be looked up")]
    Store {
        /// The name that was looked for.
        name: SecretName,
        /// What happened.
        #[source]
        source: StoreError,
    },
    /// The command gave no secret.
    #[error("`{reference}` gave no secret")]
    Command {
        /// The reference, whose text shows no more than the program.
        reference: Reference,
        /// What happened.
        #[source]
        source: CommandError,
    },
}

impl References {
    /// Looks in this store, and runs commands by these settings.
    pub fn new(store: SecretStore, commands: CommandSettings) -> Self {
        Self { store, commands }
    }

    /// The secret that a reference stands for. A command is run each time.
    ///
    /// Cancel safe: dropping the future kills a running command.
    pub async fn resolve(&self, reference: &Reference) -> Result<Secret, SecretError> {
        match reference {
            Reference::Keyring(name) => match self.store.get(name).await {
                Ok(Some(secret)) => Ok(secret),
                Ok(None) => Err(SecretError::NotSet {
                    name: name.clone(),
                    looked_in: self.store.describe().await.to_string(),
                }),
                Err(source) => Err(SecretError::Store {
                    name: name.clone(),
                    source,
                }),
            },
            Reference::Command(line) => {
                command::run(line, &self.commands)
                    .await
                    .map_err(|source| SecretError::Command {
                        reference: reference.clone(),
                        source,
                    })
            }
        }
    }
}
