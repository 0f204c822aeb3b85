//! What to run and how to stop it. Plain data; nothing here touches the system.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::confinement::{Confinement, PathHandle};

/// Receives each line of a child's stderr, without its line end, while the child runs.
///
/// It is called on the runtime thread that reads the pipe, so it must be quick and must not panic.
pub type StderrTap = Arc<dyn Fn(&str) + Send + Sync>;

/// A program to run, complete: nothing is added from the own process.
#[derive(Clone)]
pub struct ProcessSpec {
    /// A name without a slash is looked up in the `PATH` of [`env`](Self::env); a relative path is
    /// resolved against [`cwd`](Self::cwd).
    pub program: OsString,
    /// The arguments after the program's own name.
    pub args: Vec<OsString>,
    /// The complete environment. [`baseline_environment`](crate::baseline_environment) gives the
    /// part that every program expects.
    pub env: Vec<(OsString, OsString)>,
    /// The working directory; without one, that of the own process.
    pub cwd: Option<PathBuf>,
    /// The working directory as it was opened before. The program starts in it whatever its path leads to now.
    pub directory: Option<PathHandle>,
    /// How patient a stop is.
    pub stop: StopPolicy,
    /// What the program may do; without one, whatever the own process may. Where a confinement cannot be
    /// had, the program is not started.
    pub confinement: Option<Confinement>,
    /// Sees stderr live, besides the tail that is always kept.
    pub stderr_tap: Option<StderrTap>,
}

impl ProcessSpec {
    /// A program without arguments, environment or working directory of its own.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            directory: None,
            stop: StopPolicy::default(),
            confinement: None,
            stderr_tap: None,
        }
    }
}

/// Arguments and environment values often hold secrets, so only their number and names are shown.
impl fmt::Debug for ProcessSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            program,
            args,
            env,
            cwd,
            directory,
            stop,
            confinement,
            stderr_tap,
        } = self;
        let names: Vec<&OsString> = env.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("ProcessSpec")
            .field("program", program)
            .field("args", &format_args!("{} of them", args.len()))
            .field("env", &names)
            .field("cwd", cwd)
            .field("directory", directory)
            .field("stop", stop)
            .field("confinement", confinement)
            .field("stderr_tap", &stderr_tap.is_some())
            .finish()
    }
}

/// The patience of a stop: end of input, then SIGTERM, then SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopPolicy {
    /// How long the program may take to exit after its stdin was closed.
    pub eof_grace: Duration,
    /// How long its process group may take to exit after SIGTERM.
    pub term_grace: Duration,
}

impl Default for StopPolicy {
    fn default() -> Self {
        Self {
            eof_grace: Duration::from_millis(200),
            term_grace: Duration::from_secs(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_arguments_and_environment_values() {
        let mut spec = ProcessSpec::new("server");
        spec.args = vec!["--token=hunter2".into()];
        spec.env = vec![("API_KEY".into(), "hunter2".into())];
        let shown = format!("{spec:?}");
        assert!(
            shown.contains("API_KEY") && !shown.contains("hunter2"),
            "{shown}"
        );
    }
}
