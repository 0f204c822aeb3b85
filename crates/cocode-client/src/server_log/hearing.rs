//! Lines of logs as they are logged, for whoever shows them at once: nobody has to look at files
//! again and again for that.

use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::line;
use super::queue::Record;

/// Lines that are kept for a listener that is behind; it loses the oldest of more.
pub const LOG_LINES_KEPT: usize = 256;

/// A line that was logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedLine {
    /// Which server it is about.
    pub server: Arc<str>,
    /// The line as it is written, which [`LogRecord`](super::LogRecord) takes apart.
    pub line: String,
}

/// The lines that are logged since this was made.
#[derive(Debug)]
pub struct LoggedLines(Option<broadcast::Receiver<Arc<LoggedLine>>>);

impl LoggedLines {
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// The next line; nothing once nobody can log any more. Lines that came too fast are passed over.
    ///
    /// Cancel safe.
    pub async fn next(&mut self) -> Option<Arc<LoggedLine>> {
        let lines = self.0.as_mut()?;
        loop {
            match lines.recv().await {
                Ok(line) => return Some(line),
                Err(RecvError::Lagged(_passed_over)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// Tells lines to those who listen.
pub(super) struct Hearing(broadcast::Sender<Arc<LoggedLine>>);

impl Default for Hearing {
    fn default() -> Self {
        let (lines, _first) = broadcast::channel(LOG_LINES_KEPT);
        Self(lines)
    }
}

impl Hearing {
    pub(super) fn listen(&self) -> LoggedLines {
        LoggedLines(Some(self.0.subscribe()))
    }

    /// Tells a record, line by line. Costs nothing while nobody listens, and never waits.
    pub(super) fn tell(&self, record: &Record) {
        if self.0.receiver_count() == 0 {
            return;
        }
        for mut line in line::lines(record.at, &record.source, &record.text) {
            line.truncate(line.trim_end_matches('\n').len());
            let server = Arc::clone(&record.server);
            // Whoever listened may have left just now.
            drop(self.0.send(Arc::new(LoggedLine { server, line })));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::server_log::{LOG_LINES_KEPT, LogLimits, LogRecord, LogSource, ServerLogs};

    #[tokio::test]
    async fn lines_are_heard_as_they_are_logged_and_the_oldest_are_lost_to_the_slow() {
        let directory = tempfile::tempdir().unwrap();
        let logs = ServerLogs::open(directory.path(), LogLimits::default());
        let log = logs.server("files");
        log.line(LogSource::Stderr, "before anybody listened");
        let mut heard = logs.listen();
        log.line(LogSource::Message("warning"), "two\nlines");
        for text in ["two", "lines"] {
            let line = heard.next().await.unwrap();
            assert_eq!(&*line.server, "files");
            let record = LogRecord::parse(&line.line).unwrap();
            assert_eq!((record.source, record.level), ("message", Some("warning")));
            assert_eq!(record.text, text);
        }
        for number in 0..=LOG_LINES_KEPT {
            log.line(LogSource::State, &format!("is {number}"));
        }
        let first = heard.next().await.unwrap();
        assert_eq!(LogRecord::parse(&first.line).unwrap().text, "is 1");
        drop((logs, log));
        while heard.next().await.is_some() {}
    }

    #[tokio::test]
    async fn logs_that_are_not_kept_are_not_heard() {
        let mut heard = ServerLogs::off().listen();
        assert_eq!(heard.next().await, None);
    }
}
