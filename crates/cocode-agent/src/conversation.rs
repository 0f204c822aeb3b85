//! One conversation: what was said, and the turns by which it goes on.

mod allowance;
mod asking;
mod calling;
mod compacting;
mod tools;
mod turn;

use cocode_client::{Manager, SandboxState, Searcher, ToolboxOptions};

use crate::agent::{Agent, AgentError};
use crate::belt::{Belt, BeltOptions, Hands, SandboxHost};
use crate::model::Usage;
use crate::provider::Chosen;
use crate::record::{Record, Settings};
use crate::store::{ConversationId, Lease, StoreError};
use crate::temporary::{remove_temporary, temporary_directory};
use crate::transcript::Transcript;

pub use turn::TurnEnd;

/// A conversation that is held by this process. Dropping it lets go; nothing is lost by that.
#[derive(Debug)]
pub struct Conversation {
    agent: Agent,
    lease: Lease,
    pub(crate) transcript: Transcript,
    /// The tools, and what they were made for.
    belt: Option<(Made, Belt)>,
    /// Tools that a person has allowed for this conversation.
    allowed: std::collections::BTreeSet<String>,
    /// What the project wants agents to know, as it was when the turn began.
    notes: Option<String>,
}

/// What tools are made for: they are made anew if it is another.
#[derive(Clone, Debug, PartialEq)]
struct Made {
    settings: Settings,
    provider: String,
    window: u64,
}

impl Conversation {
    pub(crate) fn new(agent: Agent, lease: Lease, transcript: Transcript) -> Self {
        Self {
            agent,
            lease,
            transcript,
            belt: None,
            allowed: std::collections::BTreeSet::new(),
            notes: None,
        }
    }

    /// Its name.
    pub fn id(&self) -> &ConversationId {
        self.lease.id()
    }

    /// What it is held with.
    pub fn settings(&self) -> &Settings {
        &self.transcript.settings
    }

    /// All that it took.
    pub fn usage(&self) -> Usage {
        self.transcript.usage
    }

    /// All that it cost in US dollars, as far as prices are known.
    pub fn cost(&self) -> f64 {
        self.transcript.cost
    }

    /// What a person has allowed for good in it: it is let go with the conversation.
    pub(crate) fn allowed(&self) -> &std::collections::BTreeSet<String> {
        &self.allowed
    }

    /// Takes up again what a person has allowed before.
    pub(crate) fn allow(&mut self, allowed: std::collections::BTreeSet<String>) {
        self.allowed.extend(allowed);
    }

    /// Goes on with other settings.
    pub async fn change(&mut self, settings: Settings) -> Result<(), AgentError> {
        if settings != self.transcript.settings {
            self.record(Record::Changed { settings }).await?;
        }
        Ok(())
    }

    /// Ends it for good: nobody can go on with it, but it can be read.
    pub async fn close(mut self) -> Result<(), AgentError> {
        self.record(Record::Closed).await?;
        if let Some(state) = self.agent.options().state_directory.clone() {
            self.belt = None;
            let id = self.lease.id().clone();
            let removal = tokio::task::spawn_blocking(move || remove_temporary(&state, &id));
            if let Err(error) = removal.await {
                tracing::warn!(%error, "cannot remove temporary directory");
            }
        }
        Ok(())
    }

    /// Stores what happened, and takes note of it. Nothing follows from anything before this.
    pub(crate) async fn record(&mut self, record: Record) -> Result<u64, StoreError> {
        let number = self
            .agent
            .options()
            .store
            .append(&self.lease, &record)
            .await?;
        self.transcript.add(number, &record);
        Ok(number)
    }

    /// The tools, made for a model.
    fn belt(&mut self, chosen: &Chosen) -> Result<&mut Belt, AgentError> {
        let made = Made {
            settings: self.transcript.settings.clone(),
            provider: chosen.provider.name().to_owned(),
            window: chosen.model.context_window,
        };
        // Tools that are not used again are gone before others take their temporary directory.
        let belt = self.belt.take().filter(|(before, _)| *before == made);
        let belt = if let Some((_, belt)) = belt {
            belt
        } else {
            let agent = &self.agent;
            if let Some(manager) = &agent.options().manager {
                tell_sandbox(manager, &self.transcript.settings);
            }
            make_belt(
                agent,
                Some(self.lease.id()),
                &self.transcript.settings,
                chosen,
            )?
        };
        let (_, belt) = self.belt.insert((made, belt));
        Ok(belt)
    }
}

/// The tools of a conversation with these settings, made for a model.
fn make_belt(
    agent: &Agent,
    id: Option<&ConversationId>,
    settings: &Settings,
    chosen: &Chosen,
) -> Result<Belt, AgentError> {
    let options = agent.options();
    let state = options.state_directory.as_deref();
    let host = SandboxHost {
        environment: &options.environment,
        state,
        config: options.config_directory.as_deref(),
        temporary: state
            .zip(id)
            .map(|(state, id)| temporary_directory(state, id)),
    };
    let mut toolbox = ToolboxOptions::new(chosen.provider.dialect());
    toolbox.policy = options.search;
    toolbox.on_list_changed = options.search_on_list_changed;
    toolbox.searcher = Searcher {
        context_window: Some(chosen.model.context_window),
        calls_tools: chosen.model.tools,
    };
    toolbox.always_load = options.always_load.iter().cloned().collect();
    Ok(Belt::new(BeltOptions {
        hands: Hands::open(settings, &host)?,
        manager: options.manager.clone(),
        toolbox,
        rules: std::sync::Arc::clone(&options.rules),
        limits: options.output,
    }))
}

/// Lets servers know what this conversation may touch, which is the last that anybody does with them.
fn tell_sandbox(manager: &Manager, settings: &Settings) {
    let state = SandboxState {
        mode: settings.sandbox,
        network: settings.network,
        writable_roots: settings.writable.clone(),
        directory: settings.cwd.clone(),
    };
    match state.to_json() {
        Ok(state) => manager.set_sandbox_state(state),
        Err(error) => tracing::warn!(%error, "servers are not told of the sandbox"),
    }
}
