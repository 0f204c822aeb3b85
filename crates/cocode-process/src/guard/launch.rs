//! Turns a child of the guard into the program without copying the guard's memory once more.
//!
//! The guard is a forked copy of its owner. Forking it again would copy the owner's page tables
//! a second time, only to throw them away at once in `exec`. So the child borrows the guard's
//! memory until it is executed, on a stack of its own, while the guard sleeps (as `vfork` does).
#![expect(
    unsafe_code,
    reason = "starts a process on borrowed memory and executes a program"
)]

use std::ffi::{CString, OsStr, c_char, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, pid_t};
use tokio::process::Command;

use super::{Given, confine, prepare_program, system};

/// Stack for the child's few calls. The C library's search in `PATH` takes some pages of it, and
/// room for the arguments when it hands a script without interpreter line to the shell.
const STACK_BYTES: usize = 64 * 1024;

/// What `execvp` needs, laid out before the fork.
pub(super) struct Program {
    file: CString,
    arguments: Strings,
    environment: Strings,
}

/// Strings as C programs get them: an array of pointers with a null at its end.
struct Strings {
    pointers: Vec<*const c_char>,
    /// What the pointers lead to.
    _strings: Vec<CString>,
}

// SAFETY: the pointers lead to strings that the value itself owns and nobody changes.
unsafe impl Send for Strings {}
// SAFETY: as above; there is no interior mutability.
unsafe impl Sync for Strings {}

impl Strings {
    fn new(strings: Vec<CString>) -> Self {
        let end = std::iter::once(ptr::null());
        let pointers = strings
            .iter()
            .map(|string| string.as_ptr())
            .chain(end)
            .collect();
        Self {
            pointers,
            _strings: strings,
        }
    }
}

impl Program {
    /// Reads the command, whose environment is complete. Fails on a zero byte inside a string.
    pub(super) fn of(command: &Command) -> io::Result<Self> {
        let command = command.as_std();
        let file = c_string(command.get_program())?;
        let mut arguments = vec![file.clone()];
        for argument in command.get_args() {
            arguments.push(c_string(argument)?);
        }
        let mut environment = Vec::new();
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                let pair = [name.as_bytes(), b"=", value.as_bytes()].concat();
                environment.push(CString::new(pair)?);
            }
        }
        Ok(Self {
            file,
            arguments: Strings::new(arguments),
            environment: Strings::new(environment),
        })
    }

    /// Starts the program as a child of the calling guard, and returns when it is executed.
    pub(super) fn start(&self, guard: pid_t, given: &Given) -> io::Result<pid_t> {
        let launch = Launch {
            program: self,
            guard,
            given,
            failure: AtomicI32::new(0),
        };
        let argument_bytes = self
            .arguments
            .pointers
            .len()
            .saturating_mul(size_of::<usize>());
        let stack_bytes = STACK_BYTES.saturating_add(argument_bytes.next_multiple_of(STACK_BYTES));
        let top = map_stack(stack_bytes)?;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let argument = ptr::from_ref(&launch).cast_mut().cast();
        // SAFETY: the child runs `execute` on its own stack, which grows down from `top`. The
        // calling process is a forked copy with this single thread, which sleeps until the child
        // is executed or has exited, so nothing runs beside it on the shared memory, and `launch`
        // outlives its use.
        match unsafe { libc::clone(execute, top, flags, argument) } {
            -1 => Err(io::Error::last_os_error()),
            pid => match launch.failure.load(Ordering::Relaxed) {
                0 => Ok(pid),
                error => Err(io::Error::from_raw_os_error(error)),
            },
        }
    }
}

fn c_string(text: &OsStr) -> io::Result<CString> {
    Ok(CString::new(text.as_bytes())?)
}

/// Maps memory for a stack, with a page below it that catches an overflow, and gives its top. The
/// guard gives it back with all other memory.
fn map_stack(bytes: usize) -> io::Result<*mut c_void> {
    let page = rustix::param::page_size();
    let whole = bytes.saturating_add(page);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
    // SAFETY: asks for new memory, touches none that exists, and makes a part of the new memory
    // inaccessible before anybody knows it.
    unsafe {
        let bottom = libc::mmap(
            ptr::null_mut(),
            whole,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        if bottom == libc::MAP_FAILED || libc::mprotect(bottom, page, libc::PROT_NONE) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(bottom.byte_add(whole))
    }
}

/// What the child needs and what it answers.
struct Launch<'guard> {
    program: &'guard Program,
    guard: pid_t,
    given: &'guard Given,
    failure: AtomicI32,
}

unsafe extern "C" {
    /// Where the C library finds the environment. `execvp` takes `PATH` from here, and passes all
    /// of it on.
    static mut environ: *const *const c_char;
}

/// The child.
extern "C" fn execute(launch: *mut c_void) -> c_int {
    // SAFETY: `start` passes its own `Launch`, which lives while the guard sleeps.
    let launch = unsafe { &*launch.cast::<Launch<'_>>() };
    prepare_program(launch.guard, launch.given);
    if let Err(error) = confine(launch.given.ruleset.as_ref()) {
        let number = error.raw_os_error().unwrap_or(libc::EINVAL);
        launch.failure.store(number, Ordering::Relaxed);
        system::exit(1);
    }
    let Program {
        file,
        arguments,
        environment,
    } = launch.program;
    // SAFETY: this is the copy of a forked process that never reads its environment again, and
    // has no other thread. The arrays end with a null.
    unsafe {
        environ = environment.pointers.as_ptr();
        libc::execvp(file.as_ptr(), arguments.pointers.as_ptr());
    }
    launch
        .failure
        .store(system::last_errno(), Ordering::Relaxed);
    system::exit(1)
}
