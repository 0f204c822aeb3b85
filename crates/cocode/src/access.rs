//! Who may connect to a gateway: whether it has a way to tell.

use std::path::Path;
use std::sync::Arc;

use cocode_access::{AuditLedger, FileLedger, FileLedgerOptions, TokenStoreError};
use cocode_config::{Config, SettingOrigin};

use crate::args::gateway::GatewayArgs;
use crate::error::{CliError, Code};
use crate::records::{Records, records};
use crate::workspace::{Workspace, with_problems};

/// Whether a gateway can tell who connects.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    has_tokens: bool,
    has_oauth: bool,
    /// The gateway creates a token when it starts.
    creates_token: bool,
}

impl Access {
    /// What tokens and settings say now. An error, where they cannot be understood, or where the
    /// organization wants to know who connects and nobody could tell.
    pub(crate) async fn of(records: &dyn Records, workspace: &Workspace) -> Result<Self, CliError> {
        let config = workspace.config()?;
        without_doubt(config)?;
        let tokens = records.tokens().list().await;
        let tokens = tokens.map_err(|error| token_trouble(&error))?;
        let access = Self {
            has_tokens: !tokens.is_empty(),
            has_oauth: config.settings.gateway.oauth.is_some(),
            creates_token: false,
        };
        match config.authentication_required() {
            Some(required) if !access.is_asked() => Err(not_asked(&required)),
            _ => Ok(access),
        }
    }

    /// Whether clients have to say who they are.
    pub(crate) fn is_asked(&self) -> bool {
        self.has_tokens || self.has_oauth || self.creates_token
    }

    /// Requires a token where clients could change files or run commands and nothing authenticates them.
    pub(crate) fn guarding_commands(self, args: &GatewayArgs) -> Self {
        let can_change = args.tools.allow_write || args.tools.allow_shell || args.agent.agent;
        Self {
            creates_token: can_change && !self.is_asked(),
            ..self
        }
    }

    pub(crate) fn creates_token(&self) -> bool {
        self.creates_token
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
pub(crate) async fn audit_ledger(
    directory: Option<&Path>,
    workspace: &Workspace,
) -> Result<Arc<dyn AuditLedger>, CliError> {
    let Some(given) = directory else {
        return Ok(records(workspace).await?.audit());
    };
    let here = workspace.places.directory.as_deref();
    let directory = here.map_or_else(|| given.to_owned(), |here| here.join(given));
    // What is not there would be found in order.
    let found = std::fs::metadata(&directory);
    let found = found.map_err(|error| CliError::file("read", &directory, &error))?;
    if !found.is_dir() {
        let message = format!("`{}` is no directory of a log", directory.display());
        return Err(CliError::new(Code::InvalidUsage, message));
    }
    Ok(Arc::new(FileLedger::new(FileLedgerOptions::new(directory))))
}
