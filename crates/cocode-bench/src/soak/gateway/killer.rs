//! Kills the servers behind a gateway at random. A gateway starts them again by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};

use super::ledger::processes;
use crate::Failure;

/// Milliseconds from one kill to the next, times the number of servers is what one of them lives.
const GAP: std::ops::Range<u64> = 50..1000;
/// How often it is looked whether it is time to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Kills until it is told to stop, in a thread of its own. Gives how many it killed.
pub(crate) struct Killer {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Result<u64, Failure>>,
}

impl Killer {
    pub(crate) fn start(folder: &Path, mark: &str, mut rng: Rng) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, folder, mark) = (Arc::clone(&stop), folder.to_owned(), mark.to_owned());
        let thread = thread::spawn(move || {
            let mut kills = 0;
            while !stopped.load(Ordering::Relaxed) {
                let mut wait = Duration::from_millis(rng.u64(GAP));
                while !wait.is_zero() && !stopped.load(Ordering::Relaxed) {
                    let step = wait.min(LOOK);
                    thread::sleep(step);
                    wait -= step;
                }
                kills += kill_one(&folder, &mark, &mut rng)?;
            }
            Ok(kills)
        });
        Self { stop, thread }
    }

    pub(crate) fn stop(self) -> Result<u64, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let kills = self.thread.join();
        kills.map_err(|_panic| "the killer has failed")?
    }
}

fn kill_one(folder: &Path, mark: &str, rng: &mut Rng) -> Result<u64, Failure> {
    let servers: Vec<_> = processes(folder)?.into_values().collect();
    let Some(pids) = rng.choice(servers) else {
        return Ok(0);
    };
    let mut kills = 0;
    for pid in pids {
        // The number of one that has ended may belong to somebody else by now.
        if !is_ours(pid, mark) {
            continue;
        }
        let target = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let target = target.ok_or("a process without a number")?;
        kills += u64::from(kill_process(target, Signal::KILL).is_ok());
    }
    Ok(kills)
}

/// Whether a process is a server of this soak.
fn is_ours(pid: u32, mark: &str) -> bool {
    let path = PathBuf::from(format!("/proc/{pid}/cmdline"));
    let words = fs::read(path).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0);
    words.nth(1) == Some(b"soak-counter") && words.next() == Some(mark.as_bytes())
}
