//! The management API of a gateway.
//!
//! Whoever runs a gateway is a [`House`] to it; everything that the house takes and gives is in
//! [`model`], and that is also what the API is described by. A [`Desk`] is made first: the house
//! publishes what happens to its [`Bulletin`], keeps its [`CallBook`] and puts questions of servers into
//! its [`Inbox`]. [`Admin::new`] takes both. [`Admin::answer`] then answers every request that is not
//! part of MCP: the routes below `/api/v1`, `/healthz`, `/readyz`, `/metrics`, and the files of the
//! dashboard. Who makes a request is for the caller to say ([`Who`]), but for cookies, which are looked
//! at here.

#![deny(missing_docs)]

mod admin;
mod ask;
mod bulletin;
mod call_book;
mod calling;
mod codes;
mod cookie;
mod events;
mod files;
mod guard;
mod headers;
mod house;
mod inbox;
mod metrics;
pub mod model;
mod moment;
mod openapi;
mod parameter;
mod random;
mod refusal;
mod reply;
mod route;
mod routes;
mod schema;
mod secret;
mod sessions;
mod sse;
mod whole;

pub use admin::{Admin, AdminOptions, Answering, Desk};
pub use bulletin::{
    Bulletin, KEPT_FOR_RETURN, MAX_EVENT_BYTES_KEPT, MAX_EVENTS_KEPT, MAX_LISTENERS, News,
};
pub use call_book::{
    CallBook, CallEnding, MAX_CALLS_KEPT, MAX_COUNTED_SERVERS, NewCall, OTHER_SERVERS, OngoingCall,
    TurnedAway,
};
pub use codes::{CODE_LIFETIME, GUESS_WINDOW, MAX_GUESSES};
pub use cookie::SESSION_COOKIE;
pub use guard::{CSRF_HEADER, OPERATOR, Who};
pub use house::{
    Act, CallListener, CallNews, Caller, Credential, Decision, House, Record, Switch, Work,
};
pub use inbox::{
    Inbox, LONGEST_WAIT, MAX_QUESTIONS, PendingQuestion, Question, QuestionKind, Reply,
};
pub use moment::Moment;
pub use refusal::{Problem, ProblemFacts, Refusal, RefusalStatus};
pub use route::{MAX_BODY_BYTES, MAX_CALL_BYTES};
pub use secret::Secret;
pub use sessions::{MAX_SESSIONS, SESSION_IDLE, SESSION_LIFETIME};
pub use whole::Whole;
