//! What everybody in the house works with, and what can be told of the gateway at once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cocode_access::{PrincipalName, TokenKeeper};
use cocode_admin::model::{Authentication, Facts, Readiness};
use cocode_admin::{Bulletin, Moment, Refusal, RefusalStatus};
use cocode_client::{ServerLogs, StateKind};
use cocode_gateway::{Gate, Gateway, SearchOptions, View};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Semaphore, mpsc, watch};

use super::calling::Callers;
use super::costs::Costs;
use super::searching::Searched;
use super::{Entrance, HouseParts};
use crate::daemon::Floor;
use crate::gateway::oversight::Watch;
use crate::gateway::servers::Present;
use crate::workspace::Workspace;

pub(super) struct Interior {
    pub(super) workspace: Workspace,
    pub(super) gateway: Gateway,
    pub(super) view: View,
    pub(super) rules: Arc<dyn Gate>,
    pub(super) present: watch::Receiver<Arc<Present>>,
    pub(super) logs: ServerLogs,
    pub(super) bulletin: Bulletin,
    pub(super) search: SearchOptions,
    pub(super) tokens: Option<Arc<TokenKeeper>>,
    has_oauth: bool,
    pub(super) watch: Watch,
    stop: mpsc::Sender<()>,
    /// Where clients come in, once they can.
    pub(super) entrance: OnceLock<Entrance>,
    pub(super) is_closing: AtomicBool,
    began: Moment,
    /// Lets one change of the files through at a time.
    pub(super) editing: Semaphore,
    pub(super) callers: Callers,
    pub(super) costs: Costs,
    pub(super) searched: Mutex<Option<Arc<Searched>>>,
    /// Tokens that were made here, of which it is told already.
    pub(super) own_tokens: Mutex<BTreeSet<PrincipalName>>,
}

impl Interior {
    pub(super) fn new(parts: HouseParts) -> Self {
        let HouseParts {
            workspace,
            gateway,
            view,
            rules,
            present,
            logs,
            bulletin,
            search,
            tokens,
            has_oauth,
            watch,
            stop,
        } = parts;
        Self {
            workspace,
            gateway,
            view,
            rules,
            present,
            logs,
            bulletin,
            search,
            tokens,
            has_oauth,
            watch,
            stop,
            entrance: OnceLock::new(),
            is_closing: AtomicBool::new(false),
            began: Moment::now(),
            editing: Semaphore::new(1),
            callers: Callers::default(),
            costs: Costs::default(),
            searched: Mutex::default(),
            own_tokens: Mutex::default(),
        }
    }

    /// What is served at this moment.
    pub(super) fn present(&self) -> Arc<Present> {
        Arc::clone(&self.present.borrow())
    }

    pub(super) fn facts(&self) -> Facts {
        let directory = self.workspace.places.directory.as_ref();
        let entrance = self.entrance.get();
        let has_process = |running: &cocode_gateway::Running| {
            let connection = running.status.connection.as_ref();
            running.status.state.kind() == StateKind::Ready
                && connection.is_some_and(|facts| facts.pid.is_some())
        };
        let processes = self
            .gateway
            .running()
            .iter()
            .filter(|one| has_process(one))
            .count();
        Facts {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            url: entrance
                .map(|entrance| entrance.url.clone())
                .unwrap_or_default(),
            dashboard: entrance.map(|entrance| entrance.dashboard.clone()),
            directory: directory
                .map(|at| at.display().to_string())
                .unwrap_or_default(),
            started_at: self.began,
            authentication: self.authentication(),
            tool_search: self.search.policy.mode.to_string(),
            processes: processes as u64,
        }
    }

    fn authentication(&self) -> Authentication {
        let needs_token = self
            .tokens
            .as_ref()
            .is_some_and(|tokens| tokens.is_needed());
        if self.has_oauth {
            Authentication::OAuth
        } else if needs_token {
            Authentication::Tokens
        } else {
            Authentication::Open
        }
    }

    pub(super) fn readiness(&self) -> Readiness {
        let mut waiting_for = Vec::new();
        if self.present.borrow().generation == 0 {
            waiting_for.push("the configuration is being applied for the first time".to_owned());
        }
        if self.is_closing.load(Ordering::Acquire) {
            waiting_for.push("the gateway is about to end".to_owned());
        }
        Readiness {
            ready: waiting_for.is_empty(),
            waiting_for,
        }
    }

    /// Who shares which servers.
    pub(super) fn floor(&self) -> Result<&Floor, Refusal> {
        let entrance = self.entrance.get();
        entrance.map(|entrance| &*entrance.floor).ok_or_else(|| {
            let message = "the gateway is just starting";
            Refusal::new(RefusalStatus::Unavailable, "starting", message)
        })
    }

    pub(super) fn stop(&self) -> Result<(), Refusal> {
        match self.stop.try_send(()) {
            // One that waits is as good as many.
            Ok(()) | Err(TrySendError::Full(())) => Ok(()),
            Err(TrySendError::Closed(())) => Err(Refusal::new(
                RefusalStatus::Conflict,
                "already-ending",
                "the gateway is ending already",
            )),
        }
    }
}

impl std::fmt::Debug for Interior {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Interior")
            .field("view", &self.view)
            .finish_non_exhaustive()
    }
}
