//! The principals of a gateway: what each of them is served, as the configuration says now.

use std::collections::BTreeMap;
use std::sync::Arc;

use cocode_config::Config;
use cocode_core::ServerSpec;
use cocode_gateway::{Gateway, View, ViewOptions};
use tokio::sync::mpsc;

use super::agent::Resident;
use super::connector::Ways;
use super::oversight::Watch;
use super::views::{Views, Wish};
use crate::managing::Setup;
use crate::serving::gate::Rules;
use crate::workspace::Workspace;

/// Everybody who has come, and what they are served with.
pub(crate) struct Principals<'a> {
    gateway: &'a Gateway,
    /// What a view is made with, but for whose it is.
    base: ViewOptions,
    ways: Arc<Ways>,
    watch: Watch,
    views: Arc<Views>,
    wished: mpsc::Receiver<Wish>,
    all: BTreeMap<Arc<str>, Served>,
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
        let principal = &wish.principal;
        if let Some(view) = self.views.known(principal) {
            // Two wished at once.
            return self.views.keep(wish, view);
        }
        let rules = Arc::new(Rules::of(config, Some(Arc::clone(principal))));
        let ways = Arc::new(self.ways.of_principal(principal));
        // Only names that were checked come here.
        let Ok(name) = principal.parse() else {
            return;
        };
        let mut options = self.base.clone();
        options.overseer = self.watch.over(name);
        options.gate = Arc::<Rules>::clone(&rules);
        options.manager.connector = Arc::<Ways>::clone(&ways);
        options.principal = Some(Arc::clone(principal));
        let view = self.gateway.view(options);
        let agent = self.agent_of(&ways, &view).await;
        apply(&view, principal, config, specs).await;
        let served = Served { rules, ways, agent };
        self.all.insert(Arc::clone(principal), served);
        self.views.keep(wish, view);
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

    /// Serves everybody what the configuration says now.
    pub(crate) async fn apply(&mut self, config: &Config, specs: &[ServerSpec]) {
        self.watch.follow(config);
        for (principal, view) in self.views.principals() {
            if let Some(served) = self.all.get(&principal) {
                served.rules.replace(config);
            }
            apply(&view, &principal, config, specs).await;
        }
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

/// Serves one principal those servers that they may use.
async fn apply(view: &View, principal: &str, config: &Config, specs: &[ServerSpec]) {
    let settings = config.settings.gateway.principal(principal);
    let is_theirs =
        |spec: &&ServerSpec| settings.is_none_or(|settings| settings.may_use(spec.name.as_str()));
    view.apply(specs.iter().filter(is_theirs).cloned()).await;
}
