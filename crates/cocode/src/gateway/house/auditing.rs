//! What those who look after the gateway do is written down like calls are, and what was written down
//! can be read.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cocode_access::{AuditEntry, AuditOutcome, AuditSlot};
use cocode_admin::{Caller, Record, Refusal, RefusalStatus};
use cocode_client::RawJson;
use tokio::time::timeout;

use super::interior::Interior;
use crate::gateway::oversight::Audit;

/// What stands before the methods of the management API.
const PREFIX: &str = "gateway/";
/// What those do who have not shown who they are.
const SIGN_IN: &str = "sign-in";
/// The program that asks.
pub(super) const CLIENT: &str = "management API";
/// How long the log may take to be read, and what waits to be written first.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// Entries that are given at once.
const MAX_ENTRIES: usize = 10_000;

/// Something that somebody who looks after the gateway does.
#[derive(Debug)]
pub(super) struct Act {
    method: &'static str,
    by: Option<String>,
    server: Option<String>,
    name: Option<String>,
}

impl Act {
    pub(super) fn new(method: &'static str, by: &Caller) -> Self {
        Self {
            method,
            by: Some(by.name.to_string()),
            server: None,
            name: None,
        }
    }

    /// To a server.
    pub(super) fn on(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// To something else of this name.
    pub(super) fn about(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl From<&cocode_admin::Act<'_>> for Act {
    fn from(act: &cocode_admin::Act<'_>) -> Self {
        Self {
            method: act.method,
            by: act.by.map(|by| by.name.to_string()),
            server: act.server.map(str::to_owned),
            name: act.name.map(str::to_owned),
        }
    }
}

/// An act that goes on. If whoever asked for it leaves, it may be done nevertheless, so that is written
/// down, too.
pub(super) struct Ongoing {
    act: Act,
    began: Instant,
    outcome: AuditOutcome,
    place: Option<(Arc<Audit>, AuditSlot)>,
}

impl Record for Ongoing {
    fn ended(mut self: Box<Self>, is_done: bool) {
        self.outcome = if is_done {
            AuditOutcome::Ok
        } else {
            AuditOutcome::Error
        };
    }

    fn forget(mut self: Box<Self>) {
        self.place = None;
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        // Not before it is over: the first token is what makes a gateway write down what is done.
        let place = self.place.take();
        let Some((_, slot)) = place.filter(|(audit, _)| audit.is_wanted()) else {
            return;
        };
        let method = format!("{PREFIX}{}", self.act.method);
        slot.write(AuditEntry {
            principal: self.act.by.take(),
            client: Some(CLIENT.to_owned()),
            server: self.act.server.take(),
            name: self.act.name.take(),
            took: self.began.elapsed(),
            ..AuditEntry::now(method, self.outcome)
        });
    }
}

impl Interior {
    /// Does something, and writes down who did it and what came of it. What could not be written down is
    /// not done.
    pub(super) async fn written_down<T>(
        &self,
        act: Act,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let ongoing = Box::new(self.begin(act)?);
        let outcome = work.await;
        ongoing.ended(outcome.is_ok());
        outcome
    }

    /// Begins to write something down.
    pub(super) fn begin(&self, act: Act) -> Result<Ongoing, Refusal> {
        let is_stranger = act.by.is_none() || act.method == SIGN_IN;
        let reserve = |audit: &Arc<Audit>| {
            let slot = audit.log.reserve();
            let slot = slot.map_err(|error| {
                // What is wrong with its files is nothing for strangers.
                let message = if is_stranger {
                    "nobody can sign in now: it could not be written down; the log of the gateway says why"
                        .to_owned()
                } else {
                    error.to_string()
                };
                unavailable(message)
            })?;
            Ok((Arc::clone(audit), slot))
        };
        Ok(Ongoing {
            act,
            began: Instant::now(),
            outcome: AuditOutcome::Cancelled,
            place: self.watch.audit.as_ref().map(reserve).transpose()?,
        })
    }

    /// The newest first. Where nothing is written down, there is nothing.
    pub(super) async fn audit(&self, limit: usize) -> Result<Vec<RawJson>, Refusal> {
        let Some(audit) = self.watch.audit().map(|audit| &audit.log) else {
            return Ok(Vec::new());
        };
        // What was just done is to be seen.
        let flushed = audit.flush(READ_WITHIN).await;
        flushed.map_err(|error| unavailable(error.to_string()))?;
        let lines = timeout(READ_WITHIN, audit.ledger().recent(limit.min(MAX_ENTRIES))).await;
        let lines = lines.map_err(|_elapsed| {
            unavailable("the audit log takes too long to be read".to_owned())
        })?;
        let lines = lines.map_err(|error| unavailable(cocode_client::chain(&error)))?;
        let lines = lines.iter().map(|line| {
            RawJson::parse(line.text().to_owned()).map_err(|error| {
                unavailable(format!("a line of the audit log is no JSON: {error}"))
            })
        });
        lines.collect()
    }
}

fn unavailable(message: String) -> Refusal {
    Refusal::new(RefusalStatus::Unavailable, "audit-unavailable", message)
}
