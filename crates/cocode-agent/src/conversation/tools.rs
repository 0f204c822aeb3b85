//! What a model is shown of tools, for people who want to know.

use std::sync::Arc;

use cocode_core::ProviderTool;

use super::{Conversation, make_belt};
use crate::agent::{Agent, AgentError};
use crate::provider::Chosen;
use crate::record::Settings;

impl Conversation {
    /// The tools that the model would be shown now, with those that it has found by searching.
    pub async fn tools(&mut self) -> Result<Vec<Arc<ProviderTool>>, AgentError> {
        let chosen = chosen(&self.agent, &self.transcript.settings).await?;
        if !chosen.model.tools {
            return Ok(Vec::new());
        }
        Ok(self.belt(&chosen)?.refresh())
    }
}

impl Agent {
    /// The tools that the model of a new conversation with these settings would be shown.
    pub async fn tools(&self, settings: &Settings) -> Result<Vec<Arc<ProviderTool>>, AgentError> {
        let chosen = chosen(self, settings).await?;
        if !chosen.model.tools {
            return Ok(Vec::new());
        }
        Ok(make_belt(self, None, settings, &chosen)?.refresh())
    }
}

async fn chosen(agent: &Agent, settings: &Settings) -> Result<Chosen, AgentError> {
    let providers = Arc::clone(&agent.options().providers);
    Ok(providers.choose(&settings.model, None).await?)
}
