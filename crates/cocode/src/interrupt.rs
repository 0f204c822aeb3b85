//! Ctrl-C and the signals that mean the same. The first ends the work politely, the second at once.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{CliError, Code, Exit};

/// Waits for somebody who wants the program to end.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    quit: Signal,
}

impl Interrupts {
    /// From here on, signals no longer end the program by themselves.
    pub(crate) fn catch() -> Result<Self, CliError> {
        let catch = |kind| {
            let cannot =
                |error| CliError::new(Code::SetupFailed, "cannot catch signals").because(&error);
            signal(kind).map_err(cannot)
        };
        Ok(Self {
            interrupt: catch(SignalKind::interrupt())?,
            terminate: catch(SignalKind::terminate())?,
            hangup: catch(SignalKind::hangup())?,
            quit: catch(SignalKind::quit())?,
        })
    }

    /// Resolves with the next signal, as the exit code that shells have for it. Cancel safe.
    pub(crate) async fn next(&mut self) -> Exit {
        let Self {
            interrupt,
            terminate,
            hangup,
            quit,
        } = self;
        tokio::select! {
            _ = interrupt.recv() => Exit::Interrupted,
            // Without a core dump: what a command has changed is undone first.
            _ = quit.recv() => Exit::Interrupted,
            _ = terminate.recv() => Exit::Terminated,
            _ = hangup.recv() => Exit::HungUp,
        }
    }
}
