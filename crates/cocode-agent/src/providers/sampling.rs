//! The model of the client that called, by `sampling/createMessage` of MCP. Clients of 2025-11-25 and
//! later may take tools; earlier ones take messages of one block each, so that is what those get.

mod request;
mod result;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cocode_core::Dialect;
use tokio::time::timeout;

use super::complaint::shown;
use crate::provider::{Delta, ModelRequest, Provider, ProviderError, Reply, Sampler, Stop, Work};

/// How long a client may take: a person may be asked before and after its model answers.
const MAX_WAIT: Duration = Duration::from_mins(30);

/// What such a provider is made of.
pub struct ClientModelOptions {
    /// What it is called, for people and in the store.
    pub name: String,
    /// Asks the client.
    pub sampler: Arc<dyn Sampler>,
    /// Names of models, or parts of names, in the order of preference. The client may ignore them.
    pub hints: Vec<String>,
}

/// The model of the client that called.
pub struct ClientModel {
    name: String,
    sampler: Arc<dyn Sampler>,
    hints: Vec<String>,
}

impl ClientModel {
    /// Asks nobody yet.
    pub fn new(options: ClientModelOptions) -> Self {
        let ClientModelOptions {
            name,
            sampler,
            hints,
        } = options;
        Self {
            name,
            sampler,
            hints,
        }
    }

    async fn ask(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ProviderError> {
        let params = request::params(&request, &self.hints, self.sampler.takes_tools());
        let rejected = |message: &str| ProviderError::Rejected {
            provider: self.name.clone(),
            status: 0,
            message: shown(message),
        };
        let asking = timeout(MAX_WAIT, self.sampler.create_message(params));
        let answer = asking.await.map_err(|_elapsed| {
            let minutes = MAX_WAIT.as_secs() / 60;
            rejected(&format!(
                "the client gave no answer within {minutes} minutes"
            ))
        })?;
        let answer = answer.map_err(|why| rejected(&why))?;
        let reply = result::read(&answer).map_err(|why| ProviderError::NotUnderstood {
            provider: self.name.clone(),
            why: shown(&why),
        })?;
        result::tell(&reply, on_delta);
        if reply.content.is_empty() && reply.stop == Stop::Done {
            tracing::debug!(provider = self.name, "the model of the client said nothing");
        }
        Ok(reply)
    }
}

impl Provider for ClientModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        Dialect::Plain
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        Box::pin(self.ask(request, on_delta))
    }
}

impl fmt::Debug for ClientModelOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientModelOptions")
            .field("name", &self.name)
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientModel")
            .field("name", &self.name)
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}
