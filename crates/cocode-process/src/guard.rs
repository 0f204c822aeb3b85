//! The guard process: made between `fork` and `exec`, it adopts the program's whole tree and ends
//! it. This room owns everything that runs in a forked copy of the owner.
//!
//! The owner may have many threads, so a forked copy of it may only do what a signal handler may
//! do: no allocation, no locks, no panics. All code below [`install`]'s closure keeps to that; it
//! works on stack buffers through the thin wrappers in `system`.

mod system;
mod tree;

#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod proc;
#[cfg(target_os = "linux")]
mod slim;

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, RawFd};
use std::time::Duration;

use libc::{c_int, pid_t};
use tokio::process::Command;

use crate::confinement::{PathHandle, Ruleset};
use system::LIFELINE;
use tree::Tree;

/// How long a guard tries to kill what is left. Only a process that the system cannot end at the
/// moment (stuck in the kernel) or that may not be signaled (setuid) uses it up.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How processes list the guard. It must not contain the owner's name: whoever kills the owner by
/// name (`pkill -9 owner`) would kill the guard with it, and the tree would be orphaned.
#[cfg(target_os = "linux")]
const GUARD_NAME: &std::ffi::CStr = c"process-guard";

/// Added to the error number with which the system refuses to confine a program, on its way to the
/// owner. The numbers of the system are smaller.
const CONFINEMENT_REFUSED: c_int = 0x1_0000;

/// What a guard is told by its owner.
pub(crate) struct Given {
    /// The guard's end of the socket to the owner, which must stay open until the command has been
    /// spawned.
    pub(crate) lifeline: RawFd,
    /// How patient a stop is.
    pub(crate) term_grace: Duration,
    /// What confines the program, but not the guard.
    pub(crate) ruleset: Option<Ruleset>,
    /// The working directory of the program, if it was opened before.
    pub(crate) directory: Option<PathHandle>,
}

/// What the system said when it refused to confine a program, if this error is about that.
pub(crate) fn refused_confinement(error: &io::Error) -> Option<io::Error> {
    let number = error.raw_os_error()?.checked_sub(CONFINEMENT_REFUSED)?;
    (number >= 0).then(|| io::Error::from_raw_os_error(number))
}

/// Confines the calling process. An error is marked as one of this.
fn confine(ruleset: Option<&Ruleset>) -> io::Result<()> {
    let Some(ruleset) = ruleset else {
        return Ok(());
    };
    ruleset.enter().map_err(|error| {
        let number = error.raw_os_error().unwrap_or(libc::EINVAL);
        io::Error::from_raw_os_error(number.saturating_add(CONFINEMENT_REFUSED))
    })
}

/// Makes the command, complete but for its standard streams, start its program behind a guard.
#[cfg_attr(
    not(target_os = "linux"),
    expect(
        clippy::unnecessary_wraps,
        reason = "only Linux lays the program out here"
    )
)]
pub(crate) fn install(command: &mut Command, given: Given) -> io::Result<()> {
    let orders = Orders {
        given,
        #[cfg(target_os = "linux")]
        program: launch::Program::of(command)?,
        #[cfg(target_os = "linux")]
        layout: slim::Layout::capture(),
    };
    #[expect(unsafe_code, reason = "the guard is made between fork and exec")]
    // SAFETY: the closure and all it calls keep to what is allowed between fork and exec in a
    // process that had other threads: system calls and stack memory only (see the module doc).
    unsafe {
        command.pre_exec(move || split(&orders));
    }
    Ok(())
}

/// Makes the command start its program in a session of its own, as a child of nobody. What is spawned
/// ends as soon as the program is under way.
pub(crate) fn install_detachment(
    command: &mut std::process::Command,
    directory: Option<PathHandle>,
    ruleset: Option<Ruleset>,
) {
    use std::os::unix::process::CommandExt as _;
    #[expect(unsafe_code, reason = "the program is let go between fork and exec")]
    // SAFETY: as above: the closure only makes system calls.
    unsafe {
        command.pre_exec(move || {
            if let Some(directory) = &directory {
                rustix::process::fchdir(directory)?;
            }
            system::leave_session();
            // Who is not the leader of its session can never get a terminal.
            if system::fork()?.is_some() {
                system::exit(0);
            }
            system::close_all_on_exec();
            system::restore_descriptor_limit();
            system::reset_signals();
            confine(ruleset.as_ref())
        });
    }
}

/// Gives a pipe more room where the system can; it works the same without.
pub(crate) fn widen_pipe(pipe: &impl AsFd, bytes: u32) {
    system::set_pipe_capacity(pipe.as_fd().as_raw_fd(), bytes);
}

/// Kills a process group whose guard is gone.
pub(crate) fn kill_group(group: pid_t) {
    system::kill(-group, libc::SIGKILL);
}

/// What a guard must know, gathered before the fork.
struct Orders {
    given: Given,
    #[cfg(target_os = "linux")]
    program: launch::Program,
    #[cfg(target_os = "linux")]
    layout: slim::Layout,
}

/// Runs in the forked copy, which becomes the guard and then does not return from here. If the
/// program cannot be started, it returns the error, which the standard library brings to the
/// owner.
fn split(orders: &Orders) -> io::Result<()> {
    // Before the program exists, so that neither its exit nor its orphans can be missed.
    system::block_all_signals();
    system::catch_child_signal();
    #[cfg(target_os = "linux")]
    system::become_subreaper();
    if let Some(directory) = &orders.given.directory {
        rustix::process::fchdir(directory)?;
    }
    let guard = system::getpid();
    system::setpgid(guard, guard);
    #[cfg(target_os = "linux")]
    watch(orders.program.start(guard, &orders.given)?, orders);
    // Elsewhere the second copy returns, and the standard library turns it into the program.
    #[cfg(not(target_os = "linux"))]
    if let Some(server) = system::fork()? {
        watch(server, orders)
    } else {
        prepare_program(guard, &orders.given);
        confine(orders.given.ruleset.as_ref())
    }
}

/// Runs in the process that becomes the program.
fn prepare_program(guard: pid_t, given: &Given) {
    #[cfg(target_os = "linux")]
    system::die_with_parent();
    if system::getppid() != guard {
        // The guard died before the line above could take effect.
        system::exit(1);
    }
    let own = system::getpid();
    if given.ruleset.is_some() {
        // A session of its own, whose only group is the program's: it then has no terminal, and
        // cannot type into the user's.
        system::leave_session();
    } else {
        system::setpgid(own, own);
    }
    system::write(given.lifeline, &own.to_ne_bytes());
    system::close_all_on_exec();
    system::restore_descriptor_limit();
    system::reset_signals();
}

/// The life of the guard.
fn watch(server: pid_t, orders: &Orders) -> ! {
    // First of all: the owner's spawn returns when the last copy of its error pipe is closed.
    system::keep_only_lifeline(orders.given.lifeline);
    // The program does the same; whoever comes first, the group exists before it is signaled.
    system::setpgid(server, server);
    system::enter_root_directory();
    let term_grace = orders.given.term_grace;
    // This takes the memory of `orders` away.
    #[cfg(target_os = "linux")]
    slim::shed_inherited_memory(&orders.layout, GUARD_NAME);

    let mut tree = Tree::new(server);
    loop {
        tree.reap();
        if tree.is_over() {
            break;
        }
        if system::wait_for_event(Some(LIFELINE), None) && system::is_at_end(LIFELINE) {
            tree.terminate(term_grace);
            break;
        }
    }
    tree.kill(KILL_LIMIT);
    if let Some(status) = tree.server_status() {
        system::write(LIFELINE, &status.to_ne_bytes());
    }
    system::exit(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_confinement_is_told_from_other_errors() {
        let marked = io::Error::from_raw_os_error(CONFINEMENT_REFUSED.saturating_add(libc::E2BIG));
        let refused = refused_confinement(&marked).and_then(|error| error.raw_os_error());
        assert_eq!(refused, Some(libc::E2BIG));
        let other = io::Error::from_raw_os_error(libc::E2BIG);
        assert!(refused_confinement(&other).is_none());
    }
}
