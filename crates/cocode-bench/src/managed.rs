//! The manager under measurement, and what it takes to have one.

use std::sync::Arc;

use cocode_client::{
    Concurrency, Manager, ManagerOptions, PlainConnector, StartLimiter, baseline_environment,
};
use cocode_core::{ServerName, ServerSpec};

use crate::Failure;

/// A manager that starts so many at once, and keeps nothing on disk.
pub(crate) fn manager(concurrency: Concurrency) -> Manager {
    Manager::new(ManagerOptions {
        connector: Arc::new(PlainConnector {
            environment: environment(),
            ..PlainConnector::default()
        }),
        start_limiter: StartLimiter::new(concurrency),
        ..ManagerOptions::default()
    })
}

/// This program in one of its other roles, as a server.
pub(crate) fn ourselves(name: &str, words: &[&str]) -> Result<ServerSpec, Failure> {
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the path of this program")?;
    let name: ServerName = name.parse()?;
    Ok(ServerSpec::program(name, program, words.iter().copied()))
}

/// What servers find in their environment.
pub(crate) fn environment() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    #[expect(
        clippy::disallowed_methods,
        reason = "servers get the environment of whoever measures them"
    )]
    let all = std::env::vars_os();
    baseline_environment(all)
}
