//! One endpoint for many MCP servers: any client, any server, any protocol revision.
//!
//! A [`Gateway`] runs servers, equal ones once. A [`View`] is what a group of clients sees of them:
//! each server by itself, as it is, and all of them as one. Clients of either era talk to servers of
//! either era; what a server asks goes to the client whose request it is about, or, if that client can
//! put it to nobody, to the [`Inbox`] of the view. A view is for one principal, if it is for one: what
//! its clients have servers do is watched over by its [`Overseer`].

#![deny(missing_docs)]

mod audience;
mod caller;
mod consent;
mod deeds;
mod downstream;
mod ending;
mod following;
mod gate;
mod gateway;
mod headers;
mod heap_trim;
mod hello;
mod inbox;
mod inner_client;
mod instance;
mod instances;
mod judging;
mod level;
mod levels;
mod license;
mod lookalikes;
mod merged;
mod notices;
mod outbox;
mod oversight;
mod parked;
mod party;
mod passing;
mod place;
mod progress;
mod questions;
mod reply;
mod request;
mod results;
mod room;
mod said;
mod searching;
mod served;
mod single;
mod status;
mod traffic;
mod view;
mod witness;

pub use cocode_core::{Prefix, Shadowed};
pub use gate::{Gate, Open};
pub use gateway::Gateway;
pub use inbox::{Consent, Inbox, Question, QuestionMode};
pub use inner_client::{Hearing, InnerClient};
pub use oversight::{Counted, Deed, Ongoing, Outcome, Overseer, Settling, Unwatched};
pub use searching::{Announced, InvalidAnnouncement, SearchOptions};
pub use status::{Running, Sharing, Terms};
pub use view::{View, ViewOptions};
