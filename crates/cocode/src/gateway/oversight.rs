//! What becomes of every call: it is let through by limits, written into the book of calls, and, where
//! that is wanted, into the audit log.

use std::sync::Arc;
use std::time::Duration;

use cocode_access::{
    AuditEntry, AuditLog, AuditOutcome, AuditSlot, CallGuard, LimitReached, Limits, PrincipalId,
    TokenKeeper, Writing,
};
use cocode_admin::model::CallProgress;
use cocode_admin::{CallBook, CallEnding, NewCall, OngoingCall, TurnedAway};
use cocode_gateway::{Counted, Deed, Ongoing, Outcome, Overseer, Settling};
use cocode_wire::{RawJson, RpcError, code};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

/// What is said of a call that is one too many.
pub(crate) const LIMIT_REACHED: &str = "limit-reached";

/// Arguments that are written down, in bytes; of larger ones, it is written how large they were.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// How long an answer waits for what was done to be written down.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);

/// What watches over the calls of all principals.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) calls: CallBook,
    pub(crate) limits: Limits,
    /// Where calls are written down, if they are or may be.
    pub(crate) audit: Option<Arc<Audit>>,
}

/// An audit log, and how much is written down.
#[derive(Debug)]
pub(crate) struct Audit {
    pub(crate) log: AuditLog,
    pub(crate) with_arguments: bool,
    pub(super) since: Since,
}

/// From when on calls are written down.
#[derive(Debug)]
pub(super) enum Since {
    /// From the first one on.
    Always,
    /// As soon as there is a token: from then on there is somebody to hold to account.
    FirstToken(Arc<TokenKeeper>),
}

/// Watches over the calls of one principal.
#[derive(Debug)]
pub(crate) struct Oversight {
    watch: Watch,
    principal: PrincipalId,
}

impl Watch {
    /// Where calls are written down now, if they are.
    pub(crate) fn audit(&self) -> Option<&Arc<Audit>> {
        self.audit.as_ref().filter(|audit| audit.is_wanted())
    }

    /// Watches over whoever needs not say who they are.
    pub(crate) fn over_owner(&self) -> Arc<Oversight> {
        self.over(PrincipalId::local())
    }

    /// Watches over a principal.
    pub(crate) fn over(&self, principal: PrincipalId) -> Arc<Oversight> {
        Arc::new(Oversight {
            watch: self.clone(),
            principal,
        })
    }
}

impl Audit {
    /// Whether what is done now is written down.
    pub(crate) fn is_wanted(&self) -> bool {
        match &self.since {
            Since::Always => true,
            Since::FirstToken(tokens) => tokens.is_needed(),
        }
    }
}

impl Oversight {
    /// What will be said of a deed.
    fn entry(&self, deed: &Deed<'_>, audit: &Audit) -> AuditEntry {
        let arguments = deed.arguments.filter(|_| audit.with_arguments);
        AuditEntry {
            principal: Some(self.principal.to_string()),
            client: deed.client.map(str::to_owned),
            server: deed.server.map(ToString::to_string),
            name: Some(deed.name.to_owned()).filter(|name| !name.is_empty()),
            arguments: arguments.map(written),
            ..AuditEntry::now(deed.method, AuditOutcome::Cancelled)
        }
    }

    /// Writes down that a limit keeps somebody from something, in the book and in the audit log.
    fn limited(&self, deed: &Deed<'_>, reached: &LimitReached) -> RpcError {
        let call = self.watch.calls.begin(self.call(deed));
        call.end(CallEnding::Denied(reached.to_string()));
        self.watch.calls.turn_away(TurnedAway::Limit);
        if let Some(audit) = self.watch.audit() {
            audit.log.write_limited(self.entry(deed, audit));
        }
        let seconds = reached.retry_after.as_secs();
        let data = json!({ "reason": LIMIT_REACHED, "retryAfterSeconds": seconds });
        RpcError {
            code: code::INTERNAL_ERROR,
            message: reached.to_string(),
            data: RawJson::of(&data).ok(),
        }
    }

    /// A deed as the book has it.
    fn call(&self, deed: &Deed<'_>) -> NewCall {
        NewCall {
            principal: self.principal.to_string(),
            server: deed.server.map(ToString::to_string),
            method: deed.method.to_owned(),
            name: deed.name.to_owned(),
        }
    }
}

impl Overseer for Oversight {
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        let Watch { calls, limits, .. } = &self.watch;
        let audit = self.watch.audit();
        // Before it counts: what cannot be written down is not done.
        let slot = audit.map(|audit| audit.log.reserve()).transpose();
        let slot = slot.map_err(|unavailable| {
            // The log itself has said that it cannot be written, once and not for every call.
            tracing::debug!(why = unavailable.why, "a call is refused");
            let what = "this gateway writes down every call, and cannot do so now: try again later";
            RpcError::new(code::INTERNAL_ERROR, what)
        })?;
        // Which server has what somebody may not use is nothing that they may find out by its limits.
        let server = deed.server.filter(|_| deed.is_served);
        let guard = if deed.goes_on {
            limits.count(&self.principal, server).map(|()| None)
        } else {
            limits.begin(&self.principal, server).map(Some)
        };
        let guard = guard.map_err(|reached| self.limited(deed, &reached))?;
        let call = calls.begin(self.call(deed));
        let entry = audit.map(|audit| self.entry(deed, audit));
        Ok(Box::new(Watched {
            call: Some(call),
            record: slot.zip(entry).map(|(slot, entry)| Record {
                slot,
                entry,
                begun: Instant::now(),
            }),
            guard,
        }))
    }

    fn count(&self, deed: &Deed<'_>) -> Result<(), RpcError> {
        let counted = self.watch.limits.count(&self.principal, deed.server);
        counted.map_err(|reached| self.limited(deed, &reached))
    }
}

/// Arguments as they are written down.
fn written(arguments: &RawJson) -> String {
    let text = arguments.as_str();
    if text.len() > MAX_ARGUMENT_BYTES {
        return format!("\"({} bytes)\"", text.len());
    }
    text.to_owned()
}

/// A call that goes on. Dropped before it has ended, it was given up by its client, which is written
/// down, too.
struct Watched {
    call: Option<OngoingCall>,
    record: Option<Record>,
    /// Counts it among what goes on; not if something else does.
    guard: Option<CallGuard>,
}

/// What is to be written down.
struct Record {
    slot: AuditSlot,
    entry: AuditEntry,
    begun: Instant,
}

impl Record {
    fn write_before_answer(self, outcome: AuditOutcome, code: Option<i64>, bytes: u64) -> Writing {
        let (slot, entry) = self.ended(outcome, code, bytes);
        slot.write_before_answer(entry)
    }

    fn ended(
        self,
        outcome: AuditOutcome,
        code: Option<i64>,
        bytes: u64,
    ) -> (AuditSlot, AuditEntry) {
        let entry = AuditEntry {
            at: std::time::SystemTime::now(),
            outcome,
            code,
            bytes,
            took: self.begun.elapsed(),
            ..self.entry
        };
        (self.slot, entry)
    }
}

/// What `notifications/progress` says.
#[derive(Deserialize)]
struct Report {
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

impl Ongoing for Watched {
    fn progress(&self, params: &RawJson) {
        // What is no progress is passed on to the client all the same.
        if let (Ok(told), Some(call)) = (params.decode::<Report>(), &self.call) {
            let Report {
                progress,
                total,
                message,
            } = told;
            call.progress(CallProgress {
                progress,
                total,
                message,
            });
        }
    }

    fn allowed(&self) {
        if let Some(call) = &self.call {
            call.allowed();
        }
    }

    fn keep_counting(&mut self) -> Option<Counted> {
        self.guard.take().map(|guard| Box::new(guard) as Counted)
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        let _written_later = self.ended_before_answer(outcome);
    }

    fn ended_before_answer(mut self: Box<Self>, outcome: Outcome) -> Option<Settling> {
        let (record, call) = (self.record.take(), self.call.take());
        let (ending, kind, code, bytes) = match outcome {
            Outcome::Ok { bytes } => {
                let bytes = counted(bytes);
                (CallEnding::Ok { bytes }, AuditOutcome::Ok, None, bytes)
            }
            Outcome::ToolError { bytes } => {
                let bytes = counted(bytes);
                let ending = CallEnding::ToolError { bytes };
                (ending, AuditOutcome::ToolError, None, bytes)
            }
            Outcome::Error { code, message } => {
                let ending = CallEnding::Error(message);
                (ending, AuditOutcome::Error, Some(code), 0)
            }
            Outcome::AsksForInput => {
                let ending = CallEnding::Ok { bytes: 0 };
                (ending, AuditOutcome::AsksForInput, None, 0)
            }
            Outcome::Denied => {
                let ending = CallEnding::Denied("this call is not allowed".to_owned());
                (ending, AuditOutcome::Denied, None, 0)
            }
        };
        if let Some(call) = call {
            call.end(ending);
        }
        let writing = record?.write_before_answer(kind, code, bytes);
        Some(Box::pin(writing.wait(WRITTEN_WITHIN)))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(record) = self.record.take() {
            let (slot, entry) = record.ended(AuditOutcome::Cancelled, None, 0);
            slot.write(entry);
        }
    }
}

fn counted(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
