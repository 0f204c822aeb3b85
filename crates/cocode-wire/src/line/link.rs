//! A link over one pair of byte streams: a reader task, a writer task, and maybe a process.

use std::sync::{Arc, Mutex, PoisonError};

use cocode_process::{ExitReport, GuardedChild, StderrTail};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::reader::{Source, pump};
use super::writer::{LineWriter, Output, Sink, Taken};
use crate::error::{Closed, LinkError};
use crate::inbox::Inbox;
use crate::limits::{EXIT_REPORT_WAIT, STDERR_LINES_SHOWN};
use crate::sending::Sending;

/// Owns the streams, their tasks, and the process behind them if there is one. Dropping it ends
/// all three without waiting.
#[derive(Debug)]
pub(crate) struct LineLink {
    writer: Arc<LineWriter>,
    process: Option<ProcessHandle>,
    tasks: Mutex<JoinSet<()>>,
}

/// The process of a link, seen from outside the task that owns it.
#[derive(Debug)]
struct ProcessHandle {
    pid: u32,
    stderr: StderrTail,
    exit: watch::Receiver<Option<ExitReport>>,
    stop: Mutex<Option<oneshot::Sender<()>>>,
}

impl LineLink {
    /// Starts reading `source` at once.
    pub(crate) fn over(source: Source, sink: Sink, inbox: Arc<dyn Inbox>, max: usize) -> Self {
        Self::start(source, Output::Stream(sink), inbox, max, None)
    }

    /// The same for the streams of a child process, which this link then owns.
    pub(crate) fn to_process(
        mut child: GuardedChild,
        inbox: Arc<dyn Inbox>,
        max: usize,
    ) -> Result<Self, Closed> {
        let (Some(stdin), Some(stdout)) = (child.take_stdin(), child.take_stdout()) else {
            return Err(Closed::Protocol("the server process has no pipes".into()));
        };
        Ok(Self::start(
            Box::pin(stdout),
            Output::Pipe(stdin),
            inbox,
            max,
            Some(child),
        ))
    }

    fn start(
        source: Source,
        output: Output,
        inbox: Arc<dyn Inbox>,
        max: usize,
        child: Option<GuardedChild>,
    ) -> Self {
        let mut tasks = JoinSet::new();
        let writer = Arc::new(LineWriter::to(output));
        let process = child.map(|child| {
            let (stop, stopped) = oneshot::channel();
            let (exited, exit) = watch::channel(None);
            let stderr = child.stderr();
            let handle = ProcessHandle {
                pid: child.pid(),
                stderr,
                exit,
                stop: Mutex::new(Some(stop)),
            };
            tasks.spawn(own_process(child, stopped, exited));
            handle
        });
        let (ended, writer_ended) = oneshot::channel::<()>();
        let draining = Arc::clone(&writer).drain();
        tasks.spawn(async move {
            draining.await;
            drop(ended);
        });
        let witness = process.as_ref().map(|p| (p.exit.clone(), p.stderr.clone()));
        let closing = Arc::clone(&writer);
        tasks.spawn(async move {
            let mut reason = tokio::select! {
                biased;
                reason = pump(source, &inbox, &closing, max) => reason,
                // Whoever has sent something that was not written waits for its answer.
                reason = failure(writer_ended, &closing) => reason,
            };
            if let Some((exit, stderr)) = witness {
                let exited = exit_reason(exit, &stderr, &closing).await;
                reason = exited.unwrap_or(reason);
            }
            closing.close(reason.clone());
            inbox.closed(reason);
        });
        Self {
            writer,
            process,
            tasks: Mutex::new(tasks),
        }
    }

    pub(crate) fn send(&self, body: Vec<u8>) -> Sending<'_> {
        match self.writer.send_now(body) {
            Ok(Taken::Whole) => Sending::done(Ok(())),
            Ok(Taken::Not(line)) => Sending::waits(self.writer.send_later(line)),
            Err(error) => Sending::done(Err(error)),
        }
    }

    pub(crate) fn post(&self, body: Vec<u8>) -> Result<bool, LinkError> {
        self.writer.post(body)
    }

    /// Closes the stream, ends the process by the ladder, and waits for both.
    pub(crate) async fn close(&self) {
        self.writer.close(Closed::ByUs);
        if let Some(process) = &self.process {
            let stop = process
                .stop
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            drop(stop);
            let mut exit = process.exit.clone();
            // An error means that the owning task is gone, and the process with it.
            let report = exit
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|report| *report);
            tracing::debug!(pid = process.pid, ?report, "the server process has ended");
        }
        self.tasks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .abort_all();
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(|process| process.pid)
    }

    pub(crate) fn stderr_lines(&self) -> Vec<String> {
        let lines = self
            .process
            .as_ref()
            .map(|process| process.stderr.lines(STDERR_LINES_SHOWN));
        lines.unwrap_or_default()
    }
}

/// Why nothing can be written any more, once that is so. A stream that ends at the same time says
/// more, and goes first.
async fn failure(writer_ended: oneshot::Receiver<()>, writer: &LineWriter) -> Closed {
    // Nothing is ever sent: the other end is dropped when the writer has ended.
    writer_ended.await.unwrap_or_default();
    tokio::time::sleep(EXIT_REPORT_WAIT).await;
    writer.closed().unwrap_or(Closed::ByPeer)
}

/// Waits for the process to end by itself, or ends it when asked to (or when nobody is left to ask).
async fn own_process(
    mut child: GuardedChild,
    stopped: oneshot::Receiver<()>,
    exited: watch::Sender<Option<ExitReport>>,
) {
    let report = tokio::select! {
        report = child.wait() => report,
        _asked = stopped => child.stop().await,
    };
    exited.send_replace(Some(report));
}

/// How the process behind an ended stream ended, if it did.
async fn exit_reason(
    mut exit: watch::Receiver<Option<ExitReport>>,
    stderr: &StderrTail,
    writer: &LineWriter,
) -> Option<Closed> {
    let waited = tokio::time::timeout(EXIT_REPORT_WAIT, exit.wait_for(Option::is_some)).await;
    let report = (*waited.ok()?.ok()?)?;
    Some(Closed::Exited {
        report,
        stderr: stderr.lines(STDERR_LINES_SHOWN),
        has_unread: writer.has_unread(),
    })
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
