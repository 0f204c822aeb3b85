//! `cocode mcp serve --agent`: the agent on the standard streams of this process, for other programs.

mod limits;

use std::path::PathBuf;
use std::sync::Arc;

use cocode_agent::Settings;
use cocode_agent::serve::{
    AgentServer, AgentServerOptions, Asked, SavedPrompts, Setup, SetupError,
};
use cocode_core::{SandboxMode, nearest};
use cocode_wire::serve::stdio;
use serde_json::{Map, Value};

use self::limits::Limits;
use super::{AgentSetup, Defaults, Granted, House, Wishes};
use crate::args::serve::ServeArgs;
use crate::error::{CliError, Code, Exit};
use crate::gateway::own_files::OwnFiles;
use crate::interrupt::Interrupts;
use crate::serve::options;
use crate::session::on_runtime;
use crate::workspace::Workspace;

/// What `config` of the tool `cocode` may set.
const CONFIG_KEYS: &[&str] = &[
    "model",
    "provider",
    "network",
    "writable_roots",
    "max_steps",
    "instructions",
];

pub(crate) fn run(args: &ServeArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    on_runtime(workspace, serve(args, workspace))
}

async fn serve(args: &ServeArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    workspace.warn_of_files(workspace.config()?);
    let mut house = House::open(workspace, Defaults::SERVER, |_| {}).await?;
    house.follow(workspace)?;
    let server = server(&house, args, workspace)?;
    let mut signaled = None;
    let shutdown = async {
        signaled = Some(interrupts.next().await);
        // Whoever waits for a turn is answered before the streams end.
        server.shutdown().await;
    };
    let closed = stdio(&server, options(), shutdown).await;
    tracing::debug!(%closed, "the client is served no longer");
    server.shutdown().await;
    house.close().await;
    Ok(signaled.unwrap_or(Exit::Ok))
}

/// The agent as a server of this workspace.
fn server(house: &House, args: &ServeArgs, workspace: &Workspace) -> Result<AgentServer, CliError> {
    let here = workspace.places.directory.as_deref();
    let here = here.ok_or_else(|| {
        CliError::new(Code::SetupFailed, "the current directory is gone")
            .hint("start it in a directory that exists")
    })?;
    // Callers with full access are not bound to a directory either.
    let ceiling = args.max_sandbox.unwrap_or(SandboxMode::WorkspaceWrite);
    let ceiling = (ceiling < SandboxMode::DangerFullAccess).then_some(ceiling);
    let root = ceiling.map(|_| std::fs::canonicalize(here));
    let root = root.transpose().map_err(|error| {
        let message = format!("the agent cannot work in {}", here.display());
        CliError::new(Code::FileError, message).because(&error)
    })?;
    Ok(AgentServer::new(AgentServerOptions {
        agent: house.agent.clone(),
        owner: format!("MCP clients in {}", here.display()),
        setup: Arc::new(Callers {
            setup: house.setup.clone(),
            model: args.model.clone(),
            provider: args.provider.clone(),
            ceiling,
            root,
            withheld: OwnFiles::default(),
        }),
        prompts: saved_prompts(workspace),
    }))
}

/// Where prompts are saved: beside the configuration of the user.
pub(crate) fn saved_prompts(workspace: &Workspace) -> SavedPrompts {
    SavedPrompts::new([workspace.places.user.join("prompts")])
}

/// Decides what callers get of what they ask for.
#[derive(Debug)]
pub(crate) struct Callers {
    pub(crate) setup: AgentSetup,
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
    /// The most that any of them gets.
    pub(crate) ceiling: Option<SandboxMode>,
    /// The directory that they have to stay in, if any.
    pub(crate) root: Option<PathBuf>,
    /// What nothing that they write in may expose.
    pub(crate) withheld: OwnFiles,
}

impl Setup for Callers {
    fn settings(&self, asked: &Asked) -> Result<Settings, SetupError> {
        let wishes = self.wishes(asked)?;
        if let (Some(mode), Some(ceiling)) = (wishes.sandbox, self.ceiling)
            && mode > ceiling
        {
            return Err(wrong(
                format!("`sandbox` is `{mode}`, and here it may be `{ceiling}` at most"),
                "ask for less, or start this server with a higher `--max-sandbox`",
            ));
        }
        let profile = wishes.profile.as_deref();
        let configured = self.setup.configured(profile).map_err(told)?;
        let settings = self.setup.settings(&wishes).map_err(told)?;
        self.limits(configured).of_new(settings)
    }

    fn resumed(&self, was: Settings) -> Result<Settings, SetupError> {
        let settings = self.setup.kept(&was).map_err(told)?;
        let configured = self.setup.configured_at_most();
        self.limits(configured).of_kept(settings)
    }
}

impl Callers {
    fn limits(&self, configured: Granted) -> Limits<'_> {
        Limits {
            ceiling: self.ceiling,
            root: self.root.as_deref(),
            withheld: &self.withheld,
            configured,
        }
    }

    fn wishes(&self, asked: &Asked) -> Result<Wishes, SetupError> {
        let Asked {
            model,
            profile,
            cwd,
            approval,
            sandbox,
            config,
            base_instructions,
            developer_instructions,
            compact_prompt,
        } = asked;
        let more = More::read(config)?;
        let told = [more.instructions, developer_instructions.clone()];
        let told: Vec<String> = told.into_iter().flatten().collect();
        Ok(Wishes {
            model: model
                .clone()
                .or(more.model)
                .or_else(|| self.model.clone().filter(|_| profile.is_none())),
            provider: more
                .provider
                .or_else(|| self.provider.clone().filter(|_| profile.is_none())),
            profile: profile.clone(),
            approval: *approval,
            sandbox: *sandbox,
            network: more.network,
            cwd: cwd.clone(),
            writable: more.writable_roots,
            base_instructions: base_instructions.clone(),
            developer_instructions: (!told.is_empty()).then(|| told.join("\n\n")),
            compact_prompt: compact_prompt.clone(),
            max_steps: more.max_steps,
        })
    }
}

/// What `config` sets.
#[derive(Debug, Default)]
struct More {
    model: Option<String>,
    provider: Option<String>,
    network: Option<bool>,
    writable_roots: Vec<PathBuf>,
    max_steps: Option<u32>,
    instructions: Option<String>,
}

impl More {
    fn read(config: &Map<String, Value>) -> Result<Self, SetupError> {
        let mut more = Self::default();
        for (key, value) in config {
            // The names of the table that they are in may be written or left out.
            let short = key.strip_prefix("agent.").unwrap_or(key);
            let text = || value.as_str().map(str::to_owned);
            let is_taken = match short {
                "model" => set(&mut more.model, text()),
                "provider" => set(&mut more.provider, text()),
                "instructions" => set(&mut more.instructions, text()),
                "network" => set(&mut more.network, value.as_bool()),
                "max_steps" => {
                    let steps = value.as_u64().filter(|steps| *steps > 0);
                    set(
                        &mut more.max_steps,
                        steps.and_then(|steps| u32::try_from(steps).ok()),
                    )
                }
                "writable_roots" => match paths(value) {
                    Some(paths) => {
                        more.writable_roots = paths;
                        true
                    }
                    None => false,
                },
                _ => return Err(unknown_key(key)),
            };
            if !is_taken {
                return Err(wrong(
                    format!("`config.{key}` has a value that it cannot have"),
                    "docs/agent.md says what each key takes",
                ));
            }
        }
        Ok(more)
    }
}

fn set<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let is_taken = value.is_some();
    *place = value;
    is_taken
}

fn paths(value: &Value) -> Option<Vec<PathBuf>> {
    let paths = value.as_array()?.iter();
    paths.map(|path| path.as_str().map(PathBuf::from)).collect()
}

fn unknown_key(key: &str) -> SetupError {
    let shown: String = key.chars().take(60).collect();
    let near = nearest(key, CONFIG_KEYS.iter().copied());
    let near = near.first().map(|near| format!("; did you mean `{near}`?"));
    wrong(
        format!("`config` has no key `{shown}`{}", near.unwrap_or_default()),
        &format!("it takes: {}", CONFIG_KEYS.join(", ")),
    )
}

fn wrong(message: String, hint: &str) -> SetupError {
    let hints = vec![hint.to_owned()];
    SetupError { message, hints }
}

fn told(error: CliError) -> SetupError {
    let what = std::iter::once(error.message).chain(error.causes);
    SetupError {
        message: what.collect::<Vec<_>>().join(": "),
        hints: error.hints,
    }
}
