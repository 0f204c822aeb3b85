//! `sandbox`: how much later a command starts in the sandbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cocode_process::{Confinement, PathHandle, ProcessSpec, TemporaryDirectory, spawn};

use super::Runtime;
use crate::Failure;
use crate::report::{Better, Case, Findings, Series, Target};

const ROUNDS: usize = 5;
const STARTS: usize = 40;
/// Milliseconds that a start may take longer.
const MOST: f64 = 3.0;

pub(super) fn run() -> Result<Findings, Failure> {
    Runtime::TwoWorkers.run(measure())
}

async fn measure() -> Result<Findings, Failure> {
    let workspace = tempfile::tempdir()?;
    let path = workspace.path().canonicalize()?;
    // As a conversation has it: what is beside a hidden directory in the home gets a rule each.
    let home = std::env::home_dir().ok_or("no home directory")?;
    let top = tempfile::tempdir()?;
    let temporary = TemporaryDirectory::open(&top.path().join("own"))?;
    let mut spec = ProcessSpec::new("/bin/true");
    spec.cwd = Some(path.clone());
    let mut confined = spec.clone();
    let directory = PathHandle::open(&path)?;
    confined.directory = Some(directory.clone());
    let confinement = Confinement::workspace_write(directory)
        .with_hidden(&home.join(".local/state/cocode"))
        .with_protected(&home.join(".config/cocode"))
        .with_temporary(Arc::new(temporary));
    confined.confinement = Some(confinement);
    let mut later = Series::new("cocode");
    for _ in 0..ROUNDS {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..STARTS {
            without.push(time(&spec).await?);
            with.push(time(&confined).await?);
        }
        let difference = median(with).as_secs_f64() - median(without).as_secs_f64();
        later.push(difference * 1e3);
    }
    Ok(Findings {
        cases: vec![Case {
            name: "sandbox: start and end of a command, longer by".to_owned(),
            unit: "ms",
            better: Better::Lower,
            ours: later,
            against: Vec::new(),
            sdk: None,
            target: Some(Target::AtMost(MOST)),
        }],
        notes: Vec::new(),
    })
}

async fn time(spec: &ProcessSpec) -> Result<Duration, Failure> {
    let start = Instant::now();
    let report = spawn(spec)?.wait().await;
    if report.success() {
        Ok(start.elapsed())
    } else {
        Err(format!("the command failed: {report}").into())
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
