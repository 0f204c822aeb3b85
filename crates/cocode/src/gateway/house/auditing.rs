//! What those who look after the gateway do is written down like calls are, and what was written down
//! can be read.

use std::time::{Duration, Instant};

use cocode_access::{AuditEntry, AuditOutcome};
use cocode_admin::{Caller, Refusal, RefusalStatus};
use cocode_client::RawJson;
use tokio::time::timeout;

use super::interior::Interior;

/// What stands before the methods of the management API.
const PREFIX: &str = "gateway/";
/// The program that asks.
const CLIENT: &str = "management API";
/// How long the log may take to be written or read.
const LEDGER_WITHIN: Duration = Duration::from_secs(10);
/// Entries that are given at once.
const MAX_ENTRIES: usize = 10_000;

/// Something that somebody who looks after the gateway does.
#[derive(Debug)]
pub(super) struct Act {
    method: &'static str,
    by: String,
    server: Option<String>,
    name: Option<String>,
}

impl Act {
    pub(super) fn new(method: &'static str, by: &Caller) -> Self {
        Self {
            method,
            by: by.name.to_string(),
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

impl Interior {
    /// Does something, and writes down who did it and what came of it.
    pub(super) async fn written_down<T>(
        &self,
        act: Act,
        work: impl Future<Output = Result<T, Refusal>>,
    ) -> Result<T, Refusal> {
        let began = Instant::now();
        let outcome = work.await;
        if let Some(ledger) = &self.ledger {
            let ended = match outcome {
                Ok(_) => AuditOutcome::Ok,
                Err(_) => AuditOutcome::Error,
            };
            let entry = AuditEntry {
                principal: Some(act.by),
                client: Some(CLIENT.to_owned()),
                server: act.server,
                name: act.name,
                took: began.elapsed(),
                ..AuditEntry::now(format!("{PREFIX}{}", act.method), ended)
            };
            match timeout(LEDGER_WITHIN, ledger.append(&[entry])).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::error!(%error, "what was done is not written down"),
                Err(_elapsed) => tracing::error!("the audit log takes long to be written"),
            }
        }
        outcome
    }

    /// The newest first. Where nothing is written down, there is nothing.
    pub(super) async fn audit(&self, limit: usize) -> Result<Vec<RawJson>, Refusal> {
        let Some(ledger) = &self.ledger else {
            return Ok(Vec::new());
        };
        let unavailable = |message: String| {
            Refusal::new(RefusalStatus::Unavailable, "audit-unavailable", message)
        };
        let lines = timeout(LEDGER_WITHIN, ledger.recent(limit.min(MAX_ENTRIES))).await;
        let lines = lines.map_err(|_elapsed| {
            unavailable("the audit log takes too long to be read".to_owned())
        })?;
        let lines = lines.map_err(|error| unavailable(cocode_client::chain(&error)))?;
        let lines = lines.iter().map(|line| {
            let text = line.text().to_owned();
            RawJson::parse(text).map_err(|error| {
                unavailable(format!("a line of the audit log is no JSON: {error}"))
            })
        });
        lines.collect()
    }
}
