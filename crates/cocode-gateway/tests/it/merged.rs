//! All servers as one: names, lists, and every request at its server.

mod calls;
mod house;
mod lists;
mod names;
