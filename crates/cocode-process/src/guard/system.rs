//! The system calls of the guard, as thin wrappers that are safe to call between `fork` and
//! `exec`: no allocation, no locks, no panics. Failures that the guard can do nothing about are
//! not reported; each wrapper says what happens then.
#![expect(
    unsafe_code,
    reason = "system calls that the standard library does not offer"
)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::time::Duration;

use libc::{c_int, pid_t};

/// Where a guard holds its end of the lifeline. A small number, as `pselect` needs one.
pub(super) const LIFELINE: c_int = 0;

/// Descriptors are closed up to here at most, one by one, where the system cannot close ranges.
const MOST_DESCRIPTORS: u64 = 65_536;

pub(super) fn getpid() -> pid_t {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::getpid() }
}

pub(super) fn getppid() -> pid_t {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::getppid() }
}

/// Forks a process that was itself just forked, and so has a single thread. The older of the two is
/// told which the younger is.
pub(super) fn fork() -> io::Result<Option<pid_t>> {
    // SAFETY: both sides go on in the same single-threaded code between fork and exec.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        pid => Ok(Some(pid)),
    }
}

/// Leaves the session of the owner. Fails only for the leader of a process group, which a process
/// that was just forked is not.
pub(super) fn leave_session() {
    let _ignored = rustix::process::setsid();
}

/// Ends the process at once, without any of the owner's exit handlers.
pub(super) fn exit(code: c_int) -> ! {
    // SAFETY: has no preconditions.
    unsafe { libc::_exit(code) }
}

/// Fails only if the process has already been executed, which then has done it itself.
pub(super) fn setpgid(pid: pid_t, group: pid_t) {
    // SAFETY: touches no memory.
    unsafe {
        libc::setpgid(pid, group);
    }
}

/// Signals a process, or a group by its negative id. One that is gone or foreign is left alone.
pub(super) fn kill(pid: pid_t, signal: c_int) {
    // SAFETY: touches no memory.
    unsafe {
        libc::kill(pid, signal);
    }
}

/// Whether a process group has members, zombies included.
pub(super) fn group_exists(group: pid_t) -> bool {
    // SAFETY: touches no memory; signal 0 is only a question.
    unsafe { libc::kill(-group, 0) == 0 }
}

pub(super) enum Reaped {
    Exited(pid_t, c_int),
    AllRunning,
    NoChildren,
}

/// Takes the status of one child that has exited, without waiting.
pub(super) fn reap_one() -> Reaped {
    let mut status = 0;
    loop {
        // SAFETY: the pointer is to a live local.
        match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
            0 => return Reaped::AllRunning,
            -1 if last_errno() == libc::EINTR => {}
            -1 => return Reaped::NoChildren,
            pid => return Reaped::Exited(pid, status),
        }
    }
}

pub(super) fn last_errno() -> c_int {
    io::Error::last_os_error()
        .raw_os_error()
        .unwrap_or_default()
}

pub(super) fn block_all_signals() {
    let all = full_signal_set();
    // SAFETY: the set is initialized; the old mask is not asked for.
    unsafe {
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
}

fn full_signal_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initializes the whole set.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Makes the exit of a child interrupt [`wait_for_event`], whatever the owner did about it.
pub(super) fn catch_child_signal() {
    extern "C" fn wake(_signal: c_int) {}
    let handler: extern "C" fn(c_int) = wake;
    set_signal_action(libc::SIGCHLD, handler as libc::sighandler_t);
}

/// Gives the program what a fresh process expects: no signal blocked, ignored or handled.
pub(super) fn reset_signals() {
    // Numbers that are no signal, or cannot be changed, only fail.
    for signal in 1..=64 {
        set_signal_action(signal, libc::SIG_DFL);
    }
    let mut none = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initializes the whole set; the old mask is not asked for.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
    }
}

fn set_signal_action(signal: c_int, action: libc::sighandler_t) {
    // SAFETY: an all-zero `sigaction` is valid: no flags, an empty mask, and the action is then
    // set to a constant of the system or to a handler that does nothing.
    unsafe {
        let mut description: libc::sigaction = MaybeUninit::zeroed().assume_init();
        description.sa_sigaction = action;
        libc::sigaction(signal, &raw const description, ptr::null_mut());
    }
}

/// Sleeps until a child exits, `descriptor` is readable or `limit` has passed; tells whether it
/// was the descriptor. All other signals stay blocked.
pub(super) fn wait_for_event(descriptor: Option<c_int>, limit: Option<Duration>) -> bool {
    let mut mask = full_signal_set();
    let mut readable = MaybeUninit::<libc::fd_set>::uninit();
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs().try_into().unwrap_or(i32::MAX.into()),
        tv_nsec: limit.subsec_nanos().cast_signed().into(),
    });
    let limit = limit.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the sets are initialized by `sigfillset` and `FD_ZERO`, the only descriptor is
    // `LIFELINE`, below the size of a set, and all pointers are null or to live locals.
    unsafe {
        libc::sigdelset(&raw mut mask, libc::SIGCHLD);
        libc::FD_ZERO(readable.as_mut_ptr());
        if let Some(descriptor) = descriptor {
            libc::FD_SET(descriptor, readable.as_mut_ptr());
        }
        let count = descriptor.map_or(0, |descriptor| descriptor.saturating_add(1));
        let none = ptr::null_mut();
        libc::pselect(
            count,
            readable.as_mut_ptr(),
            none,
            none,
            limit,
            &raw const mask,
        ) > 0
    }
}

/// Whether a readable stream has ended, also by an error.
pub(super) fn is_at_end(descriptor: c_int) -> bool {
    let mut byte = [0_u8; 1];
    // SAFETY: the pointer and length describe a live local.
    let length = unsafe { libc::read(descriptor, byte.as_mut_ptr().cast(), byte.len()) };
    match length {
        0 => true,
        -1 => !matches!(last_errno(), libc::EINTR | libc::EAGAIN),
        _ => false,
    }
}

/// Writes a short message. The signals are blocked, so a closed pipe is only an error; the reader
/// notices the missing message.
pub(super) fn write(descriptor: c_int, bytes: &[u8]) {
    // SAFETY: the pointer and length describe a live slice.
    unsafe {
        libc::write(descriptor, bytes.as_ptr().cast(), bytes.len());
    }
}

/// Leaves a directory that somebody may want to unmount.
pub(super) fn enter_root_directory() {
    let _ignored = rustix::process::chdir(c"/");
}

/// Moves the lifeline to [`LIFELINE`] and closes all other descriptors.
pub(super) fn keep_only_lifeline(lifeline: c_int) {
    // SAFETY: this process uses no descriptor of the owner but the lifeline.
    unsafe {
        libc::dup2(lifeline, LIFELINE);
    }
    #[cfg(target_os = "linux")]
    if close_range(1, 0) {
        return;
    }
    for_each_descriptor(1, |descriptor| {
        // SAFETY: as above.
        unsafe {
            libc::close(descriptor);
        }
    });
}

/// Gives the program the limit of open files that the owner was started with. Without it, the program has the
/// raised one.
pub(super) fn restore_descriptor_limit() {
    if let Some(limit) = crate::hardening::original_descriptor_limit() {
        let _ignored = rustix::process::setrlimit(rustix::process::Resource::Nofile, limit);
    }
}

/// Lets the program inherit its standard streams and nothing else.
pub(super) fn close_all_on_exec() {
    #[cfg(target_os = "linux")]
    if close_range(3, libc::CLOSE_RANGE_CLOEXEC) {
        return;
    }
    for_each_descriptor(3, |descriptor| {
        // SAFETY: changes a flag only; a number that is no descriptor is an error.
        unsafe {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    });
}

fn for_each_descriptor(first: c_int, visit: impl FnMut(c_int)) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = limit.map_or(MOST_DESCRIPTORS, |limit| limit.min(MOST_DESCRIPTORS));
    (first..c_int::try_from(most).unwrap_or(c_int::MAX)).for_each(visit);
}

/// Asks for a larger pipe. Without it, or above the user's limit, the pipe stays as it is.
pub(super) fn set_pipe_capacity(pipe: c_int, bytes: u32) {
    #[cfg(target_os = "linux")]
    // SAFETY: touches no memory of this process.
    unsafe {
        libc::fcntl(pipe, libc::F_SETPIPE_SZ, bytes);
    }
    #[cfg(not(target_os = "linux"))]
    let (_, _) = (pipe, bytes);
}

#[cfg(target_os = "linux")]
pub(super) use linux::*;

/// What only Linux has.
#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CStr;

    use super::{c_int, ptr};

    /// Makes the calling process the parent of all its descendants whose own parent has died.
    pub(in crate::guard) fn become_subreaper() {
        let _ignored = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    }

    /// Lets the system kill the calling process when its parent dies. The parent has one thread,
    /// so its death is the death of that thread.
    pub(in crate::guard) fn die_with_parent() {
        let signal = Some(rustix::process::Signal::KILL);
        let _ignored = rustix::process::set_parent_process_death_signal(signal);
    }

    /// Sets the name under which the process is listed.
    pub(in crate::guard) fn set_name(name: &CStr) {
        let _ignored = rustix::thread::set_name(name);
    }

    pub(in crate::guard) fn errno_address() -> usize {
        // SAFETY: only takes the address of the thread's own `errno`.
        unsafe { libc::__errno_location() }.addr()
    }

    /// The address of the C library's description of the thread.
    #[cfg(target_env = "musl")]
    pub(in crate::guard) fn thread_address() -> usize {
        // SAFETY: has no preconditions.
        unsafe { libc::pthread_self() }.addr()
    }

    /// The address of the C library's description of the thread.
    #[cfg(not(target_env = "musl"))]
    pub(in crate::guard) fn thread_address() -> usize {
        // SAFETY: has no preconditions.
        usize::try_from(unsafe { libc::pthread_self() }).unwrap_or_default()
    }

    pub(super) fn close_range(first: c_int, flags: libc::c_uint) -> bool {
        // SAFETY: descriptors are not memory; the caller decides that they may go.
        unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) == 0 }
    }

    pub(in crate::guard) fn open_directory(path: &CStr) -> Option<c_int> {
        open(libc::AT_FDCWD, path, libc::O_RDONLY | libc::O_DIRECTORY)
    }

    pub(in crate::guard) fn open_file(path: &CStr) -> Option<c_int> {
        open(libc::AT_FDCWD, path, libc::O_RDONLY)
    }

    pub(in crate::guard) fn open_file_in(directory: c_int, path: &CStr) -> Option<c_int> {
        open(directory, path, libc::O_RDONLY)
    }

    fn open(directory: c_int, path: &CStr, flags: c_int) -> Option<c_int> {
        // SAFETY: the path ends with a zero.
        let descriptor = unsafe { libc::openat(directory, path.as_ptr(), flags | libc::O_CLOEXEC) };
        (descriptor >= 0).then_some(descriptor)
    }

    /// Closes what [`open`] gave.
    pub(in crate::guard) fn close(descriptor: c_int) {
        // SAFETY: the callers close only what they have opened, once.
        unsafe {
            libc::close(descriptor);
        }
    }

    /// Reads once; empty at the end and on an error.
    pub(in crate::guard) fn read(descriptor: c_int, buffer: &mut [u8]) -> &[u8] {
        // SAFETY: the pointer and length describe a live slice.
        let length = unsafe { libc::read(descriptor, buffer.as_mut_ptr().cast(), buffer.len()) };
        usize::try_from(length)
            .ok()
            .and_then(|length| buffer.get(..length))
            .unwrap_or_default()
    }

    /// Overwrites memory of the calling process, or tells that it could not. The system writes, so that a wrong
    /// address is an error here and not a crash. `/proc/self/mem` is closed to processes that cannot be dumped.
    pub(in crate::guard) fn write_at(bytes: &[u8], address: usize) -> bool {
        let source = libc::iovec {
            iov_base: bytes.as_ptr().cast_mut().cast(),
            iov_len: bytes.len(),
        };
        let target = libc::iovec {
            iov_base: ptr::with_exposed_provenance_mut(address),
            iov_len: bytes.len(),
        };
        // SAFETY: reads a live slice. The caller owns what it overwrites: its own command line.
        let length = unsafe {
            let own = libc::getpid();
            libc::process_vm_writev(own, &raw const source, 1, &raw const target, 1, 0)
        };
        usize::try_from(length) == Ok(bytes.len())
    }

    /// Aligned as directory entries are.
    #[repr(align(8))]
    pub(in crate::guard) struct DirectoryBuffer([u8; 4096]);

    impl DirectoryBuffer {
        pub(in crate::guard) fn new() -> Self {
            Self([0; 4096])
        }
    }

    /// The next entries of a directory as `getdents64` gives them; empty at the end.
    pub(in crate::guard) fn read_directory(
        directory: c_int,
        DirectoryBuffer(buffer): &mut DirectoryBuffer,
    ) -> &[u8] {
        let start: *mut u8 = ptr::from_mut(buffer).cast();
        // SAFETY: the pointer and length describe a live array.
        let length = unsafe { libc::syscall(libc::SYS_getdents64, directory, start, buffer.len()) };
        usize::try_from(length)
            .ok()
            .and_then(|length| buffer.get(..length))
            .unwrap_or_default()
    }
}
