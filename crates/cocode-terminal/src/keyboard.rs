//! Where keys come from: the seam, and the terminal of this process behind it.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::time::Duration;

use cocode_agent::Work;
use crossterm::event::{Event, EventStream};
use crossterm::terminal;
use futures_util::StreamExt as _;
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

use crate::run::TerminalError;
use crate::screen::Size;

/// How long the system may take to stop this process.
const STOPPING_TIME: Duration = Duration::from_secs(1);

/// Where keys, pastes and changes of size come from.
pub trait Input: Send {
    /// The next event; nothing if there will be none. Cancel safe.
    fn next(&mut self) -> Work<'_, Option<io::Result<Event>>>;

    /// The size of the terminal.
    fn size(&self) -> io::Result<Size>;

    /// Takes the terminal again, after something like a panic hook gave it back.
    fn reclaim(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Gives the terminal to the shell, and takes it back when the shell lets this process go on.
    fn suspend(&mut self) -> Work<'_, io::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// The terminal of this process, raw as long as this lives.
#[derive(Debug)]
pub struct Keyboard {
    events: EventStream,
}

impl Keyboard {
    /// Takes the terminal.
    pub fn open() -> Result<Self, TerminalError> {
        terminal::enable_raw_mode().map_err(TerminalError::NotATerminal)?;
        Ok(Self {
            events: EventStream::new(),
        })
    }
}

impl Input for Keyboard {
    fn next(&mut self) -> Work<'_, Option<io::Result<Event>>> {
        Box::pin(self.events.next())
    }

    fn size(&self) -> io::Result<Size> {
        let (columns, rows) = terminal::size()?;
        Ok(Size { columns, rows })
    }

    fn reclaim(&mut self) -> io::Result<()> {
        terminal::enable_raw_mode()
    }

    fn suspend(&mut self) -> Work<'_, io::Result<()>> {
        Box::pin(async {
            let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
            terminal::disable_raw_mode()?;
            kill_process(getpid(), Signal::TSTP)?;
            // Where no shell could let it go on, the system does not stop a process.
            if timeout(STOPPING_TIME, continued.recv()).await.is_err() {
                tracing::debug!("the process was not stopped");
            }
            terminal::enable_raw_mode()
        })
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if let Err(error) = leave_raw_mode() {
            tracing::warn!(%error, "the terminal stays raw; `reset` restores it");
        }
    }
}

/// Makes the terminal of this process cooked again: for a panic hook, which then writes the
/// [`restoring_bytes`](crate::restoring_bytes).
pub fn leave_raw_mode() -> io::Result<()> {
    terminal::disable_raw_mode()
}

/// The standard output of this process, with nothing between: what is drawn is written in one go.
pub fn standard_output() -> io::Result<Box<dyn Write + Send>> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(Box::new(File::from(output)))
}
