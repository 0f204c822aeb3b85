//! What a conversation is held with: what is wished for, else what the profile says, else what the
//! configuration says, within what the organization allows.

use std::path::{Path, PathBuf};

use cocode_agent::{ModelChoice, Settings};
use cocode_config::{AgentBounds, AgentProfile, AgentSettings, Setting};
use cocode_core::{ApprovalPolicy, SandboxMode, nearest};

use crate::args::agent::AgentArgs;
use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// What whoever begins a conversation asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) approval: Option<ApprovalPolicy>,
    pub(crate) sandbox: Option<SandboxMode>,
    pub(crate) network: Option<bool>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) base_instructions: Option<String>,
    pub(crate) developer_instructions: Option<String>,
    pub(crate) compact_prompt: Option<String>,
    pub(crate) max_steps: Option<u32>,
}

/// What holds where nobody says anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) approval: ApprovalPolicy,
    pub(crate) sandbox: SandboxMode,
}

impl Defaults {
    /// Somebody sits at a terminal, and can be asked.
    pub(crate) const TERMINAL: Self = Self {
        approval: ApprovalPolicy::OnRequest,
        sandbox: SandboxMode::WorkspaceWrite,
    };
    /// A script, which nobody watches.
    pub(crate) const SCRIPT: Self = Self {
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::ReadOnly,
    };
    /// Another program, which may be able to ask somebody.
    pub(crate) const SERVER: Self = Self {
        approval: ApprovalPolicy::OnRequest,
        sandbox: SandboxMode::ReadOnly,
    };
}

/// Turns wishes into settings.
#[derive(Clone, Debug)]
pub(crate) struct AgentSetup {
    agent: AgentSettings,
    bounds: AgentBounds,
    directory: PathBuf,
    home: Option<PathBuf>,
    defaults: Defaults,
}

impl From<&AgentArgs> for Wishes {
    fn from(args: &AgentArgs) -> Self {
        let AgentArgs {
            model,
            provider,
            profile,
            approval_policy,
            sandbox,
            network,
            cd,
            add_dir,
        } = args;
        Self {
            model: model.clone(),
            provider: provider.clone(),
            profile: profile.clone(),
            approval: *approval_policy,
            sandbox: *sandbox,
            network: network.then_some(true),
            cwd: cd.clone(),
            writable: add_dir.clone(),
            ..Self::default()
        }
    }
}

impl AgentSetup {
    pub(crate) fn new(workspace: &Workspace, defaults: Defaults) -> Result<Self, CliError> {
        let config = workspace.config()?;
        let directory = workspace.places.directory.clone().ok_or_else(|| {
            CliError::new(Code::SetupFailed, "the current directory is gone")
                .hint("change to a directory that exists, or name one with `--cd`")
        })?;
        Ok(Self {
            agent: config.settings.agent.clone(),
            bounds: config.agent_bounds(),
            directory,
            home: workspace.environment.homes.home.clone(),
            defaults,
        })
    }

    /// The same, where whoever names no directory works in this one.
    #[must_use]
    pub(crate) fn working_in(self, directory: PathBuf) -> Self {
        Self { directory, ..self }
    }

    /// The configuration of agents.
    pub(crate) fn agent(&self) -> &AgentSettings {
        &self.agent
    }

    /// What a conversation is held with.
    pub(crate) fn settings(&self, wishes: &Wishes) -> Result<Settings, CliError> {
        let profile = wishes.profile.as_deref();
        let profile = profile.map(|name| self.profile(name)).transpose()?;
        let (approval, sandbox) = (
            self.approval(wishes, profile)?,
            self.sandbox(wishes, profile)?,
        );
        let network = wishes
            .network
            .or(profile.and_then(|profile| profile.network));
        let told = [
            profile.and_then(|profile| profile.instructions.clone()),
            wishes.developer_instructions.clone(),
        ];
        let told: Vec<String> = told.into_iter().flatten().collect();
        Ok(Settings {
            cwd: self.cwd(wishes.cwd.as_deref())?,
            model: ModelChoice {
                model: wishes.model.clone().or_else(|| profile?.model.clone()),
                provider: wishes
                    .provider
                    .clone()
                    .or_else(|| profile?.provider.clone()),
            },
            approval,
            sandbox,
            network: network.unwrap_or(self.agent.network.value),
            writable: self.writable(wishes),
            base_instructions: wishes.base_instructions.clone(),
            developer_instructions: (!told.is_empty()).then(|| told.join("\n\n")),
            compact_prompt: wishes.compact_prompt.clone(),
            max_steps: wishes
                .max_steps
                .or(profile.and_then(|profile| profile.max_steps)),
        })
    }

    /// What a conversation goes on with: as it was, but for what is wished for, and within what the
    /// organization allows now.
    pub(crate) fn resumed(&self, wishes: &Wishes, was: &Settings) -> Result<Settings, CliError> {
        let wished = Wishes {
            approval: wishes.approval.or_else(|| self.still(was.approval)),
            sandbox: wishes.sandbox.or_else(|| self.still_in(was.sandbox)),
            cwd: wishes.cwd.clone().or_else(|| Some(was.cwd.clone())),
            ..wishes.clone()
        };
        let now = self.settings(&wished)?;
        let is_profile = wishes.profile.is_some();
        Ok(Settings {
            model: ModelChoice {
                model: now.model.model.or_else(|| was.model.model.clone()),
                provider: now.model.provider.or_else(|| was.model.provider.clone()),
            },
            network: if wishes.network.is_some() || is_profile {
                now.network
            } else {
                was.network
            },
            writable: if wishes.writable.is_empty() {
                was.writable.clone()
            } else {
                now.writable
            },
            base_instructions: now
                .base_instructions
                .or_else(|| was.base_instructions.clone()),
            developer_instructions: now
                .developer_instructions
                .or_else(|| was.developer_instructions.clone()),
            compact_prompt: now.compact_prompt.or_else(|| was.compact_prompt.clone()),
            max_steps: now.max_steps.or(was.max_steps),
            cwd: now.cwd,
            approval: now.approval,
            sandbox: now.sandbox,
        })
    }

    /// What was allowed when a conversation began may not be any more.
    fn still(&self, policy: ApprovalPolicy) -> Option<ApprovalPolicy> {
        let objection = self.bounds.objection_to_policy(policy);
        objection.is_none().then_some(policy)
    }

    fn still_in(&self, mode: SandboxMode) -> Option<SandboxMode> {
        let objection = self.bounds.objection_to_sandbox(mode);
        objection.is_none().then_some(mode)
    }

    fn profile(&self, name: &str) -> Result<&AgentProfile, CliError> {
        let profiles = &self.agent.profiles;
        profiles.get(name).ok_or_else(|| {
            let message = format!("there is no profile `{name}` in `[agent.profiles]`");
            let error = CliError::new(Code::InvalidUsage, message);
            let known: Vec<&str> = profiles.keys().map(String::as_str).collect();
            match nearest(name, known.iter().copied()).first() {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None if known.is_empty() => error.hint("no profiles are configured in config.toml"),
                None => error.hint(format!("there are: {}", known.join(", "))),
            }
        })
    }

    fn approval(
        &self,
        wishes: &Wishes,
        profile: Option<&AgentProfile>,
    ) -> Result<ApprovalPolicy, CliError> {
        let asked = wishes.approval.or_else(|| profile?.approval_policy);
        if let Some(policy) = asked {
            return match self.bounds.objection_to_policy(policy) {
                Some(objection) => Err(blocked(&objection)),
                None => Ok(policy),
            };
        }
        let mut usual = self.agent.clone();
        if usual.approval_policy.from.is_none() {
            usual.approval_policy = unsaid(self.defaults.approval);
        }
        Ok(self.bounds.applied_to(&usual).approval_policy.value)
    }

    fn sandbox(
        &self,
        wishes: &Wishes,
        profile: Option<&AgentProfile>,
    ) -> Result<SandboxMode, CliError> {
        let asked = wishes.sandbox.or_else(|| profile?.sandbox);
        if let Some(mode) = asked {
            return match self.bounds.objection_to_sandbox(mode) {
                Some(objection) => Err(blocked(&objection)),
                None => Ok(mode),
            };
        }
        let mut usual = self.agent.clone();
        if usual.sandbox.from.is_none() {
            usual.sandbox = unsaid(self.defaults.sandbox);
        }
        Ok(self.bounds.applied_to(&usual).sandbox.value)
    }

    fn cwd(&self, wished: Option<&Path>) -> Result<PathBuf, CliError> {
        let path = wished.map_or_else(|| self.directory.clone(), |path| self.directory.join(path));
        let found = std::fs::canonicalize(&path).map_err(|error| {
            let message = format!("the directory {} cannot be worked in", path.display());
            CliError::new(Code::FileError, message).because(&error)
        })?;
        if !found.is_dir() {
            let message = format!("{} is no directory", path.display());
            return Err(CliError::new(Code::FileError, message));
        }
        Ok(found)
    }

    fn writable(&self, wishes: &Wishes) -> Vec<PathBuf> {
        let home = self.home.as_deref().unwrap_or_else(|| Path::new("/"));
        let configured = self.agent.writable_in(home);
        let given = wishes.writable.iter().map(|path| self.directory.join(path));
        configured.into_iter().chain(given).collect()
    }
}

fn unsaid<T>(value: T) -> Setting<T> {
    Setting { value, from: None }
}

fn blocked(objection: &str) -> CliError {
    CliError::new(Code::BlockedByPolicy, objection.to_owned())
        .hint("`cocode policy check` shows what is allowed")
}
