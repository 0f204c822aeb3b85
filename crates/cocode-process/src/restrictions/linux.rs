//! Restrictions as `/proc` tells them.
//!
//! A number of a process is given to another when the first has ended. So the process is held by a descriptor, which
//! never means another, and must be alive after its restrictions were read under its number.
#![expect(
    unsafe_code,
    reason = "system calls that the standard library does not offer"
)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;

use libc::{c_int, c_uint, pid_t, socklen_t};

use super::{Restrictions, RestrictionsError, number_of};

/// Asks a unix socket for a descriptor of the process at its other end (Linux 6.5). The C library has no name for it
/// yet.
const SO_PEERPIDFD: c_int = 77;

pub(super) fn own() -> Result<Restrictions, RestrictionsError> {
    Ok(Restrictions::read(&read("/proc/self/status".into())?))
}

pub(super) fn of_peer(socket: BorrowedFd<'_>) -> Result<Restrictions, RestrictionsError> {
    of(peer(socket))
}

fn of(peer: io::Result<Peer>) -> Result<Restrictions, RestrictionsError> {
    match peer.map_err(RestrictionsError::Unidentified)? {
        Peer::Held(process) => of_held(&process),
        Peer::Number(pid) => of_number(pid.into()),
        Peer::OutOfSight => Err(RestrictionsError::OutOfSight),
        Peer::Ended => Err(RestrictionsError::Ended),
    }
}

/// The process that was there when the connection was made.
enum Peer {
    Held(OwnedFd),
    /// This kernel has no descriptors for processes. Nor has it Landlock, unless it is told to say so.
    Number(pid_t),
    OutOfSight,
    Ended,
}

fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut descriptor: RawFd = -1;
    match ask(socket, SO_PEERPIDFD, &mut descriptor) {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        Ok(()) => Ok(Peer::Held(unsafe { OwnedFd::from_raw_fd(descriptor) })),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOPROTOOPT) => peer_by_number(socket),
            // Depends on how much is left of it.
            Some(libc::ESRCH | libc::EINVAL | libc::ENODATA) => Ok(Peer::Ended),
            _ => Err(error),
        },
    }
}

/// The same for older kernels. Since the connection was made, somebody else can have got the number of a process that
/// has ended. Only Linux 6.2 to 6.4 has sandboxes and no better way.
fn peer_by_number(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    ask(socket, libc::SO_PEERCRED, &mut credentials)?;
    let pid = credentials.pid;
    if pid <= 0 {
        return Ok(Peer::OutOfSight);
    }
    match hold(pid) {
        Ok(process) => Ok(Peer::Held(process)),
        Err(error) => match error.raw_os_error() {
            Some(libc::ENOSYS) => Ok(Peer::Number(pid)),
            Some(libc::ESRCH) => Ok(Peer::Ended),
            _ => Err(error),
        },
    }
}

/// Asks a socket for something of a fixed size, made of numbers only.
fn ask<T: Copy>(socket: BorrowedFd<'_>, option: c_int, answer: &mut T) -> io::Result<()> {
    let whole = socklen_t::try_from(size_of::<T>()).map_err(io::Error::other)?;
    let mut filled = whole;
    // SAFETY: the kernel writes at most as much as the answer has room for, and says how much. Every pattern of
    // bits is a value of the two types that are asked for.
    let asked = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_mut(answer).cast(),
            &raw mut filled,
        )
    };
    if asked != 0 {
        Err(io::Error::last_os_error())
    } else if filled == whole {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn hold(pid: pid_t) -> io::Result<OwnedFd> {
    let flags: c_uint = 0;
    // SAFETY: touches no memory.
    let answer = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) };
    match RawFd::try_from(answer) {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn of_held(process: &OwnedFd) -> Result<Restrictions, RestrictionsError> {
    // The number that it has in this `/proc`, which may be of other processes than we see ourselves.
    let of_descriptor = PathBuf::from(format!("/proc/self/fdinfo/{}", process.as_raw_fd()));
    match number_of(&read(of_descriptor)?, "Pid:") {
        None | Some(0) => Err(RestrictionsError::OutOfSight),
        Some(..0) => Err(RestrictionsError::Ended),
        Some(pid) => {
            let restrictions = of_number(pid)?;
            if has_ended(process).map_err(RestrictionsError::Unidentified)? {
                return Err(RestrictionsError::Ended);
            }
            Ok(restrictions)
        }
    }
}

/// What the first thread of a process has. The others of a confined program have the same, because it was confined
/// before it was executed.
fn of_number(pid: i64) -> Result<Restrictions, RestrictionsError> {
    match read(format!("/proc/{pid}/status").into()) {
        Ok(status) => Ok(Restrictions::read(&status)),
        Err(RestrictionsError::Read { source, .. })
            if matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) =>
        {
            Err(RestrictionsError::Ended)
        }
        Err(error) => Err(error),
    }
}

fn read(path: PathBuf) -> Result<Vec<u8>, RestrictionsError> {
    let text = match std::fs::read(&path) {
        // Nothing said is not the same as no restrictions.
        Ok(text) if text.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
        other => other,
    };
    text.map_err(|source| RestrictionsError::Read { path, source })
}

fn has_ended(process: &OwnedFd) -> io::Result<bool> {
    let mut asked = libc::pollfd {
        fd: process.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one entry, which lives, and no time to wait.
    match unsafe { libc::poll(&raw mut asked, 1, 0) } {
        -1 => Err(io::Error::last_os_error()),
        n_ready => Ok(n_ready != 0),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::{Peer, of, own, peer_by_number};

    #[test]
    fn older_kernels_tell_the_same() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = own().expect("this process");
        let held = peer_by_number(one.as_fd());
        assert!(matches!(held, Ok(Peer::Held(_))));
        assert_eq!(of(held).expect("this process"), own);
        let number = i32::try_from(std::process::id()).expect("a number");
        let by_number = of(Ok(Peer::Number(number)));
        assert_eq!(by_number.expect("this process"), own);
    }
}
