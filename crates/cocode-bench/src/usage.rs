//! What this process or another has used so far: processor time and memory.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::Failure;

/// Processor time of all threads of this process.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Resident memory of this process in KiB.
pub(crate) fn resident_kib() -> Result<u64, Failure> {
    field("/proc/self/status", "VmRSS:")
}

/// Resident memory of another process in KiB.
pub(crate) fn resident_kib_of(pid: u32) -> Result<u64, Failure> {
    field(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// A process and all that descend from it.
pub(crate) fn family_of(pid: u32) -> Result<Vec<u32>, Failure> {
    let mut family = vec![pid];
    let mut next = 0;
    while let Some(pid) = family.get(next).copied() {
        next += 1;
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
            let children = std::fs::read_to_string(thread?.path().join("children"))?;
            for child in children.split_whitespace() {
                family.push(child.parse()?);
            }
        }
    }
    Ok(family)
}

/// Open files of another process.
pub(crate) fn descriptors_of(pid: u32) -> Result<usize, Failure> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count())
}

/// Processor time of all threads that another process has now.
pub(crate) fn processor_time_of(pid: u32) -> Result<Duration, Failure> {
    let mut total = Duration::ZERO;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let path = thread?.path().join("schedstat");
        let text = std::fs::read_to_string(&path)?;
        let nanoseconds = text.split(' ').next().unwrap_or_default().parse()?;
        total += Duration::from_nanos(nanoseconds);
    }
    Ok(total)
}

/// The number after `key` in one of the system's own reports about a process.
pub(crate) fn field(path: &str, key: &str) -> Result<u64, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    let number = value.and_then(|value| value.split_whitespace().next());
    let number = number.ok_or_else(|| format!("no {key} in {path}"))?;
    Ok(number.parse()?)
}

/// The load of the machine, as the system averages it over a minute.
pub(crate) fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}
