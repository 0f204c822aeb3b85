//! Signing in to servers and out of them, and looking at who is signed in where.

pub(crate) mod client_secret;
pub(crate) mod document;
pub(crate) mod login;
pub(crate) mod logout;
mod report;
pub(crate) mod signing_in;
pub(crate) mod status;
pub(crate) mod subject;
mod terminal;
