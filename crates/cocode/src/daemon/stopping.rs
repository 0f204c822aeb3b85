//! The end of a daemon that somebody wants: it is asked, and ended by the system if that does not help.

use std::time::Duration;

use http::StatusCode;
use rustix::process::{Pid, Signal};
use tokio::net::UnixStream;

use super::asking::{Asking, unavailable};
use super::connect::{PayloadKind, connect, peer};
use super::place::Place;
use super::summon::Unavailable;
use crate::api_client::ApiError;
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
    let stream = match connect(place, PayloadKind::Commands).await {
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
    let pid = peer(&stream);
    let process = pid.and_then(|pid| Process::of(pid, &stream));
    // Something else may serve one after the other.
    drop(stream);
    let ended = |how| Ended {
        pid: pid.unwrap_or(0),
        how,
    };
    let patience = match asked_to_end(place).await {
        Ok(()) => {
            if in_order(process.as_ref(), place, printer).await {
                return Ok(Some(ended(How::Asked)));
            }
            TOLD_WITHIN
        }
        // It does not understand what is wanted, and ends in order all the same.
        Err(Unavailable::Refused { .. }) => IN_ORDER_WITHIN,
        Err(Unavailable::Hangs { .. }) => TOLD_WITHIN,
        Err(error) if connect(place, PayloadKind::Commands).await.is_err() => {
            tracing::debug!(%error, "the daemon ended by itself");
            return Ok(Some(ended(How::Asked)));
        }
        // What speaks, but not as a daemon does, is something else.
        Err(error) => {
            let socket = place.socket.display();
            let hint = format!("something else may listen at {socket}, so it is left alone");
            return Err(unavailable(&error).hint(hint));
        }
    };
    let Some(process) = process else {
        return Err(unavailable(&Unavailable::Hangs { pid }).hint(UNSEEN));
    };
    printer.note(&format!(
        "the daemon (process {}) does not end by itself, and is ended",
        process.pid()
    ));
    process.end(place, patience).await.map(Some)
}

/// Tells whoever is at a place to end.
async fn asked_to_end(place: &Place) -> Result<(), Unavailable> {
    match Asking::of(place).await?.stop().await {
        // Somebody else has told it already.
        Err(Unavailable::Asked(ApiError::Refused { status, .. }))
            if status == StatusCode::CONFLICT =>
        {
            Ok(())
        }
        told => told,
    }
}

/// Waits for a daemon that said that it ends. Whether it did.
async fn in_order(process: Option<&Process>, place: &Place, printer: &Printer) -> bool {
    let Some(process) = process else {
        // From here one sees only that its place is free.
        return freed(place, IN_ORDER_WITHIN).await;
    };
    if process.gone(SAID_AFTER).await {
        return true;
    }
    printer.note(&format!(
        "the daemon (process {}) lets requests finish that are under way",
        process.pid()
    ));
    process.gone(IN_ORDER_WITHIN).await
}

/// Waits until nobody listens at a place any more. Whether that was so in time.
async fn freed(place: &Place, within: Duration) -> bool {
    let ending = async {
        while connect(place, PayloadKind::Commands).await.is_ok() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
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
    /// The process of that number, as long as it has the other end of this connection.
    fn of(pid: i32, stream: &UnixStream) -> Option<Self> {
        let pid = Pid::from_raw(pid)?;
        #[cfg(target_os = "linux")]
        let handle = {
            let opened = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty());
            opened
                .inspect_err(|error| tracing::debug!(%error, "the process is unknown"))
                .ok()?
        };
        // If it is still there now, the number was its own.
        is_connected(stream).then_some(Self {
            pid,
            #[cfg(target_os = "linux")]
            handle,
        })
    }

    fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Tells it to end, and ends it if it does not.
    async fn end(&self, place: &Place, patience: Duration) -> Result<Ended, CliError> {
        let pid = self.pid();
        self.signal(Signal::TERM, place).await?;
        // One that somebody has stopped does not hear of it otherwise.
        self.signal(Signal::CONT, place).await?;
        if self.gone(patience).await {
            let how = How::Told;
            return Ok(Ended { pid, how });
        }
        self.signal(Signal::KILL, place).await?;
        if self.gone(KILLED_WITHIN).await {
            let how = How::Killed;
            return Ok(Ended { pid, how });
        }
        let error = unavailable(&Unavailable::Hangs { pid: Some(pid) });
        Err(error.hint("not even the system ends it"))
    }

    /// Waits for its end. Whether it came in time.
    async fn gone(&self, within: Duration) -> bool {
        let ending = async {
            while !self.is_gone() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::time::timeout(within, ending).await.is_ok()
    }

    #[cfg(target_os = "linux")]
    fn is_gone(&self) -> bool {
        // What nobody has asked for its outcome yet has ended all the same.
        match std::fs::read_to_string(format!("/proc/{}/stat", self.pid())) {
            Ok(text) => {
                let state = text.rsplit(") ").next();
                state.is_some_and(|state| state.starts_with(['Z', 'X']))
            }
            Err(_) => true,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn is_gone(&self) -> bool {
        rustix::process::test_kill_process(self.pid) == Err(rustix::io::Errno::SRCH)
    }

    /// The handle is that of no other process.
    #[cfg(target_os = "linux")]
    #[expect(clippy::unused_async, reason = "elsewhere it is looked who is there")]
    async fn send(&self, signal: Signal, _place: &Place) -> rustix::io::Result<()> {
        rustix::process::pidfd_send_signal(&self.handle, signal)
    }

    /// While it listens at its place, its number is nobody else's.
    #[cfg(not(target_os = "linux"))]
    async fn send(&self, signal: Signal, place: &Place) -> rustix::io::Result<()> {
        match connect(place, PayloadKind::Commands).await {
            Ok(stream) if peer(&stream) == Some(self.pid()) => {
                rustix::process::kill_process(self.pid, signal)
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    async fn signal(&self, signal: Signal, place: &Place) -> Result<(), CliError> {
        match self.send(signal, place).await {
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
    use std::process::Stdio;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;

    use super::Process;
    #[cfg(target_os = "linux")]
    use super::{Ended, How, Place};

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

    #[cfg(target_os = "linux")]
    fn nowhere() -> Place {
        Place {
            socket: "/none.sock".into(),
            log: "/none.log".into(),
            home: None,
        }
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn a_process_that_does_not_hear_is_killed() {
        let (mut child, stream) = stranger("trap '' TERM; echo up >&0; exec sleep 1000").await;
        let pid = child.id().unwrap().try_into().unwrap();
        let process = Process::of(pid, &stream).unwrap();
        let ended = process
            .end(&nowhere(), std::time::Duration::ZERO)
            .await
            .unwrap();
        let how = How::Killed;
        assert_eq!(ended, Ended { pid, how });
        child.wait().await.unwrap();
    }

    #[tokio::test]
    async fn nobody_is_meant_who_has_left_the_connection() {
        let (mut child, mut stream) = stranger("echo up >&0; exec 0<&-; exec sleep 1000").await;
        let pid = child.id().unwrap().try_into().unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
        assert!(Process::of(pid, &stream).is_none());
        child.start_kill().unwrap();
        child.wait().await.unwrap();
    }
}
