//! An agent with all that it needs, and its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cocode_agent::{Agent, AgentOptions, SqliteStore, Store, remove_old_temporary};
use cocode_client::{Manager, ManagerOptions};
use cocode_config::Config;

use super::allotment::Allotment;
use super::following::{Followed, Following};
use super::models::Models;
use super::rules::AgentRules;
use super::{AgentSetup, Defaults, store_file};
use crate::args::tool_search::ToolSearchArgs;
use crate::error::{CliError, Code};
use crate::managing::{Purpose, Setup};
use crate::reach::Configured;
use crate::tool_search::ToolSearch;
use crate::workspace::Workspace;

/// How long the beginning waits for the stores of credentials. Those that answer do so at once; one that
/// asks its user something must not keep the model waiting. Without what they say, lists that a server
/// calls private are not remembered.
const RECALLED_WITHIN: Duration = Duration::from_millis(200);

/// An agent, its servers, and what they are made with.
pub(crate) struct House {
    pub(crate) agent: Agent,
    pub(crate) setup: AgentSetup,
    pub(crate) manager: Manager,
    /// What the manager is made with, if nobody else keeps that.
    managing: Option<Setup>,
    keep_days: Option<u64>,
    rules: Arc<AgentRules>,
    /// What reaches the servers, unless somebody else does.
    connector: Option<Arc<Configured>>,
    allotment: Allotment,
    following: Option<Following>,
}

impl House {
    /// Makes the agent of a workspace, within a runtime. Servers are on their way when this returns;
    /// nobody has waited for one.
    pub(crate) async fn open(
        workspace: &Workspace,
        defaults: Defaults,
        change: impl FnOnce(&mut ManagerOptions),
    ) -> Result<Self, CliError> {
        let managing = Setup::new(Purpose::Serving, workspace)?;
        let connector = Arc::new(Configured::new(workspace)?);
        let options = managing.options(|options| {
            options.connector = Arc::<Configured>::clone(&connector);
            change(options);
        });
        let store = Arc::new(store(workspace)?);
        let reached = (options, Some(connector), Allotment::of(workspace));
        let mut house = Self::build(workspace, defaults, store, reached).await?;
        house.managing = Some(managing);
        Ok(house)
    }

    /// The same where somebody else reaches the servers, those that are allotted, with a manager that is
    /// made with these, and with conversations that are kept elsewhere.
    pub(crate) async fn with(
        workspace: &Workspace,
        defaults: Defaults,
        store: Arc<dyn Store>,
        options: ManagerOptions,
        allotment: Allotment,
    ) -> Result<Self, CliError> {
        Self::build(workspace, defaults, store, (options, None, allotment)).await
    }

    async fn build(
        workspace: &Workspace,
        defaults: Defaults,
        store: Arc<dyn Store>,
        (mut options, connector, allotment): (ManagerOptions, Option<Arc<Configured>>, Allotment),
    ) -> Result<Self, CliError> {
        let config = workspace.config()?;
        let rules = Arc::new(AgentRules::new(workspace)?);
        let specs = allotment.specs(config);
        if let Some(connector) = &connector {
            connector.recall_within(RECALLED_WITHIN, &specs).await;
        }
        options.log_level = None;
        let output = options.output;
        let manager = Manager::new(options);
        let always = specs.iter().filter(|spec| spec.always_load);
        let always_load = always.map(|spec| spec.name.clone()).collect();
        manager.apply(specs).await;
        let setup = AgentSetup::new(workspace, defaults)?;
        let (settings, configured) = (&config.settings, setup.agent());
        let variables = &workspace.environment.variables;
        let search = ToolSearch::new(
            ToolSearchArgs::default(),
            None,
            &settings.tool_search,
            variables,
        )?;
        let agent = Agent::new(AgentOptions {
            store,
            providers: Arc::new(Models::new(workspace)?),
            manager: Some(manager.clone()),
            rules: Arc::<AgentRules>::clone(&rules),
            environment: variables.for_servers(),
            state_directory: Some(workspace.places.state.clone()),
            config_directory: Some(workspace.places.user.clone()),
            instructions: configured
                .instructions
                .map(|instructions| instructions.value),
            search: search.options.policy,
            search_on_list_changed: search.options.on_list_changed,
            always_load,
            output,
            max_steps: configured.max_steps.value,
            compact_percent: configured.compact_percent.value,
            tells_date: true,
        });
        Ok(Self {
            agent,
            setup,
            manager,
            managing: None,
            keep_days: keep_days(config),
            rules,
            connector,
            allotment,
            following: None,
        })
    }

    /// From now on the servers and rules are those that the files name, as they change. For whoever stays
    /// for a while.
    pub(crate) fn follow(&mut self, workspace: &Workspace) -> Result<(), CliError> {
        self.following = Some(Following::begin(
            workspace,
            Followed {
                manager: self.manager.clone(),
                connector: self.connector.clone(),
                rules: Arc::clone(&self.rules),
                setup: self.setup.clone(),
                agent: self.agent.clone(),
                allotment: self.allotment.clone(),
            },
        )?);
        Ok(())
    }

    /// Ends the servers, and writes down what is still to be written.
    pub(crate) async fn close(self) {
        // At the end nobody waits for anything else.
        purge(&self.agent, self.keep_days).await;
        let Self {
            agent,
            setup: _,
            manager,
            managing,
            keep_days: _,
            rules: _,
            connector: _,
            allotment: _,
            following,
        } = self;
        drop(following);
        drop(agent);
        manager.shutdown().await;
        if let Some(managing) = managing {
            managing.end();
        }
    }
}

/// How long the configuration wants conversations kept, if not for ever.
pub(super) fn keep_days(config: &Config) -> Option<u64> {
    let days = config.settings.retention.conversations_days.as_ref();
    days.map(|days| days.value)
}

/// Removes conversations that are older than this.
pub(super) async fn purge(agent: &Agent, days: Option<u64>) {
    let Some(days) = days else {
        return;
    };
    let options = agent.options();
    if let Some(state) = options.state_directory.clone() {
        let removal = tokio::task::spawn_blocking(move || remove_old_temporary(&state, days));
        if let Ok(Err(error)) = removal.await {
            tracing::warn!(%error, "cannot remove temporary files of old conversations");
        }
    }
    match options.store.purge(days).await {
        Ok(0) => {}
        Ok(removed) => tracing::info!(removed, days, "old conversations were removed"),
        Err(error) => tracing::warn!(%error, "old conversations were not removed"),
    }
}

/// The conversations of this user.
pub(super) fn store(workspace: &Workspace) -> Result<SqliteStore, CliError> {
    conversations_in(&store_file(workspace))
}

/// The conversations in a file.
pub(crate) fn conversations_in(file: &Path) -> Result<SqliteStore, CliError> {
    SqliteStore::open(file).map_err(|error| {
        CliError::new(Code::FileError, "conversations cannot be kept").because(&error)
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::sync::Arc;

    use super::{Defaults, House};
    use crate::args::{ConfigArgs, OutputArgs};
    use crate::environment::Environment;
    use crate::printer::Printer;
    use crate::workspace::Workspace;

    #[tokio::test]
    async fn on_list_changed_reaches_the_agent() {
        for on_list_changed in [true, false] {
            let home = tempfile::tempdir().unwrap();
            let settings = format!("[tool_search]\non_list_changed = {on_list_changed}\n");
            std::fs::write(home.path().join("config.toml"), settings).unwrap();
            let variable = |name: &str| (OsString::from(name), OsString::from(home.path()));
            let variables = ["COCODE_HOME", "HOME"].map(variable);
            let environment = Environment::of(variables.into_iter().collect(), None);
            let output = OutputArgs::default();
            let printer = Arc::new(Printer::new(&output, &environment));
            let (directory, config) = (Some(home.path().to_owned()), ConfigArgs::default());
            let workspace =
                Workspace::at(directory, environment, printer, output, &config).unwrap();
            let house = House::open(&workspace, Defaults::SCRIPT, |_| {})
                .await
                .unwrap();
            let options = house.agent.options();
            assert_eq!(options.search_on_list_changed, on_list_changed);
        }
    }
}
