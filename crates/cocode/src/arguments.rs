//! The arguments of a call: from words on the command line to one JSON object.
//!
//! Nothing here talks to a server. JSON that the user wrote is never parsed into numbers and back,
//! so big integers and the spelling of floats reach the tool as they were typed.

mod assemble;
mod coerce;
mod object;
mod pieces;
mod schema;

pub(crate) use assemble::{Gathered, ReadStdin, pairs};
pub(crate) use coerce::{is_number, is_whole};
pub(crate) use object::{members, quoted};
pub(crate) use schema::{InputSchema, Property};

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
