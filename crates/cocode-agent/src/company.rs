//! Who is there during a turn: who hears of it, and who is asked.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::content::{Block, ToolCall};
use crate::model::Usage;
use crate::provider::{Sampler, Work};
use crate::record::Ending;

/// The company of one turn.
#[derive(Clone)]
pub struct Company {
    /// Hears what happens.
    pub listener: Arc<dyn Listener>,
    /// Is asked before something is done.
    pub approver: Arc<dyn Approver>,
    /// The model of whoever called, if it is offered.
    pub sampler: Option<Arc<dyn Sampler>>,
    /// Interrupts the turn: it ends soon, and says so in the store.
    pub interrupt: CancellationToken,
}

/// Hears what happens in a turn. It is called from the task of the turn, so it must be quick.
pub trait Listener: Send + Sync {
    /// Something happened.
    fn hear(&self, notice: &Notice);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl Listener for NoListener {
    fn hear(&self, _notice: &Notice) {}
}

/// Something that happens in a turn.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The model is asked, for the nth time in this turn (from 1).
    Asking {
        /// Which time.
        step: u32,
        /// Which model.
        model: String,
    },
    /// More text of the model.
    Text(String),
    /// More of what it thinks.
    Reasoning(String),
    /// The model begins to write the call of a tool.
    Writing {
        /// Of this one.
        tool: String,
    },
    /// What was said of this reply so far does not count: the model is asked again.
    Restarting {
        /// Why.
        why: String,
        /// After how long.
        after: Duration,
    },
    /// The model has said all of this.
    Replied {
        /// What.
        content: Vec<Block>,
        /// What it took.
        usage: Usage,
        /// What it cost, if known.
        cost: Option<f64>,
        /// Tokens of the conversation as the model saw it, and of its window.
        context: (u64, u64),
    },
    /// A tool is called.
    CallBegun(ToolCall),
    /// A tool tells how far it is.
    CallProgressed {
        /// The model's name for the call.
        id: String,
        /// How much is done.
        done: f64,
        /// Of how much, if known.
        total: Option<f64>,
        /// In words.
        message: Option<String>,
    },
    /// A call is over.
    CallEnded {
        /// The model's name for the call.
        id: String,
        /// Which tool.
        tool: String,
        /// What the model is told.
        content: Vec<Block>,
        /// It did not do what was asked.
        is_error: bool,
        /// How long it took.
        took: Duration,
    },
    /// The conversation is being summed up, because it is too long.
    Compacting,
    /// It was.
    Compacted {
        /// Tokens before, as estimated.
        before: u64,
        /// Tokens now, as estimated.
        after: u64,
    },
    /// Something that the person should know, and that stops nothing.
    Warning(String),
    /// The turn is over.
    Ended(Ending),
}

/// Is asked before something is done.
pub trait Approver: Send + Sync {
    /// Whether anybody can be asked.
    fn can_ask(&self) -> bool;

    /// Asks. If the future is dropped, nobody wants to know any more.
    fn ask(&self, question: ApprovalQuestion) -> Work<'_, ApprovalAnswer>;
}

/// Asks nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoApprover;

impl Approver for NoApprover {
    fn can_ask(&self) -> bool {
        false
    }

    fn ask(&self, _question: ApprovalQuestion) -> Work<'_, ApprovalAnswer> {
        Box::pin(async { ApprovalAnswer::Unasked })
    }
}

/// May this be done?
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalQuestion {
    /// The model's name for the call.
    pub id: String,
    /// The tool, by the name that the model was shown.
    pub tool: String,
    /// What it would do, in one line.
    pub summary: String,
    /// With what.
    pub arguments: Value,
    /// Why the question is asked, as the end of a sentence.
    pub why: String,
    /// What the model says it needs this for.
    pub justification: Option<String>,
    /// Whether "always" is an answer.
    pub can_remember: bool,
    /// Current content of the file that a call of the built-in `write` would replace.
    pub replaced_text: Option<String>,
    /// Files that other programs execute and that the command has changed. If there are any, the question is
    /// whether to keep the changes; otherwise they are undone.
    pub changed_files: Vec<String>,
}

/// May it?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    /// Yes.
    Once,
    /// Yes, and the like of it from now on.
    Always,
    /// No, and this is what the model is told.
    Refused(Option<String>),
    /// No, and the turn is over.
    Stopped,
    /// Nobody could be asked.
    Unasked,
}

impl std::fmt::Debug for Company {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Company")
            .field("can_ask", &self.approver.can_ask())
            .field("has_sampler", &self.sampler.is_some())
            .finish_non_exhaustive()
    }
}
