//! Which processors this process may use.
//!
//! Two processes that wait for each other through a pipe are put on one processor or on two as the
//! kernel sees fit, and a microsecond more of work can tip that. Waking an idle processor costs
//! many times what a client does for a call (above all in a virtual machine), so the time of one
//! call at a time means little unless the place is fixed.

use crate::Failure;

/// Keeps the calling thread, and all that it starts from now on, on one processor until dropped.
#[derive(Debug)]
pub(crate) struct Pinned {
    #[cfg(target_os = "linux")]
    before: rustix::thread::CpuSet,
}

#[cfg(target_os = "linux")]
impl Pinned {
    pub(crate) fn to_one() -> Result<Self, Failure> {
        use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

        let before = sched_getaffinity(None)?;
        let mut allowed = (0..CpuSet::MAX_CPU).filter(|processor| before.is_set(*processor));
        let last = allowed.next_back().ok_or("no processor is allowed")?;
        let mut one = CpuSet::new();
        one.set(last);
        sched_setaffinity(None, &one)?;
        Ok(Self { before })
    }
}

#[cfg(target_os = "linux")]
impl Drop for Pinned {
    fn drop(&mut self) {
        // What was allowed before is allowed again.
        let _was_allowed_before = rustix::thread::sched_setaffinity(None, &self.before);
    }
}

#[cfg(not(target_os = "linux"))]
impl Pinned {
    pub(crate) fn to_one() -> Result<Self, Failure> {
        Err("this system cannot pin a process to a processor".into())
    }
}
