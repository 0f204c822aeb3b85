//! Which store secrets and credentials are kept in, who decided that, and how it is told.

use cocode_auth::oauth::Vault;
use cocode_auth::{Place, SecretStore, StoreChoice, StoreDescription, StoreOptions};

use crate::args::govern::CredentialStoreArg;
use crate::error::CliError;
use crate::workspace::Workspace;

/// The store that `keyring:` names are kept in.
pub(crate) fn secrets(workspace: &Workspace) -> Result<SecretStore, CliError> {
    options(workspace).map(SecretStore::new)
}

/// The store of what signing in brings.
pub(crate) fn credentials(workspace: &Workspace) -> Result<Vault, CliError> {
    options(workspace).map(Vault::new)
}

/// What tells the stores of two workspaces apart.
pub(crate) fn identity(workspace: &Workspace) -> Result<String, CliError> {
    options(workspace).map(|options| format!("{options:?}"))
}

fn options(workspace: &Workspace) -> Result<StoreOptions, CliError> {
    let choice = match workspace.store {
        Some(given) => given.into(),
        None => match workspace.config()?.settings.credential_store.value {
            cocode_config::CredentialStore::Auto => StoreChoice::Auto,
            cocode_config::CredentialStore::Keyring => StoreChoice::Keyring,
            cocode_config::CredentialStore::File => StoreChoice::File,
        },
    };
    Ok(StoreOptions {
        choice,
        directory: workspace.places.state.clone(),
        session_bus: workspace.environment.session_bus.clone(),
    })
}

/// Which store is used, and why. The description knows the choice, but not who made it.
pub(crate) fn told(description: &StoreDescription, workspace: &Workspace) -> String {
    let text = description.to_string();
    if workspace.store.is_some() && description.choice != StoreChoice::Auto {
        return text.replace("the configuration says so", "`--credential-store` says so");
    }
    text
}

/// A place in one word, for scripts.
pub(crate) fn place_name(place: Place) -> &'static str {
    match place {
        Place::Keyring => "keyring",
        Place::File => "file",
    }
}

impl From<CredentialStoreArg> for StoreChoice {
    fn from(given: CredentialStoreArg) -> Self {
        match given {
            CredentialStoreArg::Auto => Self::Auto,
            CredentialStoreArg::Keyring => Self::Keyring,
            CredentialStoreArg::File => Self::File,
        }
    }
}
