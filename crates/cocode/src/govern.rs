//! What is allowed, and what is kept besides servers: one file for each command.

pub(crate) mod audit;
pub(crate) mod files;
pub(crate) mod permissions;
pub(crate) mod plugins;
pub(crate) mod policy;
pub(crate) mod secrets;
pub(crate) mod tokens;
