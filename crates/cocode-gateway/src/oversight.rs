//! Who watches over what clients have servers do: the seam to whoever sets limits and writes down
//! what happened.

use std::any::Any;
use std::pin::Pin;

use cocode_core::ServerName;
use cocode_wire::{RawJson, RpcError};

/// Watches over what clients have servers do: may refuse it, and hears how it went.
///
/// Asked once for every `tools/call`, `resources/read`, `prompts/get`, `completion/complete`,
/// `tasks/result` and `tasks/cancel`, before a server hears of it, also if no server has what is asked
/// for; and for every request with a method that the gateway does not know and passes on. A call that is answered by a question, and comes back with the answer, is asked about each time.
///
/// A call that is answered with a task has ended well with that, and how the task ended is told besides:
/// by its `tasks/result`, or else once, as soon as a `tasks/get` or a notification of the server says that
/// it is over. That is told after the fact, so that to refuse it keeps nobody from anything; it is told
/// again when the task is heard of the next time.
pub trait Overseer: Send + Sync + 'static {
    /// Whether there is anything to watch. One that says no is never asked again.
    fn is_watching(&self) -> bool {
        true
    }

    /// A client is about to have something done. What is refused is not done, and the error is the
    /// answer. Of what is not served ([`Deed::is_served`]) neither server nor name may make a
    /// difference to whether it is refused: that would tell what there is. Must return at once.
    fn begin(&self, deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError>;

    /// Something else is about to be passed on to a server: a question for its lists, or about a task. What is refused is not passed on. Must return at once.
    fn count(&self, _deed: &Deed<'_>) -> Result<(), RpcError> {
        Ok(())
    }
}

/// What is still to be done before a client is answered. It has an end by itself.
pub type Settling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Counts as something that goes on, until it is dropped.
pub type Counted = Box<dyn Any + Send + Sync>;

/// Something that a client has a server do.
#[derive(Clone, Copy, Debug)]
pub struct Deed<'a> {
    /// For whom the view is that the client sees.
    pub principal: Option<&'a str>,
    /// `tools/call`, `resources/read`, `prompts/get`, `completion/complete`, `tasks/result` or
    /// `tasks/cancel`; what has said that a task is over; any other method has its own name.
    pub method: &'a str,
    /// The server that has it, if any has.
    pub server: Option<&'a ServerName>,
    /// Whether it will be done. If not, the client is told that there is no such thing, be it that there
    /// is none, or that the client may not use it.
    pub is_served: bool,
    /// Whether it is about something that a server has worked on all the time, so that it counts among
    /// what goes on already: its client comes back with answers, or asks about a task.
    pub goes_on: bool,
    /// The tool or prompt as its server knows it, or the URI of the resource. For a completion, the
    /// prompt or the template that it is for. For a task, the tool that works on it, or its id where
    /// that is not known. Of what no server has, the name that the client says.
    /// Empty if the client does not say.
    pub name: &'a str,
    /// What is given with it, as the client wrote it; for a task, its id; for a method that is not known,
    /// all parameters.
    pub arguments: Option<&'a RawJson>,
    /// What the client calls itself.
    pub client: Option<&'a str>,
}

/// A deed that goes on. If this is dropped before it has ended, the client has given it up.
pub trait Ongoing: Send + Sync {
    /// The server reports progress, in these words (the parameters of `notifications/progress`).
    /// Heard only if the client wants to hear of it. Must return at once.
    fn progress(&self, _params: &RawJson) {}

    /// Somebody was asked first, has allowed it, and the server is asked only now. Must return at once.
    fn allowed(&self) {}

    /// The server works on, though the deed is about to end: what counts it among what goes on is
    /// kept until the server is done.
    fn keep_counting(&mut self) -> Option<Counted> {
        None
    }

    /// It is over.
    fn ended(self: Box<Self>, outcome: Outcome);

    /// It is over, and its client is answered once what this gives is done.
    fn ended_before_answer(self: Box<Self>, outcome: Outcome) -> Option<Settling> {
        self.ended(outcome);
        None
    }
}

/// How a deed ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is a result.
    Ok {
        /// Its size.
        bytes: usize,
    },
    /// There is a result that says of itself that the tool has failed.
    ToolError {
        /// Its size.
        bytes: usize,
    },
    /// There is none.
    Error {
        /// The code of the error.
        code: i64,
        /// What it says, which may be the words of the server.
        message: String,
    },
    /// The client is to come back with answers.
    AsksForInput,
    /// It was not allowed: by a rule, and the client was told that there is no such thing, or by who was
    /// asked.
    Denied,
}

/// An overseer that does not look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Overseer for Unwatched {
    fn is_watching(&self) -> bool {
        false
    }

    fn begin(&self, _deed: &Deed<'_>) -> Result<Box<dyn Ongoing>, RpcError> {
        Ok(Box::new(Self))
    }
}

impl Ongoing for Unwatched {
    fn ended(self: Box<Self>, _outcome: Outcome) {}
}
