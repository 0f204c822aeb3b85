//! The agent as one of the servers of a gateway. It uses the other servers through the gateway, as any
//! client does, so that nothing runs twice.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use cocode_agent::Store;
use cocode_agent::serve::{AgentServer, AgentServerOptions};
use cocode_client::{
    Answer, Connector, ListCache, ManagerOptions, ReachError, ReachErrorKind, Reached,
};
use cocode_core::{SandboxMode, ServerSpec};
use cocode_gateway::View;
use cocode_wire::serve::Endpoint;

use super::in_process::Connections;
use super::own_files::OwnFiles;
use crate::agent::served::{Callers, saved_prompts};
use crate::agent::{Allotment, Defaults, House};
use crate::args::gateway::GatewayArgs;
use crate::configured::blocked;
use crate::error::{CliError, Code};
use crate::managing::{Purpose, Setup};
use crate::records::Records;
use crate::serving::Selection;
use crate::workspace::Workspace;

/// What the server is called.
pub(crate) const NAME: &str = "cocode";
/// What stands in the place of a program.
const PROGRAM: &str = "cocode-agent";
/// A turn may take as long as it takes; whoever waits for it can end it.
const LONGEST_CALL: Duration = Duration::from_hours(24);
/// How often an answer may ask for input: once for each step of a turn that the model of the client takes.
pub(super) const MAX_INPUT_ROUNDS: usize = 1_000;

/// The place of the agent among the servers.
#[derive(Debug)]
pub(crate) struct AgentPlace {
    spec: ServerSpec,
    root: PathBuf,
    ceiling: SandboxMode,
    /// What the gateway itself obeys, which agents of principals must not change.
    own_files: OwnFiles,
    /// Directories of `[agent] writable_roots`.
    writable: Vec<PathBuf>,
    /// The servers of the gateway.
    selection: Selection,
    conversations: Arc<dyn Store>,
    /// Whose conversations it has, if not the owner's.
    principal: Option<Arc<str>>,
    /// The agent, while it is there.
    server: RwLock<Option<Arc<AgentServer>>>,
    connections: Connections,
}

/// An agent that is there.
pub(super) struct Resident {
    house: House,
    server: Arc<AgentServer>,
}

impl AgentPlace {
    /// The place, if the agent is wanted and allowed.
    pub(super) fn wanted(
        args: &GatewayArgs,
        selection: &Selection,
        records: &dyn Records,
        workspace: &Workspace,
    ) -> Result<Option<Self>, CliError> {
        if !args.agent.agent {
            return Ok(None);
        }
        let config = workspace.config()?;
        if config.servers.contains_key(NAME) {
            let message = format!("the agent is served as `{NAME}`, which is taken");
            return Err(CliError::new(Code::InvalidUsage, message)
                .hint(format!(
                    "a server of this name is configured: `cocode mcp explain {NAME}`"
                ))
                .hint("leave out `--agent`, or give that server another name"));
        }
        let here = workspace
            .places
            .directory
            .clone()
            .ok_or_else(|| CliError::new(Code::SetupFailed, "the current directory is gone"))?;
        let root = args.tools.root.as_deref();
        let root = root.map_or_else(|| here.clone(), |root| here.join(root));
        let root = std::fs::canonicalize(&root).map_err(|error| {
            let message = format!("the agent cannot work in {}", root.display());
            CliError::new(Code::FileError, message).because(&error)
        })?;
        let name = NAME.parse().map_err(|error| {
            CliError::new(Code::SetupFailed, "a server without a name").because(&error)
        })?;
        let mut spec = ServerSpec::program(name, PROGRAM, vec![root.display().to_string()]);
        spec.tool_timeout = LONGEST_CALL;
        spec.tool_total_timeout = Some(LONGEST_CALL);
        if let Some(reason) = config.refuses_unlisted(&spec) {
            return Err(blocked("the agent", &reason));
        }
        let own_files = OwnFiles::obeyed(workspace)?;
        let home = workspace.environment.homes.home.as_deref();
        let writable = config
            .settings
            .agent
            .writable_in(home.unwrap_or(Path::new("/")));
        Ok(Some(Self {
            spec,
            own_files,
            writable,
            root,
            ceiling: args
                .agent
                .max_sandbox
                .unwrap_or(SandboxMode::WorkspaceWrite),
            selection: selection.clone(),
            conversations: records.conversations()?,
            principal: None,
            server: RwLock::default(),
            connections: Connections::default(),
        }))
    }

    /// What to say of it where there are principals.
    pub(super) fn warnings(&self) -> Vec<String> {
        if self.ceiling != SandboxMode::WorkspaceWrite {
            return Vec::new();
        }
        let exposed = self.own_files.exposed_by(&self.root);
        let read_only = exposed.map(|exposed| {
            format!(
                "agents of principals only read: in {} they could change {}, which the gateway obeys; \
                 `--root DIR` gives them another directory",
                self.root.display(),
                exposed.display()
            )
        });
        let withheld = self.writable.iter().filter_map(|directory| {
            let exposed = self.own_files.exposed_by(directory)?;
            Some(format!(
                "agents of principals do not write in {}, which `writable_roots` in [agent] names: they \
                 could change {}, which the gateway obeys; name another directory",
                directory.display(),
                exposed.display()
            ))
        });
        read_only.into_iter().chain(withheld).collect()
    }

    /// The same place for a principal: its agent has conversations that are theirs alone, and changes nothing
    /// that would give them more than they have.
    pub(super) fn of_principal(&self, principal: &Arc<str>) -> Self {
        let ceiling = match self.ceiling {
            SandboxMode::WorkspaceWrite if self.own_files.exposed_by(&self.root).is_some() => {
                SandboxMode::ReadOnly
            }
            ceiling => ceiling,
        };
        Self {
            spec: self.spec.clone(),
            root: self.root.clone(),
            ceiling,
            own_files: self.own_files.clone(),
            writable: self.writable.clone(),
            selection: self.selection.clone(),
            conversations: Arc::clone(&self.conversations),
            principal: Some(Arc::clone(principal)),
            server: RwLock::default(),
            connections: Connections::default(),
        }
    }

    pub(super) fn spec(&self) -> &ServerSpec {
        &self.spec
    }

    /// Whether this is what a specification means.
    pub(super) fn is(&self, spec: &ServerSpec) -> bool {
        self.spec.name == spec.name && self.spec.reach == spec.reach
    }

    /// A connection to the agent. Has to be called within a runtime.
    pub(super) fn reach(&self) -> Result<Reached, ReachError> {
        let server = self.server.read().unwrap_or_else(PoisonError::into_inner);
        match &*server {
            Some(server) => {
                let endpoint: Arc<dyn Endpoint> = Arc::<AgentServer>::clone(server);
                Ok(self.connections.reach(endpoint))
            }
            None => Err(not_there("the agent is not there yet, or not any more")),
        }
    }

    /// Brings the agent in: it uses the servers of this view.
    pub(super) async fn move_in(
        &self,
        view: &View,
        setup: &Setup,
        workspace: &Workspace,
    ) -> Result<Resident, CliError> {
        let others = setup.for_others();
        let mut options: ManagerOptions = others.options(Purpose::Serving, workspace)?;
        options.connector = Arc::new(Through {
            view: view.clone(),
            connections: Connections::default(),
        });
        // What one principal was shown is nothing for another, and the view remembers lists already.
        options.cache = ListCache::off();
        let allotment = Allotment::of(workspace);
        let allotment = allotment.at_gateway(self.selection.clone(), self.principal.clone());
        let store = Arc::clone(&self.conversations);
        let house = House::with(workspace, Defaults::SERVER, store, options, allotment);
        let mut house = house.await?;
        house.follow(workspace)?;
        let server = Arc::new(AgentServer::new(AgentServerOptions {
            agent: house.agent.clone(),
            owner: self.owner(),
            setup: Arc::new(Callers {
                setup: house.setup.clone().working_in(self.root.clone()),
                model: None,
                provider: None,
                ceiling: Some(self.ceiling),
                root: Some(self.root.clone()),
                withheld: match self.principal {
                    Some(_) => self.own_files.clone(),
                    None => OwnFiles::default(),
                },
            }),
            prompts: saved_prompts(workspace),
        }));
        let own = Arc::clone(&server);
        *self.server.write().unwrap_or_else(PoisonError::into_inner) = Some(own);
        Ok(Resident { house, server })
    }

    /// Whose conversations are shown, and gone on with.
    fn owner(&self) -> String {
        let root = self.root.display();
        match &self.principal {
            Some(principal) => format!("{principal} at the gateway in {root}"),
            None => format!("clients of the gateway in {root}"),
        }
    }

    /// Nobody reaches it any more.
    pub(super) fn move_out(&self) {
        *self.server.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Resident {
    /// Ends all turns, and lets go of the servers.
    pub(super) async fn leave(self) {
        self.server.shutdown().await;
        self.house.close().await;
    }
}

/// Reaches servers through the gateway that this process is.
#[derive(Debug)]
struct Through {
    view: View,
    connections: Connections,
}

impl Connector for Through {
    fn reach<'a>(&'a self, spec: &'a ServerSpec) -> Answer<'a, Result<Reached, ReachError>> {
        let endpoint = self.view.server(spec.name.as_str());
        let reached = match endpoint {
            Some(endpoint) => Ok(self.connections.reach(endpoint)),
            None => Err(not_there(&format!(
                "`{}` is not served by this gateway",
                spec.name
            ))),
        };
        Box::pin(async { reached })
    }
}

fn not_there(message: &str) -> ReachError {
    ReachError {
        kind: ReachErrorKind::Temporary,
        code: Code::UnknownServer.as_str(),
        message: message.to_owned(),
        causes: Vec::new(),
        hints: Vec::new(),
    }
}
