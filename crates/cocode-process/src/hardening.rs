//! What a process does to itself at start: protects its memory, clears its environment, and adjusts limits.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "overwrites the environment block in place")
)]

use std::ffi::OsStr;
#[cfg(target_os = "linux")]
use std::ffi::{CStr, c_char};
use std::io;
#[cfg(target_os = "linux")]
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft limit of open files before it was raised.
static ORIGINAL_DESCRIPTOR_LIMIT: AtomicU64 = AtomicU64::new(NOT_RAISED);
const NOT_RAISED: u64 = u64::MAX;

/// Raises the soft limit of open files to the hard limit, on Linux. Programs that are started from here get back the
/// limit that this process was started with: `select` cannot handle descriptors above 1023.
pub fn raise_descriptor_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let Some(original) = limit.current.filter(|_| cfg!(target_os = "linux")) else {
        return Ok(());
    };
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised)?;
    ORIGINAL_DESCRIPTOR_LIMIT.store(original, Ordering::Relaxed);
    Ok(())
}

/// The limit for programs, if this process has raised its own. Safe to call between `fork` and `exec`.
pub(crate) fn original_descriptor_limit() -> Option<Rlimit> {
    let original = ORIGINAL_DESCRIPTOR_LIMIT.load(Ordering::Relaxed);
    let maximum = getrlimit(Resource::Nofile).maximum;
    (original != NOT_RAISED).then(|| Rlimit {
        current: Some(original.min(maximum.unwrap_or(original))),
        maximum,
    })
}

/// Closes the memory and the environment of this process to other processes of its user, debuggers included. Programs
/// that it starts are not affected. Without privileges, `/proc/self` belongs to root afterwards. Only on Linux.
pub fn protect_process_memory() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
    Ok(())
}

/// Makes this process the parent of its descendants whose own parent dies, so that they stay its descendants. Only on
/// Linux.
pub fn adopt_orphans() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

#[cfg(target_os = "linux")]
unsafe extern "C" {
    /// Where the C library and the standard library find the environment.
    static mut environ: *mut *mut c_char;
}

/// Removes the variables that `keep` does not name from the environment of this process, and overwrites them in
/// memory, where `/proc/PID/environ` reads them. To be called before other threads are started: fails if there are any.
/// Only on Linux.
pub fn clear_environment(keep: impl Fn(&OsStr) -> bool) -> io::Result<()> {
    #[cfg(not(target_os = "linux"))]
    drop(keep);
    #[cfg(target_os = "linux")]
    {
        if std::fs::read_dir("/proc/self/task")?.count() != 1 {
            return Err(io::Error::other("other threads may read the environment"));
        }
        // SAFETY: there is no other thread, and nothing borrows the environment across this call. The array ends
        // with a null, its strings with a zero, and the system and the C library have made both writable.
        unsafe {
            let (mut source, mut target) = (environ, environ);
            while !source.is_null() && !(*source).is_null() {
                let variable = *source;
                let length = CStr::from_ptr(variable).count_bytes();
                let text = std::slice::from_raw_parts_mut(variable.cast::<u8>(), length);
                let name = text.split(|byte| *byte == b'=').next().unwrap_or_default();
                if keep(OsStr::from_bytes(name)) {
                    *target = variable;
                    target = target.add(1);
                } else {
                    text.fill(0);
                }
                source = source.add(1);
            }
            if !target.is_null() {
                *target = std::ptr::null_mut();
            }
        }
    }
    Ok(())
}
