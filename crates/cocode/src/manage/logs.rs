//! Shows what a server wrote and what became of it, from its log.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cocode_client::{FOLLOW_INTERVAL, FileError, LogFollower, LogLimits, LogRecord, ServerLogs};
use cocode_config::RetentionSettings;
use serde::Serialize;

use crate::args::manage::LogsArgs;
use crate::error::{CliError, Code, Exit};
use crate::interrupt::Interrupts;
use crate::naming;
use crate::printer::{Printer, Style, print_json};
use crate::session::on_runtime;
use crate::text::plain;
use crate::workspace::Workspace;

/// How long logs are kept.
const DEFAULT_DAYS: u64 = 14;
/// How large the log of one server may be.
const DEFAULT_MEGABYTES: u64 = 10;
/// Longer than anybody keeps a log, and still a time that can be counted with.
const MAX_DAYS: u64 = 36_500;

#[derive(Serialize)]
struct PathReport<'a> {
    name: &'a str,
    path: String,
    exists: bool,
}

#[derive(Serialize)]
struct ClearReport<'a> {
    name: &'a str,
    removed: usize,
}

#[derive(Serialize)]
struct LineReport<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'a str>,
    text: &'a str,
}

/// Where the logs of servers are.
pub(crate) fn directory(workspace: &Workspace) -> PathBuf {
    workspace.places.state.join("logs")
}

/// How much is kept of each of them.
pub(crate) fn limits(settings: &RetentionSettings) -> LogLimits {
    let days = settings.logs_days.as_ref();
    let days = days.map_or(DEFAULT_DAYS, |setting| setting.value.min(MAX_DAYS));
    let megabytes = settings.logs_max_mb.as_ref();
    let megabytes = megabytes.map_or(DEFAULT_MEGABYTES, |setting| setting.value);
    LogLimits::of(
        megabytes.saturating_mul(1_000_000),
        Duration::from_hours(24 * days),
    )
}

pub(crate) fn run(args: &LogsArgs, workspace: &Workspace) -> Result<Exit, CliError> {
    let config = workspace.config()?;
    let name = args.name.as_str();
    let logs = ServerLogs::open(directory(workspace), limits(&config.settings.retention));
    let follower = logs.follow(name, args.lines).map_err(not_read)?;
    // A server that was removed may have left a log.
    if !config.servers.contains_key(name) && !follower.exists() {
        workspace.warn_of_files(config);
        let names: Vec<&str> = config.servers.keys().map(String::as_str).collect();
        return Err(naming::unknown(name, &names));
    }
    let printer = &workspace.printer;
    if args.path {
        let path = logs.path(name).unwrap_or_default();
        let (path, exists) = (path.display().to_string(), follower.exists());
        if printer.json() {
            print_json(printer, &PathReport { name, path, exists })?;
        } else {
            printer.out_line(&printer.for_stdout(path))?;
        }
        return Ok(Exit::Ok);
    }
    if args.clear {
        let removed = logs.clear(name).map_err(not_read)?;
        if printer.json() {
            print_json(printer, &ClearReport { name, removed })?;
        } else if removed == 0 {
            printer.note(&none(name));
        } else {
            printer.out_line(&plain(&format!("removed the log of `{name}`")))?;
        }
        return Ok(Exit::Ok);
    }
    if !follower.exists() {
        printer.note(&none(name));
    }
    if args.follow {
        return on_runtime(workspace, follow(follower, printer));
    }
    let mut follower = follower;
    let lines = follower.poll().map_err(not_read)?;
    // The first look has all the lines that were asked for, but also what came in the meantime.
    let lines = lines.get(lines.len().saturating_sub(args.lines)..);
    printer.out(shown(lines.unwrap_or_default(), printer)?)?;
    Ok(Exit::Ok)
}

/// Shows lines as they come, until somebody wants it to end or nobody reads any more.
async fn follow(mut follower: LogFollower, printer: &Arc<Printer>) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::catch()?;
    loop {
        // Neither a slow disk nor a reader that stopped keeps Ctrl-C from working.
        let own_printer = Arc::clone(printer);
        let looking = tokio::task::spawn_blocking(move || {
            let lines = follower.poll().map_err(not_read)?;
            own_printer.out(shown(&lines, &own_printer)?)?;
            Ok::<_, CliError>((follower, !lines.is_empty()))
        });
        let looked = tokio::select! {
            biased;
            exit = interrupts.next() => return Ok(exit),
            looked = looking => looked,
        };
        let cannot =
            |error| CliError::new(Code::SetupFailed, "cannot read the log").because(&error);
        let (same, is_more_likely) = looked.map_err(cannot)??;
        follower = same;
        if !printer.is_read() {
            return Ok(Exit::Ok);
        }
        let pause = if is_more_likely {
            Duration::ZERO
        } else {
            FOLLOW_INTERVAL
        };
        tokio::select! {
            biased;
            exit = interrupts.next() => {
                printer.leave_line();
                return Ok(exit);
            }
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Lines of a log as they are printed.
fn shown(lines: &[String], printer: &Printer) -> Result<String, CliError> {
    let mut text = String::new();
    for line in lines {
        if printer.json() {
            text.push_str(&as_json(line)?);
        } else {
            text.push_str(&for_people(line, printer));
        }
        text.push('\n');
    }
    Ok(text)
}

fn for_people(line: &str, printer: &Printer) -> String {
    let paint = printer.paint();
    let line = if printer.stdout_is_terminal() {
        &plain(line)
    } else {
        line
    };
    let text = LogRecord::parse(line).map(|record| record.text);
    match text.and_then(|text| line.strip_suffix(text).map(|before| (before, text))) {
        Some((before, text)) => format!("{}{text}", paint.paint(Style::Dim, before)),
        None => line.to_owned(),
    }
}

fn as_json(line: &str) -> Result<String, CliError> {
    let report = match LogRecord::parse(line) {
        Some(LogRecord {
            time,
            source,
            level,
            text,
        }) => LineReport {
            time: Some(time),
            source: Some(source),
            level,
            text,
        },
        None => LineReport {
            time: None,
            source: None,
            level: None,
            text: line,
        },
    };
    serde_json::to_string(&report)
        .map_err(|error| CliError::new(Code::SetupFailed, "cannot write JSON").because(&error))
}

/// A server without a log.
fn none(name: &str) -> String {
    format!("`{name}` has no log yet: it begins when the server is started or contacted")
}

/// A log that cannot be read.
pub(crate) fn not_read(error: FileError) -> CliError {
    let FileError {
        action,
        path,
        source,
    } = error;
    CliError::file(action, &path, &source)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cocode_client::LogLimits;
    use cocode_config::{RetentionSettings, Setting};

    use super::limits;

    #[test]
    fn limits_come_from_the_settings_or_are_two_weeks_and_ten_megabytes() {
        let check = |days: Option<u64>, megabytes: Option<u64>, expected: (u64, u64)| {
            let setting = |value: u64| Setting { value, from: None };
            let settings = RetentionSettings {
                logs_days: days.map(setting),
                logs_max_mb: megabytes.map(setting),
                ..RetentionSettings::default()
            };
            let (max_bytes_per_file, days) = expected;
            let expected = LogLimits {
                max_bytes_per_file,
                files: 3,
                max_age: Duration::from_hours(24 * days),
            };
            assert_eq!(limits(&settings), expected);
        };
        check(None, None, (3_333_334, 14));
        check(Some(2), Some(30), (10_000_000, 2));
        check(
            Some(u64::MAX),
            Some(u64::MAX),
            (u64::MAX.div_ceil(3), 36_500),
        );
    }
}
