//! A gateway in this process: the files of a user and a project, what a gateway makes of them, and its
//! house.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Duration;

use cocode_access::{
    AuditLog, FileLedger, FileLedgerOptions, MemoryTokenStore, TokenKeeper, WhenFailing,
};
use cocode_admin::model::{Server, ServerState};
use cocode_admin::{Caller, Credential, Desk, House as _, Refusal, Switch};
use cocode_client::ServerLogs;
use cocode_gateway::{Gateway, View, ViewOptions};
use cocode_testkit::Script;
use cocode_wire::serve::{HttpServer, HttpServerOptions};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::args::gateway::BuiltInArgs;
use crate::args::govern::CredentialStoreArg;
use crate::args::tool_search::ToolSearchArgs;
use crate::args::{ConfigArgs, OutputArgs};
use crate::environment::Environment;
use crate::gateway::builtin::BuiltIn;
use crate::gateway::connector::Ways;
use crate::gateway::house::{GatewayHouse, HouseParts};
use crate::gateway::plan::Plan;
use crate::gateway::servers::{Present, Servers};
use crate::gateway::site::Endpoints;
use crate::gateway::voice::Voice;
use crate::managing::{Purpose, Setup};
use crate::printer::Printer;
use crate::reach::Configured;
use crate::serving::Selection;
use crate::serving::gate::Rules;
use crate::tool_search::ToolSearch;
use crate::workspace::Workspace;

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(50);

/// Where a test user lives and works.
pub(super) struct Files {
    scratch: tempfile::TempDir,
    /// Servers that are served, if not all are.
    pub(super) selection: Option<Vec<&'static str>>,
    /// Whether the built-in tools are served for the project.
    pub(super) has_built_in: bool,
}

impl Files {
    pub(super) fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for name in ["home", "project/.git"] {
            std::fs::create_dir_all(scratch.path().join(name)).unwrap();
        }
        Self {
            scratch,
            selection: None,
            has_built_in: false,
        }
    }

    /// With these servers of the user.
    pub(super) fn with(servers: &str) -> Self {
        let files = Self::new();
        files.user("mcp.toml", servers);
        files
    }

    pub(super) fn home(&self) -> PathBuf {
        self.scratch.path().join("home")
    }

    pub(super) fn project_path(&self, name: &str) -> PathBuf {
        self.scratch.path().join("project").join(name)
    }

    /// Writes a file of the user.
    pub(super) fn user(&self, name: &str, text: &str) {
        std::fs::write(self.home().join(name), text).unwrap();
    }

    /// Writes a file of the project.
    pub(super) fn project(&self, name: &str, text: &str) {
        let path = self.project_path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn read_user(&self, name: &str) -> String {
        std::fs::read_to_string(self.home().join(name)).unwrap_or_default()
    }

    fn workspace(&self) -> Workspace {
        let variable = |name: &str, value: &Path| (OsString::from(name), OsString::from(value));
        let variables = [
            variable("COCODE_HOME", &self.home()),
            variable("HOME", self.scratch.path()),
            variable("PATH", Path::new("/usr/bin:/bin")),
        ];
        let environment = Environment::of(variables.into_iter().collect(), None);
        let output = OutputArgs {
            quiet: true,
            ..OutputArgs::default()
        };
        let printer = Arc::new(Printer::new(&output, &environment));
        let directory = Some(self.project_path(""));
        let config = ConfigArgs::default();
        let workspace = Workspace::at(directory, environment, printer, output, &config).unwrap();
        workspace.with_store(CredentialStoreArg::named("file"))
    }
}

/// The entry of a scripted server.
pub(super) fn entry(name: &str, script: &Script, more: &str) -> String {
    let (program, args) = script.command();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let args: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
    let program = quoted(program.to_str().unwrap());
    let args = args.join(", ");
    format!("[mcp_servers.{name}]\ncommand = {program}\nargs = [{args}]\n{more}\n")
}

/// What a scene is played with.
pub(super) struct Stage {
    pub(super) files: Files,
    pub(super) house: Arc<GatewayHouse>,
    pub(super) desk: Desk,
    pub(super) keeper: Arc<TokenKeeper>,
    /// Where clients connect.
    pub(super) url: String,
    pub(super) stopped: Mutex<mpsc::Receiver<()>>,
}

/// Somebody who looks after the gateway.
pub(super) fn ana() -> &'static Caller {
    static ANA: LazyLock<Caller> = LazyLock::new(|| Caller {
        name: "ana".into(),
        by: Credential::Bearer,
    });
    &ANA
}

impl Stage {
    /// The server, once it is connected.
    pub(super) async fn connected(&self, name: &str) -> Server {
        let connected = self.house.switch_server(ana(), name, Switch::Connect).await;
        let connected = connected.unwrap();
        assert_eq!(connected.state, ServerState::Ready, "{connected:?}");
        connected
    }

    /// The server, once it is as wanted.
    pub(super) async fn server_when(
        &self,
        name: &str,
        is_so: impl Fn(&Result<Server, Refusal>) -> bool,
    ) -> Result<Server, Refusal> {
        let waiting = async {
            loop {
                let server = self.house.server(name).await;
                if is_so(&server) {
                    return server;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, waiting).await;
        found.unwrap_or_else(|_| panic!("`{name}` did not become as it should"))
    }

    /// The server, once it is in this state.
    pub(super) async fn server_in(&self, name: &str, state: ServerState) -> Server {
        let is_so = |server: &Result<Server, Refusal>| {
            server.as_ref().is_ok_and(|server| server.state == state)
        };
        self.server_when(name, is_so).await.unwrap()
    }
}

/// Runs a gateway as `cocode gateway` does, for as long as the scene lasts.
pub(super) fn play<'a>(
    files: Files,
    scene: impl AsyncFnOnce(&Stage) + 'a,
) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
    Box::pin(played(files, scene))
}

async fn played(files: Files, scene: impl AsyncFnOnce(&Stage)) {
    let workspace = files.workspace();
    let setup = Setup::new(Purpose::Watching, &workspace).unwrap();
    let plan = plan(&files, &workspace);
    let rules = Arc::new(Rules::of(workspace.config().unwrap(), None));
    let connector = Arc::new(ways(&files, &workspace));
    let manager = setup.options(|options| {
        options.connector = Arc::<Ways>::clone(&connector);
        options.log_level = None;
    });
    let logs = manager.logs.clone();
    let gateway = Gateway::new();
    let view = gateway.view(ViewOptions {
        manager,
        gate: Arc::<Rules>::clone(&rules),
        ..ViewOptions::default()
    });
    let site = Arc::new(Endpoints::new(view.clone()));
    let server = HttpServer::bind(plan.http.clone(), site).unwrap();
    let voice = Voice::new(&plan, server.local_addr(), &workspace.printer);
    let (_watcher, mut changes) = workspace.watch().unwrap();
    let before = Present::before(Arc::new(workspace.reloaded()));
    let (publish, present) = watch::channel(Arc::new(before));
    let url = voice.url();
    let ground = Ground {
        workspace: workspace.anew(),
        view: view.clone(),
        rules: Arc::clone(&rules),
        present,
        logs,
        plan: &plan,
    };
    let stage = Stage::new(files, ground, url.clone()).await;
    stage.house.open(url, server.door());
    let servers = Servers::new(&plan, view, connector, rules, &voice, &workspace);
    let mut servers = servers.publishing(publish);
    servers.apply().await;
    let mut serving = JoinSet::new();
    serving.spawn(server.serve(std::future::pending()));
    let running = async {
        loop {
            tokio::select! {
                Some(()) = changes.recv() => servers.reload().await,
                () = servers.happened() => servers.tell(),
            }
        }
    };
    tokio::select! {
        () = running => {}
        () = scene(&stage) => {}
    }
    drop(stage);
    gateway.finish().await;
}

/// What a house stands on.
struct Ground<'a> {
    workspace: Workspace,
    view: View,
    rules: Arc<Rules>,
    present: watch::Receiver<Arc<Present>>,
    logs: ServerLogs,
    plan: &'a Plan,
}

impl Stage {
    async fn new(files: Files, ground: Ground<'_>, url: String) -> Self {
        let keeper = TokenKeeper::open(Arc::new(MemoryTokenStore::new())).await;
        let keeper = Arc::new(keeper.unwrap());
        let ledger = FileLedger::new(FileLedgerOptions::new(files.home().join("audit")));
        let audit = AuditLog::start(Arc::new(ledger), WhenFailing::Refuse);
        let desk = Desk::new();
        let (stop, stopped) = mpsc::channel(1);
        let house = GatewayHouse::new(HouseParts {
            workspace: ground.workspace,
            view: ground.view,
            rules: ground.rules,
            present: ground.present,
            logs: ground.logs,
            bulletin: desk.bulletin.clone(),
            search: ground.plan.search.options,
            tokens: Some(Arc::clone(&keeper)),
            has_oauth: false,
            audit: Some(Arc::new(audit)),
            stop,
        });
        assert!(!house.readiness().ready);
        Self {
            files,
            house,
            desk,
            keeper,
            url,
            stopped: Mutex::new(stopped),
        }
    }
}

fn ways(files: &Files, workspace: &Workspace) -> Ways {
    let args = BuiltInArgs {
        root: Some(files.project_path("")),
        ..BuiltInArgs::default()
    };
    let built_in = files
        .has_built_in
        .then(|| BuiltIn::wanted(&args, workspace).unwrap());
    Ways {
        configured: Configured::new(workspace).unwrap(),
        built_in: built_in.flatten(),
        agent: None,
        own: OnceLock::new(),
    }
}

fn plan(files: &Files, workspace: &Workspace) -> Plan {
    let settings = &workspace.config().unwrap().settings.tool_search;
    let variables = &workspace.environment.variables;
    let search = ToolSearch::new(ToolSearchArgs::default(), None, settings, variables);
    let servers = files.selection.as_ref();
    let servers = servers.map(|names| names.iter().map(ToString::to_string).collect());
    Plan {
        http: HttpServerOptions::new("127.0.0.1:0".parse().unwrap()),
        selection: Selection { servers },
        prefix: cocode_gateway::Prefix::default(),
        search: search.unwrap(),
    }
}
