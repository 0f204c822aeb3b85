//! The owner's end of the socket between it and the guard.
//!
//! The guard takes the end of this stream as the order to end everything, and the system closes
//! it however the owner dies. In the other direction come two words: the program's process id,
//! before it runs, and its wait status, after the guard has ended all of its tree.

use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::AsRawFd as _;
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The owner's end. Dropping it orders the guard to end the tree.
#[derive(Debug)]
pub(crate) struct Lifeline {
    stream: UnixStream,
}

/// The guard's end, kept by the owner only until the guard has its copy.
#[derive(Debug)]
pub(crate) struct GuardEnd {
    stream: UnixStream,
}

pub(crate) fn pair() -> io::Result<(Lifeline, GuardEnd)> {
    let (owner, guard) = UnixStream::pair()?;
    Ok((Lifeline { stream: owner }, GuardEnd { stream: guard }))
}

impl GuardEnd {
    pub(crate) fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

impl Lifeline {
    /// The process id of the program, which it sends before it is executed. Waits for it, or for
    /// the end of all other holders of the guard's end.
    pub(crate) fn server_pid(&mut self) -> io::Result<i32> {
        let mut word = [0; 4];
        self.stream.read_exact(&mut word)?;
        self.stream.set_nonblocking(true)?;
        Ok(i32::from_ne_bytes(word))
    }

    /// The wait status of the program, once the guard has exited; none if the guard was killed.
    pub(crate) fn wait_status(&mut self) -> Option<i32> {
        let mut word = [0; 4];
        // An error here is the missing word itself: the guard did not get to send it.
        self.stream.read_exact(&mut word).ok()?;
        Some(i32::from_ne_bytes(word))
    }

    /// Makes reading wait, up to a limit. Fails only on a socket that is closed.
    pub(crate) fn block_for(&self, limit: Duration) -> bool {
        self.stream.set_nonblocking(false).is_ok()
            && self.stream.set_read_timeout(Some(limit)).is_ok()
    }

    /// Orders the guard to end the tree. Unlike closing, this works even while a process forked
    /// at this very moment still holds a copy of the socket.
    pub(crate) fn release(&self) {
        if let Err(error) = self.stream.shutdown(Shutdown::Write) {
            // Only a guard that is already gone makes this fail, and then nothing is left to do.
            tracing::trace!(%error, "the guard is already gone");
        }
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        self.release();
    }
}
