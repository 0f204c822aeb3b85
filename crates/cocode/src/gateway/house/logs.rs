//! The logs of servers, as `mcp logs` shows them.

use cocode_admin::model::{LogLine, LogStream};
use cocode_admin::{Moment, Refusal};
use cocode_client::LogRecord;

use super::interior::Interior;
use super::refusing::refusal;
use crate::configured;
use crate::manage::logs::not_read;

/// Lines that are given at once.
const MAX_LINES: usize = 10_000;

impl Interior {
    pub(super) async fn logged(&self, name: &str, lines: usize) -> Result<Vec<LogLine>, Refusal> {
        let (logs, server) = (self.logs.clone(), name.to_owned());
        let lines = lines.min(MAX_LINES);
        let found = self.blocking(move |_| logs.tail(&server, lines).map_err(not_read));
        let Some(found) = found.await? else {
            let present = self.present();
            let is_known =
                present.config.servers.contains_key(name) || present.spec(name).is_some();
            // A server that was removed may have left a log; one that never was has none.
            return if is_known {
                Ok(Vec::new())
            } else {
                Err(refusal(configured::unknown(name, &present.config)))
            };
        };
        Ok(found.iter().filter_map(|line| shown(line)).collect())
    }
}

/// A line of a log; nothing if it is none.
pub(super) fn shown(line: &str) -> Option<LogLine> {
    let record = LogRecord::parse(line)?;
    let at = serde_json::Value::from(record.time);
    let at: Moment = serde_json::from_value(at).ok()?;
    let stream = match record.source {
        "stderr" => LogStream::Stderr,
        "message" => LogStream::Log,
        _ => LogStream::State,
    };
    Some(LogLine {
        at,
        stream,
        level: record.level.map(str::to_owned),
        text: record.text.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use cocode_admin::model::LogStream;

    use super::shown;

    #[test]
    fn lines_of_logs_are_taken_apart_and_others_passed_over() {
        let line = shown("2026-11-16T03:04:05.123Z message:warning disk is full").unwrap();
        assert_eq!(line.at.to_string(), "2026-11-16T03:04:05.123Z");
        assert_eq!(line.stream, LogStream::Log);
        assert_eq!(line.level.as_deref(), Some("warning"));
        assert_eq!(line.text, "disk is full");
        let line = shown("2026-11-16T03:04:05.123Z stderr listening").unwrap();
        assert_eq!((line.stream, line.level), (LogStream::Stderr, None));
        let line = shown("2026-11-16T03:04:05.123Z log 3 lines were lost here").unwrap();
        assert_eq!(line.stream, LogStream::State);
        assert!(shown("somebody wrote this into the file").is_none());
    }
}
