//! All servers as one: names, lists, and every request at its server.

mod calls;
pub(crate) mod house;
mod listening;
mod lists;
mod names;
mod others;
pub(crate) mod search;
mod search_calls;
mod search_load;
mod tasks;
