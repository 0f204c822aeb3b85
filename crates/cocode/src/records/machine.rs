//! What a gateway keeps on its own machine: in files of its user, or in memory.

use std::path::PathBuf;
use std::sync::Arc;

use cocode_access::{AuditLedger, FileLedger, FileLedgerOptions, FileTokenStore, TokenStore};
use cocode_agent::{SqliteStore, Store};
use cocode_wire::serve::SessionStore;

use super::session_file::FileSessionStore;
use super::{MEGABYTE, Records, audit_directory, max_age};
use crate::agent::{conversations_in, store_file};
use crate::error::CliError;
use crate::workspace::Workspace;

/// Where tokens and sessions are kept, below what cocode keeps for itself.
const DIRECTORY: &str = "gateway";
const SESSIONS: &str = "sessions.sqlite";

/// Whether sessions and conversations outlive their gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasting {
    InFiles,
    InMemory,
}

/// Tokens and the audit log are in files in any case, because whoever makes a token is another process.
#[derive(Debug)]
pub(super) struct OnThisMachine {
    directory: PathBuf,
    audit: FileLedgerOptions,
    /// The file of conversations.
    conversations: PathBuf,
    lasting: Lasting,
}

impl OnThisMachine {
    pub(super) fn new(lasting: Lasting, workspace: &Workspace) -> Result<Self, CliError> {
        let settings = &workspace.config()?.settings;
        let mut audit = FileLedgerOptions::new(audit_directory(workspace)?);
        audit.max_age = max_age(settings);
        let settings = &settings.gateway.audit;
        if let Some(most) = &settings.max_file_mb {
            audit.max_file_bytes = most.value.saturating_mul(MEGABYTE);
        }
        if let Some(keep) = &settings.keep_files {
            audit.max_full_files = usize::try_from(keep.value).unwrap_or(usize::MAX);
        }
        Ok(Self {
            directory: workspace.places.state.join(DIRECTORY),
            audit,
            conversations: store_file(workspace),
            lasting,
        })
    }
}

impl Records for OnThisMachine {
    fn tokens(&self) -> Arc<dyn TokenStore> {
        Arc::new(FileTokenStore::new(&self.directory))
    }

    fn audit(&self) -> Arc<dyn AuditLedger> {
        Arc::new(FileLedger::new(self.audit.clone()))
    }

    fn sessions(&self) -> Option<Arc<dyn SessionStore>> {
        match self.lasting {
            Lasting::InFiles => {
                let file = self.directory.join(SESSIONS);
                Some(Arc::new(FileSessionStore::new(file)))
            }
            Lasting::InMemory => None,
        }
    }

    fn conversations(&self) -> Result<Arc<dyn Store>, CliError> {
        Ok(match self.lasting {
            Lasting::InFiles => Arc::new(conversations_in(&self.conversations)?),
            Lasting::InMemory => Arc::new(SqliteStore::in_memory()),
        })
    }
}
