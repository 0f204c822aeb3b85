//! Starts the server with plain pipes.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::Failure;

/// As much room as a session gives its own pipes, so that this is not what differs.
const PIPE_BYTES: usize = 256 * 1024;

/// A server and its pipes. It is killed when the child is dropped.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) child: Child,
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
}

impl Pipes {
    pub(crate) fn start(n_tools: usize) -> Result<Self, Failure> {
        let words = ["serve".to_owned(), n_tools.to_string()];
        Self::run(&std::env::current_exe()?, &words, &[])
    }

    /// Any program, with this environment and no other.
    pub(crate) fn run(
        program: &Path,
        words: &[String],
        environment: &[(OsString, OsString)],
    ) -> Result<Self, Failure> {
        #[expect(
            clippy::disallowed_methods,
            reason = "the yardstick has no guard for its process"
        )]
        let mut command = Command::new(program);
        command
            .args(words)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no pipes".into());
        };
        widen(&stdin)?;
        widen(&stdout)?;
        Ok(Self {
            child,
            stdin,
            stdout,
        })
    }
}

#[cfg(target_os = "linux")]
fn widen(pipe: &impl std::os::fd::AsFd) -> Result<(), Failure> {
    rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn widen(_pipe: &impl std::os::fd::AsFd) -> Result<(), Failure> {
    let _only_linux_can: usize = PIPE_BYTES;
    Ok(())
}
