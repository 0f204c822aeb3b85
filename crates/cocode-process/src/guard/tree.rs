//! The program and its descendants as the guard sees them: reap, ask to exit, kill.

use std::time::{Duration, Instant};

use libc::{c_int, pid_t};

use super::system::{self, Reaped};

/// How often a group is looked at while it takes its time to exit. Needed because not every
/// member is the guard's own child, so not every exit wakes it.
const GROUP_POLL: Duration = Duration::from_millis(20);

/// The pause between two rounds of killing.
const KILL_POLL: Duration = Duration::from_millis(5);

/// The program, which leads a process group, and everything that it started.
pub(super) struct Tree {
    server: pid_t,
    server_status: Option<c_int>,
    childless: bool,
}

impl Tree {
    pub(super) fn new(server: pid_t) -> Self {
        Self {
            server,
            server_status: None,
            childless: false,
        }
    }

    /// How the program ended, once it has.
    pub(super) fn server_status(&self) -> Option<c_int> {
        self.server_status
    }

    /// Whether the program itself has ended.
    pub(super) fn is_over(&self) -> bool {
        self.server_status.is_some() || self.childless
    }

    /// Takes the status of every child that has exited.
    pub(super) fn reap(&mut self) {
        loop {
            match system::reap_one() {
                Reaped::Exited(pid, status) => {
                    if pid == self.server {
                        self.server_status = Some(status);
                    }
                }
                Reaped::AllRunning => return,
                Reaped::NoChildren => {
                    self.childless = true;
                    return;
                }
            }
        }
    }

    /// Asks the program's process group to exit and gives it time. Returns when the group is gone
    /// or the time is up.
    ///
    /// A process that left the group is asked only if it is already orphaned. It is not waited
    /// for: a daemon that never exits must not delay the stop of a program that did.
    pub(super) fn terminate(&mut self, grace: Duration) {
        let group = self.server;
        system::kill(-group, libc::SIGTERM);
        // A stopped process acts on SIGTERM only when it is continued.
        system::kill(-group, libc::SIGCONT);
        // One signal each: programs take the second SIGTERM as the order to skip their cleanup.
        #[cfg(target_os = "linux")]
        super::proc::for_each_child(|child| {
            if child.group != group {
                system::kill(child.pid, libc::SIGTERM);
            }
        });
        let started = Instant::now();
        loop {
            self.reap();
            if self.is_over() && !system::group_exists(group) {
                return;
            }
            let remaining = grace.saturating_sub(started.elapsed());
            if remaining.is_zero() {
                return;
            }
            system::wait_for_event(None, Some(remaining.min(GROUP_POLL)));
        }
    }

    /// Kills all that is left, and waits for it to be gone, but not longer than `limit`.
    pub(super) fn kill(&mut self, limit: Duration) {
        // Where orphans come to the guard, killing a child makes the guard the parent of that
        // child's children, until there are none.
        let started = Instant::now();
        system::kill(-self.server, libc::SIGKILL);
        loop {
            self.reap();
            if self.childless || started.elapsed() >= limit {
                return;
            }
            if self.server_status.is_none() {
                system::kill(self.server, libc::SIGKILL);
            }
            #[cfg(target_os = "linux")]
            super::proc::for_each_child(|child| system::kill(child.pid, libc::SIGKILL));
            system::wait_for_event(None, Some(KILL_POLL));
        }
    }
}
