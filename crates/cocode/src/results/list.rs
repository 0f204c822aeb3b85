//! Lists what is kept.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cocode_client::{KeptResult, ResultStore};
use serde::Serialize;

use super::failed;
use crate::error::{CliError, Exit};
use crate::printer::print_json;
use crate::table::{Cell, table};
use crate::text::size;
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Listing<'a> {
    results: Vec<Listed<'a>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    handle: &'a str,
    server: &'a str,
    tool: &'a str,
    /// Seconds since 1970.
    kept_at: u64,
    bytes: u64,
}

pub(super) fn run(store: &ResultStore, workspace: &Workspace) -> Result<Exit, CliError> {
    let printer = &workspace.printer;
    // What nobody may read any more is not listed, either.
    if let Err(error) = store.purge() {
        printer.warn(&format!("old results cannot be removed: {error}"));
    }
    let kept = store.list().map_err(|error| failed(&error))?;
    if printer.json() {
        let results = kept.iter().map(listed).collect();
        return print_json(printer, &Listing { results }).map(|()| Exit::Ok);
    }
    if kept.is_empty() {
        printer.note("no results are kept: those too large to show are kept for a while");
        return Ok(Exit::Ok);
    }
    let now = SystemTime::now();
    let rows: Vec<Vec<Cell>> = kept.iter().map(|result| row(result, now)).collect();
    let head = ["HANDLE", "SERVER", "TOOL", "SIZE", "KEPT"];
    printer.out(table(&head, &rows, printer.paint()))?;
    Ok(Exit::Ok)
}

fn listed(result: &KeptResult) -> Listed<'_> {
    let KeptResult {
        handle,
        server,
        tool,
        kept_at,
        bytes,
    } = result;
    let since = kept_at.duration_since(UNIX_EPOCH).unwrap_or_default();
    Listed {
        handle: handle.as_str(),
        server,
        tool,
        kept_at: since.as_secs(),
        bytes: *bytes,
    }
}

fn row(result: &KeptResult, now: SystemTime) -> Vec<Cell> {
    let age = now.duration_since(result.kept_at).unwrap_or_default();
    vec![
        Cell::new(result.handle.as_str()),
        Cell::new(&result.server),
        Cell::new(&result.tool),
        Cell::new(size(usize::try_from(result.bytes).unwrap_or(usize::MAX))),
        Cell::new(ago(age)),
    ]
}

/// `3 minutes ago`.
fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "just now".to_owned(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {unit}{plural} ago")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::ago;

    #[test]
    fn ages_are_told_in_their_largest_unit() {
        for (seconds, expected) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 minute ago"),
            (3_599, "59 minutes ago"),
            (3_600, "1 hour ago"),
            (86_399, "23 hours ago"),
            (86_400, "1 day ago"),
            (864_000, "10 days ago"),
        ] {
            assert_eq!(ago(Duration::from_secs(seconds)), expected);
        }
    }
}
