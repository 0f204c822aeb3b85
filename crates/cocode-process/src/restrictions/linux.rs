//! Restrictions as `/proc` tells them.
//!
//! A number of a process is given to another when the first has ended. So the process is held by a descriptor, which
//! never means another, and must be alive after its restrictions were read under its number.
#![expect(
    unsafe_code,
    reason = "a socket option that the libraries do not offer"
)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;

use libc::{c_int, pid_t, socklen_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};

use super::{Restrictions, RestrictionsError, number_of};

/// Asks a unix socket for a descriptor of the process at its other end (Linux 6.5). The C library has no name for it
/// yet.
const SO_PEERPIDFD: c_int = 77;

/// Ancestors of a process that are followed. A longer chain is an error, and not the end of the chain.
const MAX_ANCESTORS: usize = 128;
/// How often a chain of ancestors is read again that has changed meanwhile.
const ANCESTRY_ATTEMPTS: usize = 8;

pub(super) fn own() -> Result<Restrictions, RestrictionsError> {
    of_number(own_number()?)
}

pub(super) fn of_peer(socket: BorrowedFd<'_>) -> Result<Restrictions, RestrictionsError> {
    of(peer(socket), of_number)
}

pub(super) fn is_descendant(socket: BorrowedFd<'_>) -> Result<bool, RestrictionsError> {
    let own = own_number()?;
    of(peer(socket), |peer| {
        Ok(peer != own && ancestors(peer)?.contains(&own))
    })
}

/// Reads something about the peer by its number in `/proc`.
fn of<T>(
    peer: io::Result<Peer>,
    look: impl Fn(i64) -> Result<T, RestrictionsError>,
) -> Result<T, RestrictionsError> {
    match peer.map_err(RestrictionsError::Unidentified)? {
        Peer::Held(process, known) => of_held(&process, known, look),
        Peer::Number(pid) => look(pid.into()),
        Peer::OutOfSight => Err(RestrictionsError::OutOfSight),
        Peer::Ended => Err(RestrictionsError::Ended),
    }
}

/// The process that was there when the connection was made.
enum Peer {
    /// With its number, where that is known already.
    Held(OwnedFd, Option<i64>),
    /// This kernel has no descriptors for processes. Nor has it Landlock, unless it is told to say so.
    Number(pid_t),
    OutOfSight,
    Ended,
}

fn peer(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut descriptor: RawFd = -1;
    match ask(socket, SO_PEERPIDFD, &mut descriptor) {
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
        Ok(()) => Ok(Peer::Held(
            unsafe { OwnedFd::from_raw_fd(descriptor) },
            None,
        )),
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
    let Some(number) = Pid::from_raw(pid) else {
        return Ok(Peer::OutOfSight);
    };
    match pidfd_open(number, PidfdFlags::empty()) {
        Ok(process) => Ok(Peer::Held(process, Some(pid.into()))),
        Err(Errno::NOSYS) => Ok(Peer::Number(pid)),
        Err(Errno::SRCH) => Ok(Peer::Ended),
        Err(errno) => Err(errno.into()),
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

fn of_held<T>(
    process: &OwnedFd,
    known: Option<i64>,
    look: impl Fn(i64) -> Result<T, RestrictionsError>,
) -> Result<T, RestrictionsError> {
    // The number that it has in this `/proc`, which may be of other processes than we see ourselves. Kernels before
    // 5.14 do not let a protected process read it, and give the number with the socket.
    let of_descriptor = PathBuf::from(format!("/proc/self/fdinfo/{}", process.as_raw_fd()));
    let number = match known {
        Some(pid) => Some(pid),
        None => number_of(&read(of_descriptor)?, "Pid:"),
    };
    match number {
        None | Some(0) => Err(RestrictionsError::OutOfSight),
        Some(..0) => Err(RestrictionsError::Ended),
        Some(pid) => {
            let found = look(pid);
            if has_ended(process).map_err(RestrictionsError::Unidentified)? {
                return Err(RestrictionsError::Ended);
            }
            match found {
                // It lives, but `/proc` does not show it.
                Err(RestrictionsError::Ended) => Err(RestrictionsError::OutOfSight),
                found => found,
            }
        }
    }
}

/// What the first thread of a process has. The others of a confined program have the same, because it was confined
/// before it was executed.
fn of_number(pid: i64) -> Result<Restrictions, RestrictionsError> {
    let mut id_maps = Vec::new();
    for map in ["uid_map", "gid_map"] {
        match about(pid, map) {
            Ok(map) => id_maps.extend(map),
            // This kernel has no user namespaces, or the process has ended, which is noticed anyway.
            Err(RestrictionsError::Ended) => {}
            // A new namespace has no map yet.
            Err(RestrictionsError::Read { source, .. })
                if source.kind() == io::ErrorKind::UnexpectedEof =>
            {
                id_maps.push(0);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Restrictions::read(
        &about(pid, "status")?,
        &about(pid, "limits")?,
        &id_maps,
    ))
}

pub(super) fn shares_mounts(socket: BorrowedFd<'_>) -> Result<bool, RestrictionsError> {
    let own = root_mount(own_number()?)?;
    Ok(of(peer(socket), root_mount)? == own)
}

/// The number of the mount that is the root of a process. No two mounts of the machine have the same.
fn root_mount(pid: i64) -> Result<Option<u64>, RestrictionsError> {
    let mounts = about(pid, "mountinfo")?;
    let first = mounts.split(|byte| *byte == b' ').next();
    Ok(first.and_then(|number| std::str::from_utf8(number).ok()?.parse().ok()))
}

/// The number of the calling process in this `/proc`.
fn own_number() -> Result<i64, RestrictionsError> {
    let status = read("/proc/self/status".into())?;
    number_of(&status, "Pid:").ok_or(RestrictionsError::OutOfSight)
}

/// The numbers of a process and of all its ancestors.
///
/// A chain counts if it was the same twice: then each parent was still that of its child when its own parent was
/// read for the first time, so no number belonged to another process by then.
fn ancestors(pid: i64) -> Result<Vec<i64>, RestrictionsError> {
    for _attempt in 0..ANCESTRY_ATTEMPTS {
        match (chain(pid), chain(pid)) {
            (Ok(first), Ok(second)) if first == second => return Ok(first),
            (Err(RestrictionsError::Ended), _)
            | (_, Err(RestrictionsError::Ended))
            | (Ok(_), Ok(_)) => {}
            (Err(error), _) | (_, Err(error)) => return Err(error),
        }
    }
    Err(RestrictionsError::UnknownAncestors)
}

fn chain(pid: i64) -> Result<Vec<i64>, RestrictionsError> {
    let mut chain = vec![pid];
    let mut last = pid;
    while chain.len() < MAX_ANCESTORS {
        let status = match about(last, "status") {
            Err(RestrictionsError::Ended) if last != pid && is_hidden(last)? => return Ok(chain),
            status => status?,
        };
        match number_of(&status, "PPid:") {
            Some(parent @ 1..) => last = parent,
            _ => return Ok(chain),
        }
        chain.push(last);
    }
    Err(RestrictionsError::UnknownAncestors)
}

/// Whether a process that `/proc` does not show belongs to another user, so that it is nothing that we have started.
/// `hidepid` hides those, and what cannot be dumped of the same user, which guards are.
fn is_hidden(pid: i64) -> Result<bool, RestrictionsError> {
    let number = pid_t::try_from(pid).ok().and_then(Pid::from_raw);
    match test_kill_process(number.ok_or(RestrictionsError::UnknownAncestors)?) {
        Ok(()) => Err(RestrictionsError::UnknownAncestors),
        Err(errno) => Ok(errno == Errno::PERM),
    }
}

/// A file of a process in `/proc`.
fn about(pid: i64, file: &str) -> Result<Vec<u8>, RestrictionsError> {
    match read(format!("/proc/{pid}/{file}").into()) {
        Err(RestrictionsError::Read { source, .. })
            if matches!(source.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)) =>
        {
            Err(RestrictionsError::Ended)
        }
        read => read,
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
    let mut asked = [PollFd::new(process, PollFlags::IN)];
    Ok(poll(&mut asked, Some(&Timespec::default()))? != 0)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::net::UnixStream;

    use super::{Peer, of, of_number, own, peer_by_number};

    #[test]
    fn older_kernels_tell_the_same() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = own().expect("this process");
        let held = peer_by_number(one.as_fd());
        assert!(matches!(held, Ok(Peer::Held(..))));
        assert_eq!(of(held, of_number).expect("this process"), own);
        let number = i32::try_from(std::process::id()).expect("a number");
        let by_number = of(Ok(Peer::Number(number)), of_number);
        assert_eq!(by_number.expect("this process"), own);
    }
}
