//! Shows what waits for approval, all of it, and asks the person at the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _, stderr, stdin};

use cocode_config::{Candidate, Entry, PendingSettings, Trust, visible};

use crate::error::{CliError, Code};
use crate::workspace::Workspace;

/// How a question can be answered where a no is remembered.
const ANSWERS: &str = "[y = yes, n = no and do not ask again, Enter = not now]";

/// What a person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    /// A no that was said.
    No,
    /// Nothing that could be taken for either, or the end of the input.
    NotNow,
}

/// Shows an entry, or what changed in it, and asks.
pub(super) fn about_server(
    name: &str,
    candidate: &Candidate,
    workspace: &Workspace,
) -> Result<Answer, CliError> {
    let (name, origin) = (visible(name), &candidate.found.origin);
    let mut shown = Vec::new();
    if let Trust::Changed(difference) = &candidate.trust {
        shown.push(format!(
            "Server `{name}` of {origin} changed since you approved it:"
        ));
        shown.extend(difference.to_string().lines().map(str::to_owned));
    } else {
        shown.push(format!("Server `{name}` of {origin} says:"));
        shown.extend(entry_lines(&candidate.found.entry, "  "));
    }
    let question = format!("Approve it, so that it may be started? {ANSWERS} ");
    asked(&shown, &question, workspace)
}

/// Shows a file of settings, and asks.
pub(super) fn about_settings(
    file: &PendingSettings,
    workspace: &Workspace,
) -> Result<Answer, CliError> {
    let path = visible(&file.path.display().to_string());
    let what = match file.trust {
        Trust::Changed(_) => "changed since you approved them, and say now",
        _ => "say",
    };
    let mut shown = vec![format!("The settings of {path} {what}:")];
    let lines = file.text().lines();
    shown.extend(lines.map(|line| format!("  {}", visible(&line.replace('\t', "    ")))));
    let question = format!("Approve these settings? {ANSWERS} ");
    asked(&shown, &question, workspace)
}

/// Everything an entry says, a line for each key, so that nothing in it makes a line of its own.
pub(crate) fn entry_lines(entry: &Entry, indent: &str) -> Vec<String> {
    let lines = entry.lines().into_iter();
    lines
        .map(|line| format!("{indent}{} = {}", line.shown_key(), line.in_full()))
        .collect()
}

/// Whether there is a person to ask.
pub(crate) fn can_ask(workspace: &Workspace) -> bool {
    stdin().is_terminal() && workspace.printer.stderr_is_terminal()
}

/// Shows lines in which everything is visible, and asks: only a clear yes or no is one.
pub(crate) fn asked(
    shown: &[String],
    question: &str,
    workspace: &Workspace,
) -> Result<Answer, CliError> {
    for line in shown {
        workspace.printer.err_line(line);
    }
    let cannot =
        |error| CliError::new(Code::FileError, "cannot ask at the terminal").because(&error);
    let mut out = stderr().lock();
    write!(out, "{question}")
        .and_then(|()| out.flush())
        .map_err(cannot)?;
    drop(out);
    let mut line = String::new();
    let length = stdin().lock().read_line(&mut line).map_err(cannot)?;
    if length == 0 {
        // The question still stands in the line.
        workspace.printer.err_line("");
    }
    Ok(match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Yes,
        "n" | "no" => Answer::No,
        _ => Answer::NotNow,
    })
}
