//! The agent as a server: clients of both eras, a model that follows a script, tools that are real.

mod approvals;
mod canceling;
mod client;
mod conversations;
mod hand;
mod parking;
mod progress;
mod prompts;
mod protocol;
mod resources;
mod sampling;
mod sandbox;
mod wrong;

use std::sync::{Arc, Mutex};

use cocode_agent::serve::{
    AgentServer, AgentServerOptions, Asked, SavedPrompts, Setup, SetupError,
};
use cocode_agent::{Agent, Settings};
use cocode_core::{ApprovalPolicy, SandboxMode};

use crate::puppet::{Puppet, Scene};

/// A server over an agent whose model follows a script.
pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) server: Arc<AgentServer>,
    pub(crate) setup: Arc<PlainSetup>,
}

/// Settings as they are asked for, in one directory.
pub(crate) struct PlainSetup {
    base: Settings,
    pub(crate) asked: Mutex<Vec<Asked>>,
    /// What conversations may do that go on, or why they may not.
    pub(crate) ceiling: Mutex<Option<Result<SandboxMode, SetupError>>>,
}

impl Setup for PlainSetup {
    fn settings(&self, asked: &Asked) -> Result<Settings, SetupError> {
        self.asked.lock().unwrap().push(asked.clone());
        if let Some(profile) = &asked.profile {
            return Err(SetupError {
                message: format!("`profile`: there is no profile `{profile}`."),
                hints: vec!["Profiles are in the configuration.".to_owned()],
            });
        }
        let mut settings = self.base.clone();
        if let Some(cwd) = &asked.cwd {
            settings.cwd = settings.cwd.join(cwd);
        }
        settings.approval = asked.approval.unwrap_or(settings.approval);
        settings.sandbox = asked.sandbox.unwrap_or(settings.sandbox);
        Ok(settings)
    }

    fn resumed(&self, mut settings: Settings) -> Result<Settings, SetupError> {
        if let Some(ceiling) = self.ceiling.lock().unwrap().clone() {
            settings.sandbox = settings.sandbox.min(ceiling?);
        }
        Ok(settings)
    }
}

impl Stage {
    /// Everything may be done unasked.
    pub(crate) fn free() -> Self {
        Self::new(ApprovalPolicy::Never, SandboxMode::DangerFullAccess)
    }

    /// A person is asked about everything that does more than read.
    pub(crate) fn asking() -> Self {
        Self::new(ApprovalPolicy::Untrusted, SandboxMode::DangerFullAccess)
    }

    pub(crate) fn new(approval: ApprovalPolicy, sandbox: SandboxMode) -> Self {
        Self::of(Scene::new(), approval, sandbox)
    }

    pub(crate) fn of(scene: Scene, approval: ApprovalPolicy, sandbox: SandboxMode) -> Self {
        let setup = Arc::new(PlainSetup {
            base: scene.settings(approval, sandbox),
            asked: Mutex::default(),
            ceiling: Mutex::default(),
        });
        let server = serving(&scene.agent, "ann", &setup, &scene);
        Self {
            scene,
            server,
            setup,
        }
    }

    /// Another server over the same store, for somebody.
    pub(crate) fn server_of(&self, owner: &str) -> Arc<AgentServer> {
        serving(&self.scene.agent, owner, &self.setup, &self.scene)
    }

    pub(crate) fn puppet(&self) -> &Puppet {
        &self.scene.puppet
    }
}

fn serving(agent: &Agent, owner: &str, setup: &Arc<PlainSetup>, scene: &Scene) -> Arc<AgentServer> {
    let prompts = scene.directory.path().join("prompts");
    Arc::new(AgentServer::new(AgentServerOptions {
        agent: agent.clone(),
        owner: owner.to_owned(),
        setup: Arc::<PlainSetup>::clone(setup),
        prompts: SavedPrompts::new([prompts]),
    }))
}
