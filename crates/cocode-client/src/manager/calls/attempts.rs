//! How often a call is made: again where that does no harm, and never without need.

use cocode_wire::Closed;
use tokio::time::Instant;

use super::{Work, unavailable};
use crate::clock::later;
use crate::error::{RequestError, Retry};
use crate::features::{Annotations, CallResult};
use crate::manager::call_error::CallError;
use crate::options::RequestOptions;
use crate::session::Session;

/// How often a call is tried, where it may be repeated.
const MAX_ATTEMPTS: u32 = 5;

impl Work<'_> {
    /// Tries until there is a result, or an error that repeating does not help.
    pub(super) async fn attempts(&self) -> Result<(CallResult, u32), CallError> {
        let mut attempt = 1;
        // Nobody knows whether it was carried out, whatever becomes of the next attempt.
        let mut lost: Option<RequestError> = None;
        loop {
            let until = later(self.begun, self.deadlines.idle.min(self.deadlines.total));
            let session = match self.server.current() {
                Some(session) => session,
                None => match Box::pin(self.wait(until)).await {
                    Ok(session) => session,
                    Err(error) => return Err(lost.map_or(error, |lost| self.failed(lost))),
                },
            };
            let error = match self.once(&session).await {
                Ok(result) => return Ok((result, attempt)),
                Err(error) => error,
            };
            self.server.suspect(&error);
            let again_at = self.may_repeat(&error, attempt);
            let again_at = again_at.map(|wait| later(Instant::now(), wait));
            let Some(again_at) = again_at.filter(|at| *at < until) else {
                let was_made = error.retry() != Retry::Safe;
                return Err(self.failed(lost.filter(|_| !was_made).unwrap_or(error)));
            };
            tracing::debug!(server = %self.server.name, %error, attempt, "a call is repeated");
            // Where we ended the connection ourselves, why there is none any more says it all.
            let was_ours = matches!(
                error,
                RequestError::Closed {
                    reason: Closed::ByUs,
                    ..
                }
            );
            if error.retry() == Retry::MayHaveRun && !was_ours {
                lost = Some(error);
            }
            tokio::time::sleep_until(again_at).await;
            attempt += 1;
        }
    }

    async fn once(&self, session: &Session) -> Result<CallResult, RequestError> {
        let options = RequestOptions {
            deadlines: Some(self.deadlines.after(self.begun.elapsed())),
            on_progress: self.context.on_progress.clone(),
            meta: self.context.meta.clone(),
        };
        let name = self.tool.name().as_str();
        session.call_tool(name, self.arguments, options).await
    }

    async fn wait(&self, until: Instant) -> Result<Session, CallError> {
        let session = self.server.session(until).await;
        session.map_err(|error| unavailable(&self.server, error))
    }

    /// How long to wait before the call is made again; nothing if it must not be. A call that the
    /// server may have carried out is repeated only if the tool says that this does no harm, and
    /// never after a deadline.
    fn may_repeat(&self, error: &RequestError, attempt: u32) -> Option<std::time::Duration> {
        let Annotations {
            read_only,
            idempotent,
            ..
        } = self.tool.annotations();
        let harmless = read_only == Some(true) || idempotent == Some(true);
        let repeat = match error.retry() {
            Retry::Safe => true,
            Retry::MayHaveRun => harmless && !matches!(error, RequestError::Timeout { .. }),
            Retry::Pointless => false,
        };
        let backoff = self.shared.options.health.reconnect;
        // What the server asks for is obeyed in full, or the call is not made again.
        let asked = error.retry_after().unwrap_or_default();
        (repeat && attempt < MAX_ATTEMPTS)
            .then(|| backoff.wait(attempt, None, fastrand::f64()).max(asked))
    }
}
