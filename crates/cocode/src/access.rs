//! Who may connect to a gateway: whether it has a way to tell, and where what it knows is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cocode_access::{
    AuditLedger, FileLedger, FileLedgerOptions, FileTokenStore, TokenStore, TokenStoreError,
};
use cocode_config::{Config, GatewayStore, Setting, SettingOrigin};

use crate::error::{CliError, Code};
use crate::workspace::{Workspace, with_problems};

/// Where tokens are kept, below what cocode keeps for itself.
const TOKENS_DIRECTORY: &str = "gateway";

/// Whether a gateway can tell who connects.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    has_tokens: bool,
    has_oauth: bool,
}

impl Access {
    /// What tokens and settings say now. An error, where they cannot be understood, or where the
    /// organization wants to know who connects and nobody could tell.
    pub(crate) async fn of(workspace: &Workspace) -> Result<Self, CliError> {
        let config = workspace.config()?;
        without_doubt(config)?;
        let tokens = token_store(workspace)?.list().await;
        let tokens = tokens.map_err(|error| token_trouble(&error))?;
        let access = Self {
            has_tokens: !tokens.is_empty(),
            has_oauth: config.settings.gateway.oauth.is_some(),
        };
        match config.authentication_required() {
            Some(required) if !access.is_asked() => Err(not_asked(&required)),
            _ => Ok(access),
        }
    }

    /// Whether clients have to say who they are.
    pub(crate) fn is_asked(&self) -> bool {
        self.has_tokens || self.has_oauth
    }
}

/// What was meant to keep somebody out, and cannot be understood, keeps everybody out.
fn without_doubt(config: &Config) -> Result<(), CliError> {
    let doubts: Vec<_> = config.gateway_doubts.iter().collect();
    if doubts.is_empty() {
        return Ok(());
    }
    let message = "the configuration may say who can use the gateway, and cannot be understood";
    let error = CliError::new(Code::InvalidConfig, message);
    Err(with_problems(error, &doubts).hint("nobody is let in until this is mended"))
}

fn not_asked(required: &SettingOrigin) -> CliError {
    let message = format!(
        "your organization wants gateways to know who connects, and this one could not tell: {required}"
    );
    CliError::new(Code::BlockedByPolicy, message)
        .hint("`cocode gateway token add NAME` makes a token, which clients then have to show")
        .hint("[gateway.oauth] of config.toml lets those in whom an authorization server knows")
}

/// The tokens of this user's gateways.
pub(crate) fn token_store(workspace: &Workspace) -> Result<Arc<dyn TokenStore>, CliError> {
    let Setting { value, from } = &workspace.config()?.settings.gateway.store;
    match value {
        GatewayStore::Sqlite | GatewayStore::Memory => {
            let directory = workspace.places.state.join(TOKENS_DIRECTORY);
            Ok(Arc::new(FileTokenStore::new(directory)))
        }
        GatewayStore::Postgres(_) => Err(no_database(from.as_ref())),
    }
}

/// The directory of the audit log of this user's gateways.
pub(crate) fn audit_directory(workspace: &Workspace) -> Result<PathBuf, CliError> {
    let config = workspace.config()?;
    let home = workspace.environment.homes.home.as_deref();
    let audit = &config.settings.gateway.audit;
    Ok(audit.directory_in(home, &workspace.places.state))
}

fn no_database(from: Option<&SettingOrigin>) -> CliError {
    let message = "this build keeps nothing in a database, but `gateway.store` names one";
    let error = CliError::new(Code::InvalidConfig, message);
    match from {
        Some(from) => error.hint(format!("the store is written in {from}")),
        None => error,
    }
}

/// Why something could not be done with tokens.
pub(crate) fn token_trouble(error: &TokenStoreError) -> CliError {
    let code = match error {
        TokenStoreError::Taken(_) => Code::AlreadyThere,
        TokenStoreError::Unknown(_) => Code::UnknownToken,
        TokenStoreError::TooMany => Code::InvalidUsage,
        _ => Code::FileError,
    };
    CliError::new(code, error.to_string())
}

/// The audit log of this user's gateways, or the one in another directory.
pub(crate) fn audit_ledger(
    directory: Option<&Path>,
    workspace: &Workspace,
) -> Result<Arc<dyn AuditLedger>, CliError> {
    let directory = match directory {
        None => audit_directory(workspace)?,
        Some(given) => {
            let here = workspace.places.directory.as_deref();
            let directory = here.map_or_else(|| given.to_owned(), |here| here.join(given));
            // What is not there would be found in order.
            let found = std::fs::metadata(&directory);
            let found = found.map_err(|error| CliError::file("read", &directory, &error))?;
            if !found.is_dir() {
                let message = format!("`{}` is no directory of a log", directory.display());
                return Err(CliError::new(Code::InvalidUsage, message));
            }
            directory
        }
    };
    Ok(Arc::new(FileLedger::new(FileLedgerOptions::new(directory))))
}
