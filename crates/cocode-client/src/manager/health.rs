//! Notices that a server is dead: by pings while nobody else talks to it, by requests that failed,
//! and by the machine's having slept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cocode_wire::{Closed, LinkError};
use tokio::time::{Instant, sleep_until};

use super::options::Health;
use super::server::Server;
use super::state::{Cause, Trouble};
use super::verdict::{is_for_somebody, needs_somebody};
use crate::clock::{Deadlines, later};
use crate::error::{RequestError, Retry};
use crate::list_cache::ListKind;
use crate::options::RequestOptions;
use crate::session::Session;

/// How often the time of day is compared with the time that passed.
const CLOCK_CHECK: Duration = Duration::from_secs(5);
/// A difference that means that the machine was asleep.
const ASLEEP: Duration = Duration::from_secs(10);

/// Watches a session until it is of no use any more, and says why.
pub(crate) async fn watch(
    server: Arc<Server>,
    session: Session,
    health: Health,
    time_of_day: fn() -> SystemTime,
) -> Trouble {
    let mut failures = 0;
    let mut answered = session.answered();
    let mut next_ping = later(Instant::now(), health.ping_interval);
    let mut renewals = session.renewals();
    let mut clocks = Clocks::read(time_of_day);
    loop {
        let check = Instant::now() + CLOCK_CHECK;
        let reason = tokio::select! {
            () = sleep_until(next_ping) => Reason::Due,
            () = sleep_until(check) => Reason::Clock,
            () = server.suspected.notified() => Reason::Suspected,
        };
        let slept = clocks.slept(time_of_day);
        if renewals != session.renewals() {
            // What changed between the old session on the server and the new one, nobody told.
            renewals = session.renewals();
            server.changes.told(&ListKind::ALL);
        }
        let strict = match reason {
            Reason::Suspected => true,
            _ if slept => {
                tracing::info!(server = %server.name, "the machine was asleep: asking for a sign of life");
                true
            }
            Reason::Clock => continue,
            Reason::Due => false,
        };
        let now_answered = session.answered();
        let talks = now_answered != answered;
        if talks {
            (answered, failures) = (now_answered, 0);
        }
        if !strict && (talks || session.in_flight() > 0) {
            // It talks, or is at work, which is no sign of life: no need to ask now.
            next_ping = later(Instant::now(), health.ping_interval);
            continue;
        }
        match ping(&session, health.ping_timeout).await {
            Ok(()) => failures = 0,
            Err(error) => {
                failures += 1;
                tracing::debug!(server = %server.name, %error, failures, "no sign of life");
                if failures >= health.max_failures || strict && is_conclusive(&error, slept) {
                    return verdict(error);
                }
            }
        }
        answered = session.answered();
        next_ping = later(Instant::now(), health.ping_interval);
    }
}

enum Reason {
    Due,
    Clock,
    Suspected,
}

async fn ping(session: &Session, timeout: Duration) -> Result<(), RequestError> {
    let options = RequestOptions {
        deadlines: Some(Deadlines::fixed(timeout)),
        ..RequestOptions::default()
    };
    match session.ping(options).await {
        Ok(_took) => Ok(()),
        // Whoever refuses is alive.
        Err(RequestError::Rpc { .. }) => Ok(()),
        // Nothing was sent, which says nothing of the server.
        Err(RequestError::Link {
            error: LinkError::Credentials(error),
            ..
        }) if !is_for_somebody(error.kind) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether one failure is enough, where something is suspected already.
fn is_conclusive(error: &RequestError, slept: bool) -> bool {
    let refused = matches!(
        error,
        RequestError::Closed { .. }
            | RequestError::Link {
                error: LinkError::Unreachable { .. },
                ..
            }
    ) || matches!(error, RequestError::Link { error, .. } if needs_somebody(error));
    refused || slept && error.retry() != Retry::Pointless
}

fn verdict(error: RequestError) -> Trouble {
    match error {
        RequestError::Timeout { .. } => Cause::Lost(Closed::Silent).into(),
        other => Cause::Request(Arc::new(other)).into(),
    }
}

/// The two clocks of the machine: only one of them goes on while it sleeps.
struct Clocks {
    monotonic: Instant,
    of_day: SystemTime,
}

impl Clocks {
    fn read(time_of_day: fn() -> SystemTime) -> Self {
        Self {
            monotonic: Instant::now(),
            of_day: time_of_day(),
        }
    }

    /// Whether the machine was asleep since the last look.
    fn slept(&mut self, time_of_day: fn() -> SystemTime) -> bool {
        let now = Self::read(time_of_day);
        let passed = now.monotonic - self.monotonic;
        // A clock that was set back says nothing.
        let of_day = now.of_day.duration_since(self.of_day).unwrap_or_default();
        *self = now;
        of_day > passed + ASLEEP
    }
}
