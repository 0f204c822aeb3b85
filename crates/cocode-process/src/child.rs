//! One guarded child as its owner sees it: pipes, exit, stop.

use std::io;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::confinement::{self, Confinement, Ruleset, Support};
use crate::error::SpawnError;
use crate::exit::ExitReport;
use crate::guard;
use crate::lifeline::{self, Lifeline};
use crate::spec::{ProcessSpec, StopPolicy};
use crate::stderr::{self, StderrTail};

/// After an exit, how long the rest of stderr may take to arrive. Its end comes at once, unless a
/// process that may not be signaled (a setuid program) still holds the pipe.
const STDERR_DRAIN: Duration = Duration::from_millis(500);

/// How much longer than its own patience a guard may take before it is itself killed.
const GUARD_SLACK: Duration = Duration::from_secs(2);

/// Room in the stdin and stdout pipes, so that one large message does not cost many switches
/// between reader and writer. The default of Linux is 64 KiB.
const PIPE_BYTES: u32 = 256 * 1024;

/// A running program, its pipes, and the guard that ends its whole tree.
///
/// Dropping it closes the pipes and orders the guard to do what [`stop`](Self::stop) does after
/// the end of input: SIGTERM, patience, SIGKILL. The drop itself does not wait, starts nothing,
/// and works outside a runtime.
#[derive(Debug)]
pub struct GuardedChild {
    /// What the runtime waits for is the guard, which outlives everything that it guards.
    guard: Child,
    lifeline: Lifeline,
    server: i32,
    stdin: Option<pipe::Sender>,
    stdout: Option<pipe::Receiver>,
    stderr: StderrTail,
    stderr_reader: JoinSet<()>,
    policy: StopPolicy,
    report: Option<ExitReport>,
    /// Its temporary directory is removed with it.
    _confinement: Option<Confinement>,
}

/// Starts a program behind a guard.
///
/// Returns when the program has been executed. That is one or two milliseconds of blocking work for
/// an owner of ordinary size, and several for one with hundreds of megabytes of heap, because its
/// page tables are copied.
///
/// # Panics
///
/// Needs a tokio runtime with IO and time enabled: without any runtime it fails with
/// [`SpawnError::NoRuntime`], but tokio panics when the runtime has no IO driver.
pub fn spawn(spec: &ProcessSpec) -> Result<GuardedChild, SpawnError> {
    spawn_where(spec, confinement::probe)
}

/// The same, on a system that can do this to confine programs.
fn spawn_where(
    spec: &ProcessSpec,
    support: impl FnOnce() -> Support,
) -> Result<GuardedChild, SpawnError> {
    // Checked before anything exists, because tokio panics where it finds no runtime.
    let runtime = tokio::runtime::Handle::try_current().map_err(SpawnError::NoRuntime)?;

    let ruleset = match &spec.confinement {
        Some(asked) => confinement::prepare(asked, support())
            .map(Some)
            .map_err(SpawnError::confinement(spec))?,
        None => None,
    };

    let (stdin_child, stdin_own) = io::pipe().map_err(SpawnError::pipe(spec, "stdin"))?;
    let (stdout_own, stdout_child) = io::pipe().map_err(SpawnError::pipe(spec, "stdout"))?;
    let (stderr_own, stderr_child) = io::pipe().map_err(SpawnError::pipe(spec, "stderr"))?;
    let (mut lifeline, guard_end) = lifeline::pair().map_err(SpawnError::pipe(spec, "guard"))?;
    guard::widen_pipe(&stdin_own, PIPE_BYTES);
    guard::widen_pipe(&stdout_own, PIPE_BYTES);
    // Our ends are registered before the child exists, so that no failure leaves one behind.
    let stdin =
        pipe::Sender::from_owned_fd(stdin_own.into()).map_err(SpawnError::pipe(spec, "stdin"))?;
    let stdout = pipe::Receiver::from_owned_fd(stdout_own.into())
        .map_err(SpawnError::pipe(spec, "stdout"))?;
    let stderr_pipe = pipe::Receiver::from_owned_fd(stderr_own.into())
        .map_err(SpawnError::pipe(spec, "stderr"))?;

    let mut command = Command::from(command(spec, ruleset.as_ref()));
    command
        .stdin(stdin_child)
        .stdout(stdout_child)
        .stderr(stderr_child);
    let orders = guard::Given {
        lifeline: guard_end.descriptor(),
        term_grace: spec.stop.term_grace,
        ruleset,
        directory: spec.directory.clone(),
    };
    let guard = guard::install(&mut command, orders)
        .and_then(|()| command.spawn())
        .map_err(|source| SpawnError::classify(spec, source))?;
    // The command owns the rules, and our copies of the child's ends: while one is open, the pipes never end.
    drop(command);
    drop(guard_end);
    let server = lifeline
        .server_pid()
        .map_err(|source| SpawnError::Process {
            program: spec.program.clone(),
            source,
        })?;

    let stderr = StderrTail::default();
    let mut stderr_reader = JoinSet::new();
    stderr_reader.spawn_on(
        stderr::read_to_end(stderr_pipe, stderr.clone(), spec.stderr_tap.clone()),
        &runtime,
    );
    Ok(GuardedChild {
        guard,
        lifeline,
        server,
        stdin: Some(stdin),
        stdout: Some(stdout),
        stderr,
        stderr_reader,
        policy: spec.stop,
        report: None,
        _confinement: spec.confinement.clone(),
    })
}

/// The command of a program, complete but for its standard streams.
pub(crate) fn command(spec: &ProcessSpec, ruleset: Option<&Ruleset>) -> std::process::Command {
    use std::process::Command;
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that starts processes"
    )]
    let mut command = match ruleset.and_then(Ruleset::launcher) {
        Some((launcher, args)) => {
            let mut command = Command::new(launcher);
            command.args(args).arg(&spec.program);
            command
        }
        None => Command::new(&spec.program),
    };
    command.args(&spec.args).env_clear();
    command.envs(spec.env.iter().map(|(name, value)| (name, value)));
    if let (Some(cwd), None) = (&spec.cwd, &spec.directory) {
        command.current_dir(cwd);
    }
    command
}

impl GuardedChild {
    /// The writing end of the program's stdin, once.
    pub fn take_stdin(&mut self) -> Option<pipe::Sender> {
        self.stdin.take()
    }

    /// The reading end of the program's stdout, once.
    pub fn take_stdout(&mut self) -> Option<pipe::Receiver> {
        self.stdout.take()
    }

    /// The tail of the program's stderr.
    pub fn stderr(&self) -> StderrTail {
        self.stderr.clone()
    }

    /// The process id of the program itself, which is also that of its process group.
    pub fn pid(&self) -> u32 {
        self.server.unsigned_abs()
    }

    /// Waits until the program has exited and everything it left behind is gone; the tail of its
    /// stderr is then complete. Does not ask it to exit.
    ///
    /// Cancel safe: it can be called again, also after it has returned.
    pub async fn wait(&mut self) -> ExitReport {
        let report = if let Some(report) = self.report {
            report
        } else {
            if let Err(error) = self.guard.wait().await {
                // A host that ignores SIGCHLD makes this fail; the guard is gone all the same.
                tracing::debug!(%error, pid = self.server, "cannot reap a guard process");
            }
            let report = self.read_report();
            self.report = Some(report);
            report
        };
        if timeout(STDERR_DRAIN, self.stderr_reader.join_next())
            .await
            .is_err()
        {
            tracing::debug!(pid = self.server, "stderr is still open after the exit");
            self.stderr_reader.abort_all();
        }
        report
    }

    /// Stops the program and everything it started: closes stdin (a caller that took it drops it
    /// first), waits a moment, SIGTERM to the group, waits, SIGKILL to all that is left.
    ///
    /// Dropping the future part way leaves the rest to the guard.
    pub async fn stop(&mut self) -> ExitReport {
        drop(self.stdin.take());
        if let Ok(report) = timeout(self.policy.eof_grace, self.wait()).await {
            return report;
        }
        self.lifeline.release();
        if let Ok(report) = timeout(self.patience(), self.wait()).await {
            return report;
        }
        tracing::warn!(pid = self.server, "a guard process hangs and is killed");
        if let Err(error) = self.guard.start_kill() {
            tracing::warn!(%error, pid = self.server, "cannot kill a guard process");
        }
        // The program dies with its guard; `wait` sees to the rest of its group.
        timeout(GUARD_SLACK, self.wait())
            .await
            .unwrap_or(ExitReport::Unknown)
    }

    /// Like [`stop`](Self::stop), without the end of input, for destructors: blocks, and needs no runtime.
    pub fn stop_blocking(mut self) {
        self.lifeline.release();
        if self.report.is_none() && self.lifeline.block_for(self.patience()) {
            self.read_report();
        }
    }

    /// How long the guard may take to end everything.
    fn patience(&self) -> Duration {
        self.policy.term_grace + guard::KILL_LIMIT + GUARD_SLACK
    }

    fn read_report(&mut self) -> ExitReport {
        if let Some(status) = self.lifeline.wait_status() {
            return ExitReport::from_wait_status(status);
        }
        // Somebody killed the guard. The program has gone with it, and what stayed in its process
        // group is still in reach.
        tracing::warn!(pid = self.server, "a guard process was killed");
        guard::kill_group(self.server);
        ExitReport::Unknown
    }
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
