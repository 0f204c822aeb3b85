//! Which tools may be seen and called: decided by whoever runs the gateway.

use cocode_client::Annotations;
use cocode_core::{ServerName, Verdict};
use tokio::sync::watch;

/// Decides about tools. Asked for every call, so it must be quick.
pub trait Gate: Send + Sync + 'static {
    /// Whether nothing is ever refused, and nobody has to ask.
    fn is_open(&self) -> bool {
        false
    }

    /// Counts how often what is decided has changed, for gates that change their minds. Without it,
    /// lists are taken to stay as they are.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// What is to be done about a tool.
    fn decide(&self, server: &ServerName, tool: &str, annotations: Annotations) -> Verdict;

    /// Why that is decided, for whoever is asked to allow the call. Not asked for every call.
    fn reason(
        &self,
        _server: &ServerName,
        _tool: &str,
        _annotations: Annotations,
    ) -> Option<String> {
        None
    }
}

/// A gate that stands open.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open;

impl Gate for Open {
    fn is_open(&self) -> bool {
        true
    }

    fn decide(&self, _server: &ServerName, _tool: &str, _annotations: Annotations) -> Verdict {
        Verdict::Allow
    }
}
