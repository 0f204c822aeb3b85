//! Why a call has no result, in words that a person or a model can act on.

use cocode_core::{ServerName, ToolName};
use cocode_wire::chain;

use super::state::{ServerState, StateKind};
use super::verdict::needs_somebody;
use crate::error::{RequestError, Retry};
use crate::schema::Mismatch;

/// Why a call has no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// There is no such tool.
    #[error("there is no tool `{name}`")]
    UnknownTool {
        /// What was asked for.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// There is no such server.
    #[error("there is no server `{name}`")]
    UnknownServer {
        /// What was asked for.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// The arguments do not fit the tool's schema. Nothing was sent.
    #[error("the arguments do not fit `{tool}` of server `{server}`")]
    Arguments {
        /// Whose tool.
        server: ServerName,
        /// Which tool.
        tool: ToolName,
        /// What does not fit.
        #[source]
        mismatch: Mismatch,
    },
    /// The server is not there. Nothing was sent.
    #[error("server `{server}` {}", what(state, *in_time))]
    Unavailable {
        /// Which server.
        server: ServerName,
        /// How it is.
        state: ServerState,
        /// Whether that is settled; otherwise the call did not wait any longer.
        in_time: bool,
    },
    /// Something else than a tool was asked for, such as a resource, and the request failed.
    #[error("`{what}` could not be had of server `{server}`")]
    Asking {
        /// Who was asked.
        server: ServerName,
        /// For what.
        what: String,
        /// What happened.
        #[source]
        error: RequestError,
    },
    /// The call of a tool failed.
    #[error("`{tool}` of server `{server}` failed")]
    Request {
        /// Whose tool.
        server: ServerName,
        /// Which tool.
        tool: ToolName,
        /// What happened.
        #[source]
        error: RequestError,
    },
}

impl CallError {
    /// The stable name of this kind of error; `docs/errors` has a page for each.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownTool { .. } => "unknown-tool",
            Self::UnknownServer { .. } => "unknown-server",
            Self::Arguments { .. } => "invalid-arguments",
            Self::Unavailable { state, .. } => match (state.trouble(), state.kind()) {
                (Some(trouble), _) => trouble.code(),
                (None, StateKind::Disabled) => "server-disabled",
                (None, StateKind::PendingTrust) => "pending-trust",
                (None, _) => "connect-timeout",
            },
            Self::Request { error, .. } | Self::Asking { error, .. } => error.code(),
        }
    }

    /// What a model is told instead of a result: what happened, whether trying again makes sense,
    /// and what to do otherwise.
    pub fn for_model(&self) -> String {
        match self {
            Self::UnknownTool { name, near } => {
                let near = did_you_mean(near);
                format!("There is no tool `{name}`.{near} Use one of the tools that are listed.")
            }
            Self::UnknownServer { name, near } => {
                let near = did_you_mean(near);
                format!("There is no server `{name}`.{near}")
            }
            Self::Arguments { tool, mismatch, .. } => {
                format!(
                    "The arguments do not fit the tool `{tool}`, so it was not called. {mismatch}"
                )
            }
            Self::Unavailable { server, state, .. } => {
                let advice = match state.kind() {
                    StateKind::Starting | StateKind::Reconnecting | StateKind::Stopped => {
                        "It may be there in a moment: try again later, or go on without it."
                    }
                    StateKind::NeedsAuth | StateKind::NeedsClientRegistration => {
                        "Only the user can sign in; go on without it, and tell the user."
                    }
                    StateKind::Disabled | StateKind::PendingTrust => {
                        "Only the user can change that; go on without it."
                    }
                    StateKind::Ready | StateKind::Failed => {
                        "Trying again at once will not help; go on without it, and tell the user."
                    }
                };
                format!("{self}. The tool was not called. {advice} (Server: `{server}`.)")
            }
            Self::Asking { error, .. } => {
                let what = chain(self);
                let advice = match error.retry() {
                    Retry::Safe | Retry::MayHaveRun => "It can be asked for again.",
                    Retry::Pointless => "Asking again would bring the same; do without.",
                };
                format!("{what}. {advice}")
            }
            Self::Request {
                error: RequestError::Link { error, .. },
                ..
            } if needs_somebody(error) => {
                let what = chain(self);
                let advice = "Only the user can sign in, or allow more; go on without it, and tell the user.";
                format!("{what}. {advice}")
            }
            Self::Request { error, .. } => {
                let what = chain(self);
                let advice = match error.retry() {
                    Retry::Safe => "The tool did not run; the call can be made again.",
                    Retry::MayHaveRun => {
                        "The tool may have run or not: find out before calling it again if it changes something."
                    }
                    Retry::Pointless => "The same call would fail again; change it, or do without.",
                };
                format!("{what}. {advice}")
            }
        }
    }
}

fn what(state: &ServerState, in_time: bool) -> String {
    let trouble = state
        .trouble()
        .map(|trouble| format!(": {trouble}"))
        .unwrap_or_default();
    let text = match state.kind() {
        StateKind::Disabled => "is disabled",
        StateKind::PendingTrust => "is not approved yet",
        StateKind::Stopped if !in_time => "did not start in time",
        StateKind::Stopped => "is stopped",
        StateKind::Starting => "is still starting",
        StateKind::Ready => "was lost",
        StateKind::NeedsAuth => "needs authentication",
        StateKind::NeedsClientRegistration => "needs a registered client",
        StateKind::Reconnecting if !in_time => "was not connected again in time",
        StateKind::Reconnecting => "is being connected again",
        StateKind::Failed => "is not available",
    };
    format!("{text}{trouble}")
}

/// A question, if there are names to ask for.
pub(crate) fn did_you_mean(near: &[impl std::fmt::Display]) -> String {
    match near {
        [] => String::new(),
        near => {
            let near: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
            format!(" Did you mean {}?", near.join(" or "))
        }
    }
}
