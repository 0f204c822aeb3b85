//! Programs that are to go on without us: the opposite of a guarded child.

use std::fs::File;
use std::io::{self, PipeReader};
use std::process::Stdio;

use crate::child::command;
use crate::confinement;
use crate::error::SpawnError;
use crate::guard;
use crate::spec::ProcessSpec;

/// Starts a program in a session of its own, as nobody's child, with nothing of ours: no terminal, no
/// descriptor, no signal that is blocked or ignored. Its stdin is empty, its stderr is `stderr` or
/// goes nowhere, and its stdout is given back, for it to say that it is up. What the specification
/// says about stopping does not count.
///
/// Returns when the program has been executed. Needs no runtime.
pub fn spawn_detached(spec: &ProcessSpec, stderr: Option<File>) -> Result<PipeReader, SpawnError> {
    let ruleset = match &spec.confinement {
        Some(asked) => confinement::prepare(asked, confinement::probe())
            .map(Some)
            .map_err(SpawnError::confinement(spec))?,
        None => None,
    };
    let (reader, writer) = io::pipe().map_err(SpawnError::pipe(spec, "stdout"))?;
    let mut command = command(spec, ruleset.as_ref());
    command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(stderr.map_or_else(Stdio::null, Stdio::from));
    guard::install_detachment(&mut command, spec.directory.clone(), ruleset);
    let spawned = command.spawn();
    // It owns our copy of the writing end: while that is open, the pipe never ends.
    drop(command);
    let mut between = spawned.map_err(|source| SpawnError::classify(spec, source))?;
    if let Err(error) = between.wait() {
        // A host that ignores SIGCHLD makes this fail; the process is gone all the same.
        tracing::debug!(%error, "cannot reap the process between us and a detached program");
    }
    Ok(reader)
}
