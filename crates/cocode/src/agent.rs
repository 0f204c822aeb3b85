//! The agent as this program makes it: models, rules, servers and the store, from the configuration.

mod allotment;
pub(crate) mod exec;
mod following;
mod house;
mod known_models;
mod models;
mod rules;
pub(crate) mod served;
pub(crate) mod sessions;
mod setup;

pub(crate) use allotment::Allotment;
pub(crate) use house::{House, conversations_in};
pub(crate) use setup::{AgentSetup, Defaults, Granted, Wishes};

use std::path::PathBuf;

use cocode_agent::AgentError;

use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// Whose conversations are that are held at a terminal or by a script: the user's own.
pub(crate) const OWN: &str = "you";

/// Where conversations are kept.
pub(crate) fn store_file(workspace: &Workspace) -> PathBuf {
    let state = &workspace.places.state;
    state.join("conversations").join("conversations.db")
}

/// Why a conversation does not begin or go on, as this program says it.
pub(crate) fn trouble(error: &AgentError) -> CliError {
    match error {
        AgentError::Choice(choice) => {
            let mut told = CliError::new(Code::NoModel, choice.message.clone());
            told.hints.clone_from(&choice.hints);
            told
        }
        AgentError::Store(_) | AgentError::Closed(_) | AgentError::NotCompacted(_) => {
            CliError::new(Code::ConversationFailed, error.to_string())
                .hint("`cocode sessions list` shows what there is")
        }
        other => CliError::new(Code::FileError, "the agent cannot begin").because(other),
    }
}
