//! One endpoint for many MCP servers: any client, any server, any protocol revision.
//!
//! A [`Gateway`] runs servers, equal ones once. A [`View`] is what a group of clients sees of them:
//! each server by itself, as it is, and all of them as one. Clients of either era talk to servers of
//! either era; what a server asks goes to the client whose request it is about.

#![deny(missing_docs)]

mod audience;
mod caller;
mod consent;
mod downstream;
mod following;
mod gate;
mod gateway;
mod headers;
mod hello;
mod instance;
mod instances;
mod level;
mod levels;
mod merged;
mod notices;
mod outbox;
mod parked;
mod passing;
mod place;
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
pub use searching::{Announced, InvalidAnnouncement, SearchOptions};
pub use status::{Running, Sharing, Terms};
pub use view::{View, ViewOptions};
