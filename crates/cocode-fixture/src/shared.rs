//! What all sessions of one process have in common.

use std::sync::Arc;

use rmcp::model::RequestStateCodec;
use rmcp::task_manager::TaskManager;
use tokio::sync::broadcast;

use crate::catalog::Catalog;
use crate::changes::Change;
use crate::era::Era;

/// Changes that a slow listener may be behind.
const CHANGES: usize = 64;

/// The same in every process: a question may be answered to another process than the one that
/// asked it. It guards nothing but the tests of what becomes of a changed memory.
const KEY: &[u8] = b"the fixture has no secrets to keep";

pub(crate) struct Shared {
    pub(crate) era: Era,
    pub(crate) catalog: Catalog,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) tasks: TaskManager,
    pub(crate) memory: RequestStateCodec,
}

impl Shared {
    pub(crate) fn new(era: Era) -> Arc<Self> {
        Arc::new(Self {
            era,
            catalog: Catalog::load(),
            changes: broadcast::Sender::new(CHANGES),
            tasks: TaskManager::new(),
            memory: RequestStateCodec::try_new(KEY).expect("the key is long enough"),
        })
    }
}
