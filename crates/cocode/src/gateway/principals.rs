//! The principals of a gateway: what each of them is served, as the configuration says now.

use std::collections::BTreeMap;
use std::sync::Arc;

use cocode_access::PrincipalId;
use cocode_config::Config;
use cocode_core::ServerSpec;
use cocode_gateway::{Gateway, View, ViewOptions};
use tokio::sync::mpsc;

use super::agent::Resident;
use super::connector::Ways;
use super::oversight::Watch;
use super::views::{NoView, Views, Wish};
use crate::managing::Setup;
use crate::serving::gate::Rules;
use crate::workspace::Workspace;

/// Processes of one server that may run for single sessions of a principal, beside the one that all share.
const MAX_OWN_SERVERS: usize = 64;

/// Everybody who has come, and what they are served with.
pub(crate) struct Principals<'a> {
    gateway: &'a Gateway,
    /// What a view is made with, but for whose it is.
    base: ViewOptions,
    ways: Arc<Ways>,
    watch: Watch,
    views: Arc<Views>,
    wished: mpsc::Receiver<Wish>,
    all: BTreeMap<PrincipalId, Served>,
    setup: &'a Setup,
    workspace: &'a Workspace,
}

/// One principal.
struct Served {
    rules: Arc<Rules>,
    ways: Arc<Ways>,
    /// Their agent, where the gateway has one.
    agent: Option<Resident>,
}

impl<'a> Principals<'a> {
    /// Views of principals are made like that of the owner.
    pub(crate) fn new(
        (gateway, setup, workspace): (&'a Gateway, &'a Setup, &'a Workspace),
        (base, ways, watch): (ViewOptions, Arc<Ways>, Watch),
        (views, wished): (Arc<Views>, mpsc::Receiver<Wish>),
    ) -> Self {
        Self {
            gateway,
            base,
            ways,
            watch,
            views,
            wished,
            all: BTreeMap::new(),
            setup,
            workspace,
        }
    }

    /// Somebody has come who has no view yet. Cancel safe.
    pub(crate) async fn wish(&mut self) -> Wish {
        match self.wished.recv().await {
            Some(wish) => wish,
            None => std::future::pending().await,
        }
    }

    /// Makes a view for them.
    pub(crate) async fn fulfil(&mut self, wish: Wish, config: &Config, specs: &[ServerSpec]) {
        let id = wish.principal.clone();
        let max_sessions = max_sessions(id.as_str(), config);
        if let Some(view) = self.views.known(id.as_str()) {
            // Two wished at once.
            return self.views.keep(wish, view, max_sessions);
        }
        if let Some(table) = config.settings.gateway.unclear_for(id.as_str()) {
            let from = &table.from;
            tracing::warn!(principal = %id, %from, "a table is there for a token of their name only");
            return wish.refuse(NoView::Unclear);
        }
        let principal = &id.shared();
        let rules = Arc::new(Rules::of(config, Some(Arc::clone(principal))));
        let ways = Arc::new(self.ways.of_principal(principal));
        let mut options = self.base.clone();
        options.overseer = self.watch.over(id.clone());
        options.gate = Arc::<Rules>::clone(&rules);
        options.manager.connector = Arc::<Ways>::clone(&ways);
        options.principal = Some(Arc::clone(principal));
        options.max_own_servers = MAX_OWN_SERVERS;
        let view = self.gateway.view(options);
        let agent = self.agent_of(&ways, &view).await;
        self.apply_to(&view, principal, config, specs).await;
        let served = Served { rules, ways, agent };
        self.all.insert(id, served);
        self.views.keep(wish, view, max_sessions);
    }

    async fn agent_of(&self, ways: &Ways, view: &View) -> Option<Resident> {
        let place = ways.agent.as_ref()?;
        match place.move_in(view, self.setup, self.workspace).await {
            Ok(resident) => Some(resident),
            Err(error) => {
                // Everything else is served; the agent says of itself that it is not there.
                tracing::warn!("a principal has no agent: {}", error.message);
                None
            }
        }
    }

    /// Rules and limits of everybody are as the configuration says from now on: nobody waits for what
    /// others are served.
    pub(crate) fn follow(&self, config: &Config) {
        self.watch.follow(config);
        for (principal, served) in &self.all {
            served.rules.replace(config);
            let max_sessions = max_sessions(principal.as_str(), config);
            self.views.bound(principal.as_str(), max_sessions);
        }
    }

    /// Serves everybody what the configuration says now.
    pub(crate) async fn apply(&mut self, config: &Config, specs: &[ServerSpec]) {
        for (principal, view) in self.views.principals() {
            self.apply_to(&view, principal.as_str(), config, specs)
                .await;
        }
    }

    /// Serves one principal those servers that they may use.
    async fn apply_to(&self, view: &View, principal: &str, config: &Config, specs: &[ServerSpec]) {
        let settings = config.settings.gateway.principal(principal);
        let settings = settings.as_deref();
        let withheld = self.ways.built_in.as_ref();
        let withheld = withheld.filter(|built_in| !built_in.is_for_principals());
        let is_theirs = |spec: &&ServerSpec| {
            let may_use = settings.is_none_or(|settings| settings.may_use(spec.name.as_str()));
            may_use && !withheld.is_some_and(|built_in| built_in.is(spec))
        };
        view.apply(specs.iter().filter(is_theirs).cloned()).await;
    }

    /// Lets go of those who have not come for a while.
    pub(crate) async fn sweep(&mut self) {
        for principal in self.views.sweep() {
            if let Some(served) = self.all.remove(&principal) {
                served.leave().await;
            }
        }
    }

    /// Lets go of everybody.
    pub(crate) async fn leave(self) {
        for served in self.all.into_values() {
            served.leave().await;
        }
    }
}

impl Served {
    async fn leave(self) {
        if let (Some(place), Some(resident)) = (&self.ways.agent, self.agent) {
            place.move_out();
            resident.leave().await;
        }
    }
}

fn max_sessions(principal: &str, config: &Config) -> usize {
    let most = config.settings.gateway.max_sessions_of(principal);
    usize::try_from(most).unwrap_or(usize::MAX)
}
