//! Systems whose kernel cannot keep a path beneath a directory: the walker does all the work.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{OFlags, Stat};
use rustix::io::Errno;

/// Why nothing was opened. Here there is one reason.
#[derive(Debug)]
pub(super) enum NotOpened {
    /// Always.
    AskWalker,
    /// Never; where the kernel resolves paths, it also fails to.
    #[expect(dead_code, reason = "the caller is the same on every system")]
    Failed(Errno),
}

pub(super) fn stat(_root: impl AsFd, _path: &Path) -> Result<Stat, NotOpened> {
    Err(NotOpened::AskWalker)
}

pub(super) fn open(_root: impl AsFd, _path: &Path, _flags: OFlags) -> Result<OwnedFd, NotOpened> {
    Err(NotOpened::AskWalker)
}
