//! The filter of system calls that every confined program has. It leaves one without network no sockets but unix
//! sockets.
//!
//! Landlock knows TCP alone. What else goes over a network (UDP, and with it names; raw packets; other
//! families) is kept away by refusing the socket itself, with the same error that Landlock gives.
//!
//! Where nothing is refused, the filter is a mark: others see that there is one, and nothing takes it off again. See
//! [`Restrictions`](crate::Restrictions).
#![expect(
    unsafe_code,
    reason = "a system call that the standard library does not offer"
)]

use std::fmt;
use std::io;
use std::mem::offset_of;

use libc::{c_long, c_ulong, seccomp_data, sock_filter};

/// The kernel's number for the machine whose calls are filtered. Where there is none, there is no filter.
const OWN_MACHINE: Option<u32> = if cfg!(target_arch = "x86_64") {
    Some(0xC000_003E)
} else if cfg!(target_arch = "aarch64") {
    Some(0xC000_00B7)
} else {
    None
};

/// From here on the numbers of calls belong to another interface: x32, which x86-64 alone has.
const FOREIGN_NUMBERS: u32 = if cfg!(target_arch = "x86_64") {
    0x4000_0000
} else {
    u32::MAX
};

const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// How many steps the filter has.
const STEPS: u16 = 11;

/// A filter that lies ready.
pub(super) struct SocketFilter([sock_filter; STEPS as usize]);

impl fmt::Debug for SocketFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SocketFilter")
    }
}

/// Whether there is a filter for this machine.
pub(super) fn is_known() -> bool {
    OWN_MACHINE.is_some()
}

impl SocketFilter {
    /// The filter for a program with or without network.
    pub(super) fn new(network: bool) -> Self {
        let refusing = if network { None } else { Self::refusing() };
        // The first step decides already, and the others are never reached.
        refusing.unwrap_or_else(|| Self([give(libc::SECCOMP_RET_ALLOW); STEPS as usize]))
    }

    /// The filter that refuses sockets, where there is one for this machine.
    fn refusing() -> Option<Self> {
        let own_machine = OWN_MACHINE?;
        // The families are small numbers, which lie in the lower half of the argument.
        let lower_half = if cfg!(target_endian = "big") { 4 } else { 0 };
        let number = load(offset_of!(seccomp_data, nr))?;
        let machine = load(offset_of!(seccomp_data, arch))?;
        let family = load(offset_of!(seccomp_data, args).checked_add(lower_half)?)?;
        let allow = give(libc::SECCOMP_RET_ALLOW);
        // Programs take this for a kernel that does not have the call, and do without.
        let unknown = give(libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs());
        let refuse = give(libc::SECCOMP_RET_ERRNO | libc::EACCES.unsigned_abs());
        Some(Self([
            // Numbers mean something only for the machine that they are of.
            machine,
            jump(JUMP_IF_EQUAL, own_machine, 0, 7),
            number,
            jump(JUMP_IF_AT_LEAST, FOREIGN_NUMBERS, 5, 0),
            // Rings can open sockets, and do it past this filter.
            jump(JUMP_IF_EQUAL, call(libc::SYS_io_uring_setup)?, 4, 0),
            jump(JUMP_IF_EQUAL, call(libc::SYS_socket)?, 0, 2),
            family,
            jump(JUMP_IF_EQUAL, libc::AF_UNIX.unsigned_abs(), 0, 2),
            allow,
            unknown,
            refuse,
        ]))
    }

    /// Sets the filter for the calling process, which may not gain privileges any more. Safe to call between
    /// `fork` and `exec`: one system call.
    pub(super) fn enter(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: STEPS,
            filter: self.0.as_ptr().cast_mut(),
        };
        let mode = c_ulong::from(libc::SECCOMP_MODE_FILTER);
        let none: c_ulong = 0;
        // SAFETY: the kernel reads as many steps as the program says, from a live array, and writes nothing.
        let answer =
            unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program, none, none) };
        if answer == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }
}

fn load(offset: usize) -> Option<sock_filter> {
    Some(step(LOAD_WORD, u32::try_from(offset).ok()?, 0, 0))
}

/// Skips so many steps if the comparison holds, and so many if it does not.
fn jump(comparison: u16, with: u32, if_so: u8, if_not: u8) -> sock_filter {
    step(comparison, with, if_so, if_not)
}

fn give(answer: u32) -> sock_filter {
    step(RETURN, answer, 0, 0)
}

fn step(code: u16, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter {
        code,
        jt: if_so,
        jf: if_not,
        k: value,
    }
}

fn call(number: c_long) -> Option<u32> {
    u32::try_from(number).ok()
}
