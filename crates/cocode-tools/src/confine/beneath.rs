//! Resolution by the Linux kernel: `openat2`, never out of a directory and never over a link.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;

/// `NO_SYMLINKS` leaves every link to the walker, so that links mean the same everywhere.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// The kernel is older than 5.6. Learned once.
static MISSING: AtomicBool = AtomicBool::new(false);

/// Why nothing was opened.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// There is a link on the way, or the system call is missing or forbidden.
    AskWalker,
    /// The kernel has decided.
    Failed(Errno),
}

/// What is at a path, without opening it.
pub(super) fn stat(root: impl AsFd, path: &Path) -> Result<Stat, NotOpened> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let descriptor = open(root, path, flags)?;
    fstat(&descriptor).map_err(NotOpened::Failed)
}

pub(super) fn open(root: impl AsFd, path: &Path, flags: OFlags) -> Result<OwnedFd, NotOpened> {
    if MISSING.load(Ordering::Relaxed) {
        return Err(NotOpened::AskWalker);
    }
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    openat2(root, path, flags, Mode::empty(), RESOLVE).map_err(|errno| match errno {
        Errno::NOSYS => {
            MISSING.store(true, Ordering::Relaxed);
            NotOpened::AskWalker
        }
        // A link; a rename at the wrong moment; a filter of system calls that knows only old ones.
        // The walker also says best what is wrong with a path that is not a directory.
        Errno::LOOP | Errno::XDEV | Errno::AGAIN | Errno::PERM | Errno::NOTDIR => {
            NotOpened::AskWalker
        }
        other => NotOpened::Failed(other),
    })
}
