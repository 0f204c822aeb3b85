//! What a conversation is held with: what is wished for, else what the profile says, else what the
//! configuration says, within what the organization allows.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use cocode_agent::{ModelChoice, Settings};
use cocode_config::{AgentBounds, AgentProfile, AgentSettings, Config, Problem, Setting};
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// The least, for where what somebody said cannot be read and may have been meant to forbid something.
    /// Who cannot be asked is not asked because of that.
    fn careful(self) -> Self {
        let approval = match self.approval {
            ApprovalPolicy::Never => ApprovalPolicy::Never,
            ApprovalPolicy::Untrusted | ApprovalPolicy::OnRequest | ApprovalPolicy::OnFailure => {
                ApprovalPolicy::Untrusted
            }
        };
        Self {
            approval,
            sandbox: SandboxMode::ReadOnly,
        }
    }
}

/// Turns wishes into settings. Clones share what the configuration says, and its changes.
#[derive(Clone, Debug)]
pub(crate) struct AgentSetup {
    current: Arc<RwLock<Arc<Current>>>,
    directory: PathBuf,
    home: Option<PathBuf>,
    defaults: Defaults,
}

/// What the configuration and the organization say now.
#[derive(Debug)]
struct Current {
    agent: AgentSettings,
    bounds: AgentBounds,
    /// Something in the files is broken, which may have been meant to make agents stricter.
    is_broken: bool,
}

/// What the configuration itself gives, whatever anybody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) network: bool,
    pub(crate) writable: Vec<PathBuf>,
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
            current: Arc::new(RwLock::new(Arc::new(Current::of(config)))),
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

    /// From now on this configuration counts.
    pub(crate) fn replace(&self, config: &Config) {
        let current = Arc::new(Current::of(config));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
    }

    fn current(&self) -> Arc<Current> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// The configuration of agents.
    pub(crate) fn agent(&self) -> AgentSettings {
        self.current().agent.clone()
    }

    /// What the configuration gives to whoever uses this profile, or none.
    pub(crate) fn configured(&self, profile: Option<&str>) -> Result<Granted, CliError> {
        let current = self.current();
        let profile = profile.map(|name| current.profile(name)).transpose()?;
        let network = profile.and_then(|profile| profile.network);
        Ok(Granted {
            network: network.unwrap_or(current.agent.network.value),
            writable: self.configured_roots(&current),
        })
    }

    /// The most that the configuration gives to whoever may use any profile.
    pub(crate) fn configured_at_most(&self) -> Granted {
        let current = self.current();
        let mut profiles = current.agent.profiles.values();
        Granted {
            network: current.agent.network.value
                || profiles.any(|profile| profile.network == Some(true)),
            writable: self.configured_roots(&current),
        }
    }

    /// What a conversation is held with.
    pub(crate) fn settings(&self, wishes: &Wishes) -> Result<Settings, CliError> {
        let current = self.current();
        let profile = wishes.profile.as_deref();
        let profile = profile.map(|name| current.profile(name)).transpose()?;
        let (approval, sandbox) = (
            current.approval(wishes, profile, self.defaults)?,
            current.sandbox(wishes, profile, self.defaults)?,
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
            network: network.unwrap_or(current.agent.network.value),
            writable: self.writable(&current, wishes),
            base_instructions: wishes.base_instructions.clone(),
            developer_instructions: (!told.is_empty()).then(|| told.join("\n\n")),
            compact_prompt: wishes.compact_prompt.clone(),
            max_steps: wishes
                .max_steps
                .or(profile.and_then(|profile| profile.max_steps)),
        })
    }

    /// What a conversation goes on with: as it was, but for what is wished for. Where this way of use is
    /// stricter now than the conversation was then, that counts: what somebody allowed once, somewhere
    /// else, is not allowed for good.
    pub(crate) fn resumed(&self, wishes: &Wishes, was: &Settings) -> Result<Settings, CliError> {
        let now = self.settings(&Wishes {
            cwd: wishes.cwd.clone().or_else(|| Some(was.cwd.clone())),
            ..wishes.clone()
        })?;
        if wishes.cwd.is_none() {
            check_directory(was, &now)?;
        }
        let current = self.current();
        let profile = wishes.profile.as_deref();
        let profile = profile.map(|name| current.profile(name)).transpose()?;
        let says = |wish: bool, told: fn(&AgentProfile) -> bool| wish || profile.is_some_and(told);
        let (approval, sandbox, network) = (
            says(wishes.approval.is_some(), |profile| {
                profile.approval_policy.is_some()
            }),
            says(wishes.sandbox.is_some(), |profile| {
                profile.sandbox.is_some()
            }),
            says(wishes.network.is_some(), |profile| {
                profile.network.is_some()
            }),
        );
        Ok(Settings {
            approval: if approval {
                now.approval
            } else {
                stricter(was.approval, now.approval)
            },
            sandbox: if sandbox {
                now.sandbox
            } else {
                was.sandbox.min(now.sandbox)
            },
            network: now.network && (network || was.network),
            writable: if wishes.writable.is_empty() {
                let was = was.writable.iter();
                was.filter(|root| now.writable.contains(root))
                    .cloned()
                    .collect()
            } else {
                now.writable.clone()
            },
            ..inherited(now, was)
        })
    }

    /// What a conversation goes on with where whoever began it chose its settings in the same role: as it
    /// was, within what the organization allows now.
    pub(crate) fn kept(&self, was: &Settings) -> Result<Settings, CliError> {
        let current = self.current();
        let now = self.settings(&Wishes {
            approval: current.still(was.approval),
            sandbox: current.still_in(was.sandbox),
            cwd: Some(was.cwd.clone()),
            ..Wishes::default()
        })?;
        check_directory(was, &now)?;
        Ok(Settings {
            network: was.network,
            writable: was.writable.clone(),
            ..inherited(now, was)
        })
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

    fn writable(&self, current: &Current, wishes: &Wishes) -> Vec<PathBuf> {
        let configured = self.configured_roots(current);
        let given = wishes.writable.iter().map(|path| self.directory.join(path));
        configured.into_iter().chain(given).collect()
    }

    fn configured_roots(&self, current: &Current) -> Vec<PathBuf> {
        let home = self.home.as_deref().unwrap_or_else(|| Path::new("/"));
        current.agent.writable_in(home)
    }
}

/// Refuses the directory of a conversation if it leads elsewhere by now: a command may have put a link in its place.
fn check_directory(was: &Settings, now: &Settings) -> Result<(), CliError> {
    if now.cwd == was.cwd {
        return Ok(());
    }
    let (was, now) = (was.cwd.display(), now.cwd.display());
    let message = format!("the directory of this conversation, {was}, has become a link to {now}");
    Err(CliError::new(Code::FileError, message).hint("`-C DIR` names the directory to work in"))
}

impl Current {
    fn of(config: &Config) -> Self {
        Self {
            agent: config.settings.agent.clone(),
            bounds: config.agent_bounds(),
            is_broken: config.problems.iter().any(is_about_settings),
        }
    }

    /// What holds where nobody says anything, as far as the files can be read.
    fn unsaid(&self, defaults: Defaults) -> Defaults {
        if self.is_broken {
            defaults.careful()
        } else {
            defaults
        }
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
            let error = CliError::new(Code::InvalidUsage, message)
                .hint("`cocode config check` says if one is written, and cannot be used");
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
        defaults: Defaults,
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
            usual.approval_policy = unsaid(self.unsaid(defaults).approval);
        }
        Ok(self.bounds.applied_to(&usual).approval_policy.value)
    }

    fn sandbox(
        &self,
        wishes: &Wishes,
        profile: Option<&AgentProfile>,
        defaults: Defaults,
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
            usual.sandbox = unsaid(self.unsaid(defaults).sandbox);
        }
        Ok(self.bounds.applied_to(&usual).sandbox.value)
    }
}

/// What is said now, and what was said then where nothing is said now.
fn inherited(now: Settings, was: &Settings) -> Settings {
    Settings {
        model: ModelChoice {
            model: now.model.model.or_else(|| was.model.model.clone()),
            provider: now.model.provider.or_else(|| was.model.provider.clone()),
        },
        base_instructions: now
            .base_instructions
            .or_else(|| was.base_instructions.clone()),
        developer_instructions: now
            .developer_instructions
            .or_else(|| was.developer_instructions.clone()),
        compact_prompt: now.compact_prompt.or_else(|| was.compact_prompt.clone()),
        max_steps: now.max_steps.or(was.max_steps),
        ..now
    }
}

/// The policy that asks more. Whether anybody can be asked at all is a matter of the way of use, so where
/// only one of them never asks, the present one counts.
fn stricter(was: ApprovalPolicy, now: ApprovalPolicy) -> ApprovalPolicy {
    let rank = |policy| match policy {
        ApprovalPolicy::Untrusted => Some(0),
        ApprovalPolicy::OnRequest => Some(1),
        ApprovalPolicy::OnFailure => Some(2),
        ApprovalPolicy::Never => None,
    };
    match (rank(was), rank(now)) {
        (Some(then), Some(present)) if then < present => was,
        _ => now,
    }
}

/// Whether a problem is one of the settings, so that one may be missing.
fn is_about_settings(problem: &Problem) -> bool {
    let file = problem
        .origin
        .file
        .file_name()
        .and_then(std::ffi::OsStr::to_str);
    let is_settings = file.is_some_and(|name| name.starts_with("config"));
    problem.is_error() && problem.server.is_none() && is_settings
}

fn unsaid<T>(value: T) -> Setting<T> {
    Setting { value, from: None }
}

fn blocked(objection: &str) -> CliError {
    CliError::new(Code::BlockedByPolicy, objection.to_owned())
        .hint("`cocode policy check` shows what is allowed")
}

#[cfg(test)]
mod tests {
    use cocode_core::{ApprovalPolicy, SandboxMode};

    use super::Defaults;

    #[test]
    fn at_a_terminal_the_careful_one_asks_before_anything_and_writes_nothing() {
        let careful = Defaults::TERMINAL.careful();
        assert_eq!(careful.approval, ApprovalPolicy::Untrusted);
        assert_eq!(careful.sandbox, SandboxMode::ReadOnly);
    }

    #[test]
    fn a_script_that_could_write_cannot_and_is_not_asked_all_the_same() {
        let free = Defaults {
            sandbox: SandboxMode::DangerFullAccess,
            ..Defaults::SCRIPT
        };
        assert_eq!(free.careful(), Defaults::SCRIPT);
    }
}
