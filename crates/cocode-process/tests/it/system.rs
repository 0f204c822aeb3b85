//! What tests ask the system: who is alive, whose child is it, what does it hold.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

/// Far longer than anything here takes, also on a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Polls until a condition holds.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < DEADLINE, "never happened: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Polls until none of these processes runs.
pub(crate) fn eventually_gone(pids: &[u32]) {
    eventually(&format!("all of {pids:?} are gone"), || {
        !pids.iter().copied().any(is_alive)
    });
}

/// Whether a process runs. One that has exited and was not yet reaped does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    stat_fields(pid).is_some_and(|fields| fields[0] != "Z" && fields[0] != "X")
}

pub(crate) fn parent(pid: u32) -> u32 {
    stat_fields(pid).unwrap()[1].parse().unwrap()
}

pub(crate) fn group(pid: u32) -> u32 {
    stat_fields(pid).unwrap()[2].parse().unwrap()
}

/// The fields of `/proc/PID/stat` after the command name.
fn stat_fields(pid: u32) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    Some(fields.split(' ').map(str::to_owned).collect())
}

/// Kilobytes that only this process holds.
pub(crate) fn private_kilobytes(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    rollup
        .lines()
        .filter(|line| line.starts_with("Private_"))
        .map(|line| {
            line.split_whitespace()
                .nth(1)
                .unwrap()
                .parse::<u64>()
                .unwrap()
        })
        .sum()
}

/// Sends a signal.
#[expect(
    unsafe_code,
    reason = "the standard library cannot signal a process that is no child"
)]
pub(crate) fn kill(pid: u32, signal: i32) {
    // SAFETY: touches no memory.
    assert_eq!(unsafe { libc::kill(pid.try_into().unwrap(), signal) }, 0);
}
