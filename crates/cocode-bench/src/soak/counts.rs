//! What this process has at one moment: tasks, descriptors, processes and memory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::{Failure, usage};

/// How often it is looked whether everything has come to rest.
const LOOK: Duration = Duration::from_millis(100);
/// As long as nothing has changed for so many looks, it has come to rest.
const LOOKS: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Tasks of the runtime that have not ended.
    pub(crate) tasks: usize,
    pub(crate) descriptors: usize,
    /// Processes that descend from this one.
    pub(crate) descendants: usize,
    /// Processes of this soak, whoever they descend from by now.
    pub(crate) marked: usize,
    pub(crate) resident_kib: u64,
}

impl Counts {
    pub(crate) fn now(mark: &str) -> Result<Self, Failure> {
        let processes = Processes::look(mark)?;
        Ok(Self {
            tasks: Handle::current().metrics().num_alive_tasks(),
            // One of them is the directory itself.
            descriptors: fs::read_dir("/proc/self/fd")?.count() - 1,
            descendants: processes.descendants(std::process::id()),
            marked: processes.marked,
            resident_kib: usage::resident_kib()?,
        })
    }

    /// Waits until the counts are those of before, or nothing changes any more where there are
    /// none, and gives what they are in the end.
    pub(crate) async fn when_settled(
        mark: &str,
        before: Option<&Self>,
        within: Duration,
    ) -> Result<Self, Failure> {
        let until = Instant::now() + within;
        let mut last = Self::now(mark)?;
        let mut same = 0;
        loop {
            let is_done = before.map_or(same >= LOOKS, |before| last.is_back_at(before));
            if is_done || Instant::now() >= until {
                return Ok(last);
            }
            sleep(LOOK).await;
            let now = Self::now(mark)?;
            same = if now.is_back_at(&last) { same + 1 } else { 0 };
            last = now;
        }
    }

    /// Whether nothing is there that was not there before, memory aside.
    pub(crate) fn is_back_at(&self, before: &Self) -> bool {
        let all = |counts: &Self| {
            (
                counts.tasks,
                counts.descriptors,
                counts.descendants,
                counts.marked,
            )
        };
        all(self) == all(before)
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            tasks,
            descriptors,
            descendants,
            marked,
            resident_kib,
        } = self;
        write!(
            formatter,
            "{tasks} tasks, {descriptors} descriptors, {descendants} child processes ({marked} of the soak in all), {} MiB",
            resident_kib / 1024
        )
    }
}

/// All processes of the system, by what matters here.
pub(crate) struct Processes {
    parents: BTreeMap<u32, u32>,
    pub(crate) marked: usize,
}

impl Processes {
    pub(crate) fn look(mark: &str) -> Result<Self, Failure> {
        let mut parents = BTreeMap::new();
        let mut marked = 0;
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // One that has just ended has nothing to tell.
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
                continue;
            };
            let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
            let parent = fields.and_then(|fields| fields.split(' ').nth(1));
            if let Some(parent) = parent.and_then(|parent| parent.parse().ok()) {
                parents.insert(pid, parent);
            }
            let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let has_mark = words
                .split(|byte| *byte == 0)
                .any(|word| word == mark.as_bytes());
            marked += usize::from(has_mark);
        }
        Ok(Self { parents, marked })
    }

    fn descendants(&self, ancestor: u32) -> usize {
        let descends = |pid: u32| {
            let mut parent = self.parents.get(&pid);
            while let Some(pid) = parent {
                if *pid == ancestor {
                    return true;
                }
                parent = self.parents.get(pid);
            }
            false
        };
        let pids = self.parents.keys();
        pids.filter(|pid| descends(**pid)).count()
    }
}
