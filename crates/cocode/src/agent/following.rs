//! Follows the files of configuration while an agent is there: servers come and go, rules and settings
//! change. Whoever stays that long has old conversations removed, too.

use std::sync::Arc;
use std::time::Duration;

use cocode_agent::Agent;
use cocode_client::Manager;
use cocode_config::{Live, Watcher};
use cocode_core::ServerSpec;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::AgentSetup;
use super::allotment::Allotment;
use super::house;
use super::rules::AgentRules;
use crate::error::CliError;
use crate::reach::Configured;
use crate::workspace::{Workspace, told_after};

/// How often old conversations are looked for.
const PURGED_EVERY: Duration = Duration::from_hours(24);

/// Who is told of changes.
#[derive(Debug)]
pub(super) struct Followed {
    pub(super) manager: Manager,
    /// What reaches the servers, unless somebody else does.
    pub(super) connector: Option<Arc<Configured>>,
    pub(super) rules: Arc<AgentRules>,
    pub(super) setup: AgentSetup,
    pub(super) agent: Agent,
    pub(super) allotment: Allotment,
}

/// Follows for as long as this is held.
#[derive(Debug)]
pub(super) struct Following {
    // Ends following before there is nothing to follow.
    _task: JoinSet<()>,
    _watcher: Watcher,
}

impl Following {
    pub(super) fn begin(workspace: &Workspace, followed: Followed) -> Result<Self, CliError> {
        let (watcher, mut changes) = workspace.watch()?;
        // What was read at the start is what the first change is compared with.
        let mut live = workspace.live();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut days = interval_at(Instant::now() + PURGED_EVERY, PURGED_EVERY);
            days.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    changed = changes.recv() => match changed {
                        Some(()) => followed.reload(&mut live).await,
                        None => break,
                    },
                    _at = days.tick() => {
                        let days = house::keep_days(live.config());
                        house::purge(&followed.agent, days).await;
                    }
                }
            }
        });
        Ok(Self {
            _task: task,
            _watcher: watcher,
        })
    }
}

impl Followed {
    async fn reload(&self, live: &mut Live) {
        let reload = live.reload();
        for change in &reload.changes {
            tracing::info!("configuration: {change}");
        }
        let problems = told_after(&reload.problems, &reload.kept);
        let kept = reload
            .kept
            .iter()
            .map(|kept| format!("configuration: {kept}"));
        let problems: Vec<String> = problems.into_iter().chain(kept).collect();
        if !problems.is_empty() {
            self.manager.reject_configuration(problems);
        }
        self.rules.replace(live.config());
        self.setup.replace(live.config());
        // One that is broken now may go on as it was.
        let specs: Vec<ServerSpec> = live
            .specs()
            .filter(|spec| self.allotment.has(live.config(), spec))
            .cloned()
            .collect();
        if let Some(connector) = &self.connector {
            connector.recall(&specs).await;
        }
        self.manager.apply(specs).await;
    }
}
