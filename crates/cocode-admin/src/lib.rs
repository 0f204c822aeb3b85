//! The management API of a gateway.
//!
//! Whoever runs a gateway is a [`House`] to it; everything that the house takes and gives is in
//! [`model`], and that is also what the API is described by.

#![deny(missing_docs)]

mod house;
pub mod model;
mod moment;
mod refusal;
mod schema;
mod secret;

pub use house::{CallListener, CallNews, Caller, Credential, Decision, House, Switch, Work};
pub use moment::Moment;
pub use refusal::{Problem, ProblemFacts, Refusal, RefusalStatus};
pub use secret::Secret;
