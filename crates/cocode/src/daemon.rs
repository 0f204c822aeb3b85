//! The shared daemon: one process of a user that serves all fronts (`cocode mcp serve`), so that
//! equal servers run once. A gateway that somebody has started is it, too. Where it is, how it is
//! found or started, how fronts and commands talk to it, and the daemon itself.

mod asking;
mod build;
mod connect;
mod hello;
mod host;
mod place;
mod stopping;
mod summon;
mod world;

pub(crate) use asking::{Asking, Holder, ask, ask_all, holder};
pub(crate) use build::program;
pub(crate) use hello::{Front, Hello, LEAVING, LEFT, Refusal, Wants, warning_in};
pub(crate) use host::{Floor, Hosting, Own, run};
pub(crate) use place::Place;
pub(crate) use stopping::{How, stop};
pub(crate) use summon::{Summoned, Unavailable, summon};
pub(crate) use world::world;
