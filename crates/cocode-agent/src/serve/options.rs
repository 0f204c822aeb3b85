//! What the server is made of, and the seam to whoever knows the configuration.

use std::sync::Arc;

use super::arguments::Asked;
use super::prompts::SavedPrompts;
use crate::agent::Agent;
use crate::record::Settings;

/// What an [`AgentServer`](super::AgentServer) is made of.
#[derive(Clone)]
pub struct AgentServerOptions {
    /// Holds the conversations.
    pub agent: Agent,
    /// Whose conversations they are: nobody else's are listed, read, or gone on with.
    pub owner: String,
    /// What conversations are held with.
    pub setup: Arc<dyn Setup>,
    /// The prompts that are offered.
    pub prompts: SavedPrompts,
}

/// Turns what a caller asks for into what a conversation is held with. Whoever implements it has the
/// configuration, its profiles, and the ceilings that no caller gets over.
pub trait Setup: Send + Sync {
    /// The settings of a conversation that begins. Called from the task of the conversation, and may
    /// read files.
    fn settings(&self, asked: &Asked) -> Result<Settings, SetupError>;

    /// The settings of a conversation that goes on, which was begun with these: under other ceilings,
    /// maybe. As they are, unless somebody knows better.
    fn resumed(&self, settings: Settings) -> Result<Settings, SetupError> {
        Ok(settings)
    }
}

/// What a caller asks for cannot be had, and this is what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SetupError {
    /// What is wrong, with the name of the argument.
    pub message: String,
    /// What to do about it, each a sentence.
    pub hints: Vec<String>,
}

impl std::fmt::Debug for AgentServerOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("AgentServerOptions")
            .field("agent", &self.agent)
            .field("owner", &self.owner)
            .field("prompts", &self.prompts)
            .finish_non_exhaustive()
    }
}
