//! What becomes of every call: it is let through by limits, written into the book of calls, and, where
//! that is wanted, into the audit log.

use cocode_admin::model::CallProgress;
use cocode_admin::{CallBook, CallEnding, NewCall, OngoingCall};
use cocode_gateway::{Deed, Ongoing, Outcome, Overseer};
use cocode_wire::{RawJson, RpcError};
use serde::Deserialize;

/// Who made a call where nobody is asked who they are.
const LOCAL: &str = "local";

/// Watches over calls.
#[derive(Debug)]
pub(crate) struct Oversight {
    calls: CallBook,
}

impl Oversight {
    pub(crate) fn new(calls: CallBook) -> Self {
        Self { calls }
    }
}

impl Overseer for Oversight {
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        let call = self.calls.begin(NewCall {
            principal: deed.principal.unwrap_or(LOCAL).to_owned(),
            server: deed.server.to_string(),
            method: deed.method.to_owned(),
            name: deed.name.to_owned(),
        });
        Ok(Box::new(Watched { call }))
    }
}

/// A call that goes on.
struct Watched {
    call: OngoingCall,
}

/// What `notifications/progress` says.
#[derive(Deserialize)]
struct Progress {
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

impl Ongoing for Watched {
    fn progress(&self, params: &RawJson) {
        // What is no progress is passed on to the client all the same.
        if let Ok(Progress {
            progress,
            total,
            message,
        }) = params.decode()
        {
            self.call.progress(CallProgress {
                progress,
                total,
                message,
            });
        }
    }

    fn ended(self: Box<Self>, outcome: Outcome) {
        self.call.end(match outcome {
            Outcome::Ok { bytes } => CallEnding::Ok {
                bytes: counted(bytes),
            },
            Outcome::ToolError { bytes } => CallEnding::ToolError {
                bytes: counted(bytes),
            },
            Outcome::Error { message, .. } => CallEnding::Error(message),
            Outcome::AsksForInput => CallEnding::Ok { bytes: 0 },
            Outcome::Denied => CallEnding::Denied("a rule denies this tool".to_owned()),
        });
    }
}

fn counted(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
