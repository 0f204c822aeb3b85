//! Where gateways keep what outlives a request: on this machine, or in a database that several of them
//! share.

mod address;
mod database;
mod machine;
mod session_file;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cocode_access::{AuditLedger, TokenStore};
use cocode_agent::Store;
use cocode_config::{GatewayStore, Setting, Settings};
use cocode_wire::serve::SessionStore;

use self::database::InDatabase;
use self::machine::{Lasting, OnThisMachine};
use crate::error::CliError;
use crate::workspace::Workspace;

/// Bytes of a megabyte, as people who set limits mean it.
const MEGABYTE: u64 = 1_000_000;

/// A hundred years: databases know no time long before that.
const MAX_AUDIT_DAYS: u64 = 36_500;

/// What a gateway keeps, all in one place. Each of them is made anew, and shares what is kept.
pub(crate) trait Records: Send + Sync + fmt::Debug {
    /// The tokens that let clients in.
    fn tokens(&self) -> Arc<dyn TokenStore>;

    /// What was done.
    fn audit(&self) -> Arc<dyn AuditLedger>;

    /// Sessions that another gateway can go on with. Without it, they end with the gateway.
    fn sessions(&self) -> Option<Arc<dyn SessionStore>>;

    /// The conversations of its agent.
    fn conversations(&self) -> Result<Arc<dyn Store>, CliError>;
}

/// What the gateways of this user keep, where the settings say. A database is there when this returns.
pub(crate) async fn records(workspace: &Workspace) -> Result<Arc<dyn Records>, CliError> {
    let Setting { value, from } = &workspace.config()?.settings.gateway.store;
    Ok(match value {
        GatewayStore::Sqlite => Arc::new(OnThisMachine::new(Lasting::InFiles, workspace)?),
        GatewayStore::Memory => Arc::new(OnThisMachine::new(Lasting::InMemory, workspace)?),
        GatewayStore::Postgres(address) => {
            Arc::new(InDatabase::reach(address, from.as_ref(), workspace).await?)
        }
    })
}

/// Age that entries of the audit log may have.
fn max_age(settings: &Settings) -> Option<Duration> {
    let days = settings.retention.audit_days.as_ref()?;
    Some(Duration::from_secs(
        days.value.min(MAX_AUDIT_DAYS) * 24 * 60 * 60,
    ))
}

/// The directory of the audit log of this user's gateways, where it is kept in files.
pub(crate) fn audit_directory(workspace: &Workspace) -> Result<PathBuf, CliError> {
    let config = workspace.config()?;
    let home = workspace.environment.homes.home.as_deref();
    let audit = &config.settings.gateway.audit;
    Ok(audit.directory_in(home, &workspace.places.state))
}
