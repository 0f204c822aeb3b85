//! What the suite left behind: checks and logs.

use std::fs;
use std::path::Path;

use crate::failure::Failure;

/// Lines of the suite's output that a failed scenario shows.
const SHOWN_LINES: usize = 40;

/// What stands for the file of a suite that wrote none.
const NO_CHECKS: &str = "[]";

/// The `checks.json` of the only result; an empty list where the suite wrote none.
pub(super) fn checks(results: &Path) -> Result<String, Failure> {
    let path = results.join("checks.json");
    if path.exists() {
        return fs::read_to_string(&path).map_err(|error| Failure::because(path.display(), error));
    }
    // A scenario called `auth/x` has its result one directory deeper than one called `x`.
    let Ok(entries) = fs::read_dir(results) else {
        return Ok(NO_CHECKS.to_owned());
    };
    for entry in entries {
        let entry = entry.map_err(|error| Failure::because(results.display(), error))?;
        let found = checks(&entry.path())?;
        if found != NO_CHECKS {
            return Ok(found);
        }
    }
    Ok(NO_CHECKS.to_owned())
}

/// The last lines of a log.
pub(super) fn end_of(log: &Path) -> Result<String, Failure> {
    let bytes = fs::read(log).map_err(|error| Failure::because(log.display(), error))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines
        .get(lines.len().saturating_sub(SHOWN_LINES)..)
        .unwrap_or_default()
        .join("\n"))
}
