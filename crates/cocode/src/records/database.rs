//! What gateways keep in a database, for all that use the same.

use std::sync::Arc;

use cocode_access::{AuditLedger, FileLedgerOptions, TokenStore};
use cocode_agent::Store;
use cocode_config::{SettingOrigin, Settings};
use cocode_postgres::{
    Database, DatabaseError, LedgerOptions, PostgresConversations, PostgresLedger,
    PostgresSessionStore, PostgresTokenStore,
};
use cocode_wire::serve::SessionStore;

use super::address::resolved;
use super::{MEGABYTE, Records, max_age};
use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// Everything is in one database.
#[derive(Debug)]
pub(super) struct InDatabase {
    database: Database,
    audit: LedgerOptions,
}

impl InDatabase {
    /// Reaches the database once, so that whoever starts a gateway is told what is wrong with it.
    pub(super) async fn reach(
        address: &str,
        from: Option<&SettingOrigin>,
        workspace: &Workspace,
    ) -> Result<Self, CliError> {
        let audit = ledger_options(&workspace.config()?.settings);
        let said_where = |error: CliError| match from {
            Some(from) => error.hint(format!(
                "the database is named by `gateway.store` in {from}"
            )),
            None => error,
        };
        let address = resolved(address, workspace).await.map_err(said_where)?;
        let http = workspace.admissions()?.http();
        let database = Database::new(&address, http);
        let database = database.map_err(|error| said_where(trouble(&error)))?;
        let connection = database.connection().await;
        let connection = connection.map_err(|error| said_where(trouble(&error)))?;
        connection.give_back();
        Ok(Self { database, audit })
    }
}

/// A log in a database is as long as the files together would be.
fn ledger_options(settings: &Settings) -> LedgerOptions {
    let max_age = max_age(settings);
    let settings = &settings.gateway.audit;
    let usual = FileLedgerOptions::new("");
    let of_file = settings.max_file_mb.as_ref();
    let of_file = of_file.map_or(usual.max_file_bytes, |most| {
        most.value.saturating_mul(MEGABYTE)
    });
    let n_full = settings.keep_files.as_ref();
    let n_full = n_full.map_or(usual.max_full_files as u64, |keep| keep.value);
    LedgerOptions {
        max_bytes: of_file.saturating_mul(n_full.saturating_add(1)),
        max_age,
    }
}

fn trouble(error: &DatabaseError) -> CliError {
    let code = match error {
        DatabaseError::Address { .. } => Code::InvalidConfig,
        _ => Code::StoreUnavailable,
    };
    CliError::new(code, error.to_string())
}

impl Records for InDatabase {
    fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(PostgresTokenStore::new(self.database.clone()))
    }

    fn audit(&self) -> Arc<dyn AuditLedger> {
        Arc::new(PostgresLedger::new(self.database.clone(), self.audit))
    }

    fn sessions(&self) -> Option<Arc<dyn SessionStore>> {
        Some(Arc::new(PostgresSessionStore::new(self.database.clone())))
    }

    fn conversations(&self) -> Result<Arc<dyn Store>, CliError> {
        Ok(Arc::new(PostgresConversations::new(self.database.clone())))
    }
}
