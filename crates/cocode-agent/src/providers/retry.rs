//! Asks again when a provider cannot answer for now, and gives up in time.

use std::time::Duration;

use cocode_core::Dialect;
use tokio::time::{Instant, sleep};

use crate::provider::{Delta, ModelRequest, Provider, ProviderError, Reply, Work};

/// How often one request is made at most.
const MAX_ATTEMPTS: u32 = 6;

/// After this, counted from the first attempt, none begins.
const MAX_TIME: Duration = Duration::from_mins(10);

/// The longest wait that a provider may ask for; who asks for more wants us to go.
const MAX_NAMED_WAIT: Duration = Duration::from_mins(2);

/// The wait after the first failure, if the provider names none. It doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest wait of our own choice.
const MAX_OWN_WAIT: Duration = Duration::from_secs(32);

/// As much is added to a wait at most, as a share of it: many who failed at once come back apart.
const JITTER: f64 = 0.25;

/// A provider that is asked again.
#[derive(Debug)]
pub struct Retrying<P> {
    provider: P,
    attempts: u32,
}

impl<P: Provider> Retrying<P> {
    /// Asks this one.
    pub fn new(provider: P) -> Self {
        Self {
            provider,
            attempts: MAX_ATTEMPTS,
        }
    }

    /// Asks again at most so often.
    #[must_use]
    pub fn with_retries(self, retries: u32) -> Self {
        Self {
            attempts: retries.saturating_add(1),
            ..self
        }
    }

    async fn persist(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ProviderError> {
        let begun = Instant::now();
        let mut attempt = 1;
        loop {
            let error = match self.provider.reply(request, &mut *on_delta).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let Some(after) = wait(&error, attempt) else {
                return Err(error);
            };
            if attempt >= self.attempts || begun.elapsed() + after > MAX_TIME {
                return Err(error);
            }
            tracing::debug!(provider = self.name(), attempt, ?after, %error, "asking again");
            let why = error.to_string();
            on_delta(Delta::Restart { why, after });
            sleep(after).await;
            attempt += 1;
        }
    }
}

impl<P: Provider> Provider for Retrying<P> {
    fn name(&self) -> &str {
        self.provider.name()
    }

    fn dialect(&self) -> Dialect {
        self.provider.dialect()
    }

    fn reply<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> Work<'a, Result<Reply, ProviderError>> {
        Box::pin(self.persist(request, on_delta))
    }
}

/// How long to wait before the next attempt, or nothing if that is of no use.
fn wait(error: &ProviderError, attempt: u32) -> Option<Duration> {
    let named = match error {
        ProviderError::RateLimited { retry_after, .. }
        | ProviderError::Failing { retry_after, .. } => *retry_after,
        ProviderError::Unreachable { .. } => None,
        // What was said is worth more than another attempt.
        ProviderError::BrokeOff { said, .. } if said.is_empty() => None,
        ProviderError::BrokeOff { .. }
        | ProviderError::TooLong { .. }
        | ProviderError::Unauthorized { .. }
        | ProviderError::UnknownModel { .. }
        | ProviderError::Rejected { .. }
        | ProviderError::NotUnderstood { .. } => return None,
    };
    match named {
        Some(named) => (named <= MAX_NAMED_WAIT).then_some(named),
        None => Some(own_wait(attempt)),
    }
}

fn own_wait(attempt: u32) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
    doubled
        .min(MAX_OWN_WAIT)
        .mul_f64(1.0 + JITTER * fastrand::f64())
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
