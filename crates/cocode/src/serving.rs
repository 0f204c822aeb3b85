//! From a workspace to what is served of it: a view of a gateway with the servers that the
//! configuration names, reached as commands in that workspace reach them, behind the same rules for
//! tools, and all of it as the files say now.

pub(crate) mod gate;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;

use cocode_client::ManagerOptions;
use cocode_config::{Config, Live, Reload, Watcher};
use cocode_core::ServerSpec;
use cocode_gateway::{Gateway, Inbox, Overseer, Prefix, SearchOptions, View, ViewOptions};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::admission::Admissions;
use crate::args::gateway::BuiltInArgs;
use crate::configured;
use crate::error::{CliError, Code};
use crate::gateway::builtin::BuiltIn;
use crate::gateway::connector::Ways;
use crate::reach::Configured;
use crate::workspace::{Workspace, told_after};

use gate::Rules;

/// What to know where there is nothing to serve.
const NOTHING_CONFIGURED: &str = "no servers are configured, so there is nothing to serve: \
     `cocode mcp add NAME -- COMMAND` adds one, `cocode mcp import` takes those of other tools";

/// Which of the configured servers are served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    /// Only these, if given.
    pub(crate) servers: Option<BTreeSet<String>>,
}

/// What clients are to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) selection: Selection,
    /// Whether names say whose they are, where all servers are one.
    pub(crate) prefix: Prefix,
    /// When they search for tools, where all servers are one.
    pub(crate) search: SearchOptions,
    /// The built-in tools, besides servers or if there are none.
    pub(crate) tools: BuiltInArgs,
}

/// Who watches over what clients have servers do, and where questions go that they cannot answer.
#[derive(Clone, Default)]
pub(crate) struct Supervision {
    pub(crate) overseer: Option<Arc<dyn Overseer>>,
    pub(crate) inbox: Option<Arc<dyn Inbox>>,
}

impl std::fmt::Debug for Supervision {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Supervision")
            .field("is_watched", &self.overseer.is_some())
            .field("has_inbox", &self.inbox.is_some())
            .finish()
    }
}

/// What is served of a workspace, for as long as this is held.
#[derive(Debug)]
pub(crate) struct Serving {
    view: View,
    warnings: watch::Receiver<Vec<String>>,
    admissions: Arc<Admissions>,
    // Ends following before there is nothing to follow.
    _following: JoinSet<()>,
    _watcher: Watcher,
}

impl Serving {
    /// Begins to serve, and to follow the files. Servers are started when they are needed.
    pub(crate) async fn of(
        workspace: &Workspace,
        mut manager: ManagerOptions,
        gateway: &Gateway,
        shape: Shape,
        supervision: Supervision,
    ) -> Result<Self, CliError> {
        let Shape {
            selection,
            prefix,
            search,
            tools,
        } = shape;
        // Wrong files that were asked for by name, and everything wrong if that is wanted, end it here.
        let first = workspace.config()?;
        selection.check(first)?;
        let (watcher, mut changes) = workspace.watch()?;
        let live = workspace.live();
        let built_in = BuiltIn::wanted(&tools, &[], workspace)?;
        let connector = Arc::new(Ways::new(Configured::new(workspace)?, built_in));
        let built_in = connector.built_in.as_deref();
        let (warn, warnings) = watch::channel(selection.warnings(&live, built_in));
        let rules = Arc::new(Rules::of(live.config(), None));
        manager.connector = Arc::<Ways>::clone(&connector);
        let unwatched = ViewOptions::default();
        let view = gateway.view(ViewOptions {
            manager,
            prefix,
            search,
            gate: Arc::<Rules>::clone(&rules),
            // The connector knows what makes servers others.
            identity: Vec::new(),
            overseer: supervision.overseer.unwrap_or(unwatched.overseer),
            inbox: supervision.inbox,
            first_list_timeout: first.settings.gateway.first_list_timeout.value,
            ..ViewOptions::default()
        });
        let mut followed = Followed {
            live,
            selection,
            connector,
            rules,
            view: view.clone(),
            warnings: warn,
        };
        followed.apply().await;
        let mut following = JoinSet::new();
        following.spawn(async move {
            while changes.recv().await.is_some() {
                followed.reload().await;
            }
        });
        Ok(Self {
            view,
            warnings,
            admissions: Arc::clone(workspace.admissions()?),
            _following: following,
            _watcher: watcher,
        })
    }

    /// What clients see.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Waits until what was renewed is stored.
    pub(crate) async fn settle(&self) {
        self.admissions.settle().await;
    }

    /// What whoever is served should know: files that cannot be read, servers that are not served.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }

    /// Tells of everything that is to be known now and is not among what was said before, for as long as
    /// somebody listens.
    pub(crate) fn warn<T: FnMut(&str)>(
        &self,
        mut said: Vec<String>,
        mut tell: T,
    ) -> impl Future<Output = Infallible> + use<T> {
        let mut warnings = self.warnings.clone();
        async move {
            loop {
                let now = warnings.borrow_and_update().clone();
                let is_new = |warning: &&String| !said.contains(*warning);
                now.iter().filter(is_new).for_each(|warning| tell(warning));
                said = now;
                if warnings.changed().await.is_err() {
                    // Nothing is followed any more.
                    return std::future::pending().await;
                }
            }
        }
    }
}

impl Selection {
    /// Whether a server is served, if there is such a server.
    pub(crate) fn has(&self, name: &str) -> bool {
        let servers = self.servers.as_ref();
        servers.is_none_or(|servers| servers.contains(name))
    }

    /// Names that no file has are mistakes.
    pub(crate) fn check(&self, config: &Config) -> Result<(), CliError> {
        let mut names = self.servers.iter().flatten();
        let unknown = names.find(|name| !config.servers.contains_key(*name));
        unknown.map_or(Ok(()), |name| Err(configured::unknown(name, config)))
    }

    fn warnings(&self, live: &Live, built_in: Option<&BuiltIn>) -> Vec<String> {
        let config = live.config();
        let mut warnings = told_after(config.file_problems(), live.kept());
        let kept = live
            .kept()
            .iter()
            .map(|kept| format!("configuration: {kept}"));
        warnings.extend(kept);
        match built_in {
            Some(built_in) => warnings.extend(built_in.introduction(config)),
            None if config.servers.is_empty() && warnings.is_empty() => {
                warnings.push(NOTHING_CONFIGURED.to_owned());
            }
            None => {}
        }
        for (name, server) in &config.servers {
            // One that is broken now may go on as it was.
            if live.specs().any(|spec| spec.name.as_str() == name) {
                continue;
            }
            // Who names a server wants it; of the others, only what is broken or waits matters.
            let is_wanted = self.servers.is_some() && self.has(name);
            match configured::usable(name, server) {
                Ok(_) => {}
                Err(error) if is_wanted => warnings.push(with_hints(&error)),
                Err(error) if self.has(name) && error.code != Code::ServerDisabled.as_str() => {
                    warnings.push(with_hints(&error));
                }
                Err(_not_wanted) => {}
            }
        }
        warnings
    }
}

fn with_hints(error: &CliError) -> String {
    let what: Vec<&str> = [&error.message]
        .into_iter()
        .chain(&error.causes)
        .map(String::as_str)
        .collect();
    let what = what.join(": ");
    if error.hints.is_empty() {
        return format!("{what}; it is not served");
    }
    format!("{what}; it is not served ({})", error.hints.join("; "))
}

/// What follows the configuration.
struct Followed {
    live: Live,
    selection: Selection,
    connector: Arc<Ways>,
    rules: Arc<Rules>,
    view: View,
    warnings: watch::Sender<Vec<String>>,
}

impl Followed {
    /// Serves what the configuration says now.
    async fn apply(&self) {
        let specs = self.live.specs();
        let specs: Vec<ServerSpec> = specs
            .filter(|spec| self.selection.has(spec.name.as_str()))
            .cloned()
            .collect();
        self.connector.configured.recall(&specs).await;
        let built_in = self.connector.built_in.as_deref().map(BuiltIn::spec);
        let is_free = |spec: &ServerSpec| built_in.is_none_or(|own| own.name != spec.name);
        let specs = specs.into_iter().filter(is_free);
        let specs: Vec<ServerSpec> = specs.chain(built_in.cloned()).collect();
        self.view.apply(specs).await;
    }

    async fn reload(&mut self) {
        let reload = self.live.reload();
        let now = self
            .selection
            .warnings(&self.live, self.connector.built_in.as_deref());
        log(&reload, &now);
        let before = self.warnings.send_replace(now);
        for warning in &*self.warnings.borrow() {
            if !before.contains(warning) {
                tracing::warn!("{warning}");
            }
        }
        self.rules.replace(self.live.config());
        self.apply().await;
    }
}

/// Writes down what became of a change, but for what is written down as a warning.
fn log(reload: &Reload, warnings: &[String]) {
    let Reload {
        changes,
        settings_changed,
        kept,
        problems,
    } = reload;
    for change in changes {
        tracing::info!("configuration: {change}");
    }
    if *settings_changed {
        tracing::info!("configuration: settings have changed; some count at the next start");
    }
    for problem in told_after(problems, kept) {
        if !warnings.contains(&problem) {
            tracing::warn!("configuration: {problem}");
        }
    }
}
