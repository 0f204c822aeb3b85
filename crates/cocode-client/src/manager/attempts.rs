//! Retries of requests that are safe to repeat.

use std::sync::Arc;
use std::time::Duration;

use cocode_wire::Closed;
use tokio::time::Instant;

use super::Backoff;
use super::call_error::CallError;
use super::find::unavailable;
use super::server::Server;
use crate::clock::{Deadlines, later};
use crate::error::{RequestError, Retry};
use crate::features::Annotations;
use crate::session::Session;

/// Maximum number of attempts of a repeatable request.
const MAX_ATTEMPTS: u32 = 5;

/// A request that may have to be sent more than once.
pub(super) trait RepeatableRequest: Sync {
    /// Decoded response.
    type Answer: Send;

    /// Annotations of the called tool. Looked up only after a failed attempt.
    fn annotations(&self) -> Annotations;

    /// Sends it once.
    fn send(
        &self,
        session: &Session,
        deadlines: Deadlines,
    ) -> impl Future<Output = Result<Self::Answer, RequestError>> + Send;

    /// It is about to be sent again, after this.
    fn repeats(&self, error: &RequestError);

    /// The error of its caller.
    fn failed(&self, error: RequestError) -> CallError;
}

/// Deadlines of all attempts together, and the backoff between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetryTiming {
    pub(super) begun: Instant,
    pub(super) deadlines: Deadlines,
    pub(super) backoff: Backoff,
}

/// Sends a request until there is an answer, or an error that repeating does not help. Gives the
/// answer and the number of attempts.
///
/// A request that the server may have carried out is repeated only if the tool says that this does no
/// harm. After a timeout the server may still be at work, so only a read-only one is, and once: its
/// time without progress begins anew, the total time does not.
pub(super) async fn attempts<R: RepeatableRequest>(
    server: &Arc<Server>,
    request: &R,
    timing: RetryTiming,
) -> Result<(R::Answer, u32), CallError> {
    let RetryTiming {
        begun,
        deadlines,
        backoff,
    } = timing;
    let total_end = later(begun, deadlines.total);
    let mut until = later(begun, deadlines.idle).min(total_end);
    let mut attempt = 1;
    let mut has_timed_out = false;
    // The error of an attempt that may have run on the server.
    let mut lost: Option<RequestError> = None;
    loop {
        let session = match server.current() {
            Some(session) => session,
            None => match Box::pin(server.session(until)).await {
                Ok(session) => session,
                Err(error) => {
                    let unavailable = unavailable(server, error);
                    return Err(lost.map_or(unavailable, |lost| request.failed(lost)));
                }
            },
        };
        let left = deadlines.after(begun.elapsed());
        let error = match request.send(&session, left).await {
            Ok(answer) => return Ok((answer, attempt)),
            Err(error) => error,
        };
        server.suspect(&error);
        let is_timeout = matches!(error, RequestError::Timeout { .. });
        let may_repeat = attempt < MAX_ATTEMPTS
            && match error.retry() {
                Retry::Safe => true,
                Retry::MayHaveRun if is_timeout => !has_timed_out && is_read_only(request),
                Retry::MayHaveRun => is_harmless(request),
                Retry::Pointless => false,
            };
        if may_repeat && is_timeout {
            has_timed_out = true;
            until = later(Instant::now(), deadlines.idle).min(total_end);
        }
        // A `Retry-After` of the server is honored in full, or the request is not repeated.
        let asked = error.retry_after().unwrap_or(Duration::ZERO);
        let wait = backoff.wait(attempt, None, fastrand::f64()).max(asked);
        let again_at = later(Instant::now(), wait);
        if !may_repeat || again_at >= until {
            let was_made = error.retry() != Retry::Safe;
            return Err(request.failed(lost.filter(|_| !was_made).unwrap_or(error)));
        }
        tracing::debug!(server = %server.name, %error, attempt, "a request is repeated");
        request.repeats(&error);
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
        Box::pin(tokio::time::sleep_until(again_at)).await;
        attempt += 1;
    }
}

fn is_read_only(request: &impl RepeatableRequest) -> bool {
    request.annotations().read_only == Some(true)
}

fn is_harmless(request: &impl RepeatableRequest) -> bool {
    is_read_only(request) || request.annotations().idempotent == Some(true)
}
