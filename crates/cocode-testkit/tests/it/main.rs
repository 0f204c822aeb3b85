//! The scripted servers, used the way the tests of other crates use them.

mod stdio;
