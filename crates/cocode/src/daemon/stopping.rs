//! The end of a daemon that somebody wants: it is asked, and ended by the system if that does not help.

use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;

use super::asking::unavailable;
use super::control::Ask;
use super::hello::{Hello, Wants};
use super::place::Place;
use super::summon::{LOOK_WITHIN, Unavailable, connect, heard, peer};
use crate::error::CliError;
use crate::printer::Printer;

/// How long an end in order may take: requests and servers get ten seconds each, and credentials
/// that are being renewed somewhat more.
const IN_ORDER_WITHIN: Duration = Duration::from_secs(75);
/// After this it is said what takes so long.
const SAID_AFTER: Duration = Duration::from_secs(5);
/// How long a daemon that does not answer may take to end when the system tells it to.
const TOLD_WITHIN: Duration = Duration::from_secs(5);
/// How long the system may take to end a process.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// Why a daemon that does not answer cannot be ended.
const UNSEEN: &str = "its process cannot be seen from here";
/// How often it is looked whether a process is still there.
#[cfg(target_os = "linux")]
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A daemon that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) pid: i32,
    pub(crate) how: How,
}

/// How a daemon has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// It was asked.
    Asked,
    /// It did not answer, and ended when the system told it to.
    Told,
    /// It did not even do that.
    Killed,
}

/// Ends the daemon at a place, and waits for that. Nothing if none runs.
pub(crate) async fn stop(
    place: Option<&Place>,
    printer: &Printer,
) -> Result<Option<Ended>, CliError> {
    let Some(place) = place else {
        return Ok(None);
    };
    // Others could have led us to any process of this user, which is not to get a signal.
    let distrusted = place.distrusted();
    let mut stream = match connect(place).await {
        Ok(stream) => stream,
        Err(Unavailable::Connect { source, .. }) => {
            tracing::debug!(%source, "no daemon runs");
            return Ok(None);
        }
        Err(error @ Unavailable::Hangs { pid: None }) => {
            return Err(unavailable(&error).hint(UNSEEN));
        }
        Err(error) => return Err(unavailable(&error)),
    };
    if let Some(path) = distrusted {
        return Err(unavailable(&Unavailable::NotPrivate { path }));
    }
    let pid = peer(&stream);
    let process = pid.and_then(Process::of);
    let hello = Hello::new(Wants::Control(Ask::Stop));
    let patience = match heard(&mut stream, &hello, LOOK_WITHIN).await {
        Ok((welcome, _)) => {
            let pid = pid.or_else(|| welcome.pid.try_into().ok()).unwrap_or(0);
            if in_order(&mut stream, pid, printer).await {
                if let Some(process) = process {
                    process.gone().await;
                }
                let how = How::Asked;
                return Ok(Some(Ended { pid, how }));
            }
            TOLD_WITHIN
        }
        // It does not understand what is wanted, and ends in order all the same.
        Err(Unavailable::Refused { .. }) => IN_ORDER_WITHIN,
        Err(error @ Unavailable::Silent { .. }) if !is_connected(&stream) => {
            tracing::debug!(%error, "the daemon ended by itself");
            let (pid, how) = (pid.unwrap_or(0), How::Asked);
            return Ok(Some(Ended { pid, how }));
        }
        Err(Unavailable::Hangs { .. }) => TOLD_WITHIN,
        // What speaks, but not as a daemon does, is something else.
        Err(error @ (Unavailable::Answer(_) | Unavailable::Silent { .. })) => {
            let socket = place.socket.display();
            let hint = format!("something else may listen at {socket}, so it is left alone");
            return Err(unavailable(&error).hint(hint));
        }
        Err(error) => return Err(unavailable(&error)),
    };
    let Some(process) = process else {
        return Err(unavailable(&Unavailable::Hangs { pid }).hint(UNSEEN));
    };
    printer.note(&format!(
        "the daemon (process {}) does not end by itself, and is ended",
        process.pid()
    ));
    let ended = process.end(&mut stream, patience).await?;
    process.gone().await;
    Ok(Some(ended))
}

/// Waits for a daemon that said that it ends. Whether it did.
async fn in_order(stream: &mut UnixStream, pid: i32, printer: &Printer) -> bool {
    if has_ended(stream, SAID_AFTER).await {
        return true;
    }
    printer.note(&format!(
        "the daemon (process {pid}) lets requests finish that are under way"
    ));
    has_ended(stream, IN_ORDER_WITHIN).await
}

/// Waits until the other end of a connection is gone. Whether that was so in time.
async fn has_ended(stream: &mut UnixStream, within: Duration) -> bool {
    let mut ignored = [0; 1024];
    let ending = async { while !matches!(stream.read(&mut ignored).await, Ok(0) | Err(_)) {} };
    tokio::time::timeout(within, ending).await.is_ok()
}

/// Whether somebody still has the other end.
fn is_connected(stream: &UnixStream) -> bool {
    let mut ignored = [0; 1024];
    match stream.try_read(&mut ignored) {
        Ok(n_read) => n_read > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    }
}

/// The process at the other end of a connection. What has its number later is not meant.
#[derive(Debug)]
struct Process {
    pid: Pid,
    #[cfg(target_os = "linux")]
    handle: std::os::fd::OwnedFd,
}

impl Process {
    #[cfg(target_os = "linux")]
    fn of(pid: i32) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        let opened = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
        let opened = opened.inspect_err(|error| tracing::debug!(%error, "the process is unknown"));
        let handle = opened.ok()?;
        Some(Self { pid, handle })
    }

    #[cfg(not(target_os = "linux"))]
    fn of(pid: i32) -> Option<Self> {
        Pid::from_raw(pid).map(|pid| Self { pid })
    }

    fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Tells it to end, and ends it if it does not.
    async fn end(&self, stream: &mut UnixStream, patience: Duration) -> Result<Ended, CliError> {
        let pid = self.pid();
        self.signal(Signal::TERM, stream)?;
        // One that somebody has stopped does not hear of it otherwise.
        self.signal(Signal::CONT, stream)?;
        if has_ended(stream, patience).await {
            let how = How::Told;
            return Ok(Ended { pid, how });
        }
        self.signal(Signal::KILL, stream)?;
        if has_ended(stream, KILLED_WITHIN).await {
            let how = How::Killed;
            return Ok(Ended { pid, how });
        }
        let error = unavailable(&Unavailable::Hangs { pid: Some(pid) });
        Err(error.hint("not even the system ends it"))
    }

    /// Waits for its end, which comes a moment after that of its connections.
    #[cfg(target_os = "linux")]
    async fn gone(self) {
        let file = format!("/proc/{}/stat", self.pid());
        // What nobody has asked for its outcome yet has ended all the same.
        let is_gone = || match std::fs::read_to_string(&file) {
            Ok(text) => {
                let state = text.rsplit(") ").next();
                state.is_some_and(|state| state.starts_with(['Z', 'X']))
            }
            Err(_) => true,
        };
        let ending = async {
            while !is_gone() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        if tokio::time::timeout(KILLED_WITHIN, ending).await.is_err() {
            tracing::debug!("the process of the daemon takes long to end");
        }
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_async, reason = "elsewhere it is waited for")]
    async fn gone(self) {}

    /// While somebody has the other end, it is this process, and its number is nobody else's.
    fn signal(&self, signal: Signal, stream: &UnixStream) -> Result<(), CliError> {
        if !is_connected(stream) {
            return Ok(());
        }
        #[cfg(target_os = "linux")]
        let sent = rustix::process::pidfd_send_signal(&self.handle, signal);
        #[cfg(not(target_os = "linux"))]
        let sent = rustix::process::kill_process(self.pid, signal);
        match sent {
            Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
            Err(error) => {
                let hung = Unavailable::Hangs {
                    pid: Some(self.pid()),
                };
                Err(unavailable(&hung).because(&std::io::Error::from(error)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Stdio;
    use std::time::Duration;

    use rustix::process::Signal;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    use super::{Ended, How, Process};

    /// A process with the other end of a connection, that has said that it is there.
    #[expect(clippy::disallowed_methods, reason = "it is to be a stranger")]
    async fn stranger(script: &str) -> (tokio::process::Child, UnixStream) {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let theirs = theirs.into_std().unwrap();
        theirs.set_nonblocking(false).unwrap();
        let mut command = tokio::process::Command::new("sh");
        command.args(["-c", script]).kill_on_drop(true);
        let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn();
        drop(command);
        ours.read_exact(&mut [0; 3]).await.unwrap();
        (child.unwrap(), ours)
    }

    #[tokio::test]
    async fn a_process_that_does_not_hear_is_killed() {
        let (mut child, mut stream) = stranger("trap '' TERM; echo up >&0; exec sleep 1000").await;
        let pid = child.id().unwrap().try_into().unwrap();
        let process = Process::of(pid).unwrap();
        let ended = process.end(&mut stream, Duration::ZERO).await.unwrap();
        let how = How::Killed;
        assert_eq!(ended, Ended { pid, how });
        child.wait().await.unwrap();
    }

    #[tokio::test]
    async fn nobody_gets_a_signal_after_the_connection_has_ended() {
        let (mut child, mut stream) = stranger("echo up >&0; exec 0<&-; exec sleep 1000").await;
        let process = Process::of(child.id().unwrap().try_into().unwrap()).unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        process.end(&mut stream, Duration::ZERO).await.unwrap();
        // The first signal that ends a process is what it has died of.
        child.start_kill().unwrap();
        let died = child.wait().await.unwrap();
        assert_eq!(died.signal(), Some(Signal::KILL.as_raw()), "{died}");
    }
}
