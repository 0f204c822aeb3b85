//! Where questions go that the client of a call cannot answer: the seam to whoever puts them to a
//! person by another way.

use std::sync::Arc;
use std::time::SystemTime;

use cocode_core::ServerName;
use cocode_wire::{RawJson, RpcError};
use futures_util::future::BoxFuture;

/// Takes questions of servers, and consents that rules want, which the client of a call cannot put to
/// anybody. What a server wants of a model or of folders never comes here.
pub trait Inbox: Send + Sync + 'static {
    /// Whether somebody may read it. Asked often, so it must be quick.
    fn is_open(&self) -> bool;

    /// Asks. Gives the result of an elicitation: an object with its `action`, and `content` where that
    /// is `accept`. When the future is dropped, nobody waits for the answer any more: the call was
    /// given up, or its time is over.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<RawJson, RpcError>>;
}

/// A question for a person. Everything in it but the names may be the words of a server, and is not to
/// be trusted.
#[derive(Clone, Debug)]
pub struct Question {
    /// For whom the view is whose client made the call.
    pub principal: Option<Arc<str>>,
    /// The server that asks, or that is to be called.
    pub server: ServerName,
    /// The tool, if a call of one is what it is about.
    pub tool: Option<Arc<str>>,
    /// The call that a rule wants somebody to allow, if that is what it is about. The words are ours
    /// then.
    pub consent: Option<Consent>,
    /// What is wanted.
    pub mode: QuestionMode,
    /// What the person is told.
    pub message: String,
    /// What the content of the answer is to look like, in a form.
    pub requested_schema: Option<RawJson>,
    /// The address to be visited, where that is wanted.
    pub url: Option<String>,
    /// When nobody waits for the answer any more.
    pub deadline: SystemTime,
}

/// A call that is not made before somebody allows it.
#[derive(Clone, Debug)]
pub struct Consent {
    /// What the client that wants to make it calls itself.
    pub client: Option<String>,
    /// The arguments, as the client wrote them.
    pub arguments: Option<RawJson>,
    /// Why somebody is asked, in the words of whoever made the rules.
    pub reason: Option<String>,
}

/// What a question wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionMode {
    /// That a form is filled in.
    Form,
    /// That an address is visited.
    Url,
}

impl QuestionMode {
    /// Its name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
        }
    }
}
