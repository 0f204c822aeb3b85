//! A gateway in this process: the files of a user and a project, what a gateway makes of them, and its
//! house.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use cocode_access::TokenKeeper;
use cocode_admin::model::{Server, ServerState};
use cocode_admin::{Caller, Credential, House as _, Refusal, Switch};
use cocode_testkit::Script;
use cocode_wire::serve::HttpServerOptions;
use futures_util::StreamExt as _;
use http::{Request, header};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::args::gateway::BuiltInArgs;
use crate::args::govern::CredentialStoreArg;
use crate::args::tool_search::ToolSearchArgs;
use crate::args::{ConfigArgs, OutputArgs};
use crate::daemon::{Floor, Own};
use crate::environment::Environment;
use crate::gateway::builtin::BuiltIn;
use crate::gateway::house::GatewayHouse;
use crate::gateway::management::Pages;
use crate::gateway::opening::{Made, Opened, Within};
use crate::gateway::plan::Plan;
use crate::gateway::principals::Principals;
use crate::gateway::servers::Servers;
use crate::gateway::voice::Voice;
use crate::managing::{Purpose, Setup};
use crate::printer::Printer;
use crate::records::records;
use crate::serving::{Selection, Supervision};
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
    /// The management API and its dashboard.
    pub(super) pages: Arc<Pages>,
    pub(super) keeper: Arc<TokenKeeper>,
    /// Where clients connect.
    pub(super) url: String,
    /// How often somebody wanted the gateway to end.
    pub(super) n_ends: AtomicUsize,
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
    /// What the API tells somebody who signs in for it.
    pub(super) async fn get(&self, path: &str) -> Value {
        let code = serde_json::json!({ "code": self.pages.new_code().unwrap() });
        let sign_in = Request::post("/api/v1/sign-in")
            .header(header::CONTENT_TYPE, "application/json")
            .body(code.to_string().into());
        let signed_in = self.pages.answer(sign_in.unwrap()).await;
        let cookie = signed_in.headers()[header::SET_COOKIE].to_str().unwrap();
        let (cookie, _attributes) = cookie.split_once(';').unwrap();
        let asked = Request::get(path).header(header::COOKIE, cookie);
        let answer = self.pages.answer(asked.body(Bytes::new()).unwrap()).await;
        assert_eq!(answer.status(), 200);
        let pieces: Vec<Bytes> = answer.into_body().into_stream().collect().await;
        serde_json::from_slice(&pieces.concat()).unwrap()
    }

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
    let within = within(&files, &workspace).await;
    let opened = Opened::open(&plan, within, &setup, &workspace).await;
    let Opened {
        gateway,
        made,
        watch,
        door,
        mut management,
        views,
        listening,
    } = opened.unwrap();
    let Made {
        options,
        view,
        ways,
        rules,
    } = made;
    let voice = Voice::new(&plan, listening.address(), &workspace.printer);
    let (_watcher, mut changes) = workspace.watch().unwrap();
    let own = Own {
        url: voice.url(),
        directory: None,
        view: view.clone(),
        supervision: Supervision::default(),
    };
    let shared = (&gateway, &setup, &workspace);
    let principals = Principals::new(shared, (options, Arc::clone(&ways), watch), views);
    let servers = Servers::new((&plan, &voice, &workspace), view, ways, rules, principals);
    let floor = Arc::new(Floor::of(own));
    let mut servers = servers.publishing(management.present());
    assert!(!management.house.readiness().ready);
    servers.apply().await;
    management.open(&plan, &voice, &listening, floor);
    let _serving = listening.serve(&CancellationToken::new());
    let stage = Stage {
        files,
        house: Arc::clone(&management.house),
        pages: Arc::clone(&management.pages),
        keeper: Arc::clone(door.tokens()),
        url: voice.url(),
        n_ends: AtomicUsize::new(0),
    };
    let running = async {
        loop {
            tokio::select! {
                Some(()) = changes.recv() => servers.reload().await,
                happening = servers.happened() => servers.see_to(happening).await,
                () = management.wants_end() => {
                    stage.n_ends.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    tokio::select! {
        () = running => {}
        () = scene(&stage) => {}
    }
    drop(stage);
    servers.leave().await;
    drop((management, door));
    gateway.finish().await;
}

async fn within(files: &Files, workspace: &Workspace) -> Within {
    let args = BuiltInArgs {
        root: Some(files.project_path("")),
        ..BuiltInArgs::default()
    };
    let records = records(workspace).await.unwrap();
    let access = Access::of(&*records, workspace).await.unwrap();
    let built_in = files
        .has_built_in
        .then(|| BuiltIn::wanted(&args, &[], workspace).unwrap());
    Within {
        built_in: built_in.flatten(),
        agent: None,
        access,
        records,
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
        office: None,
        office_url: None,
        metrics: cocode_config::Metrics::Admin,
        selection: Selection { servers },
        prefix: cocode_gateway::Prefix::default(),
        search: search.unwrap(),
        has_principals: false,
        creates_token: false,
        tls_files: Vec::new(),
    }
}
