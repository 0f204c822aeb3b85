//! Finds lines in a result.

use std::num::NonZeroUsize;

use cocode_client::{FoundLine, LineKind, ResultStore};
use regex::RegexBuilder;
use serde::Serialize;

use super::read;
use crate::args::results::GrepArgs;
use crate::error::{CliError, Code, Exit};
use crate::printer::{Style, print_json};
use crate::workspace::Workspace;

#[derive(Serialize)]
struct Report<'a> {
    handle: &'a str,
    /// Lines that match, shown or not.
    matches: usize,
    lines: Vec<Shown<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    line: usize,
    text: &'a str,
    matches: bool,
}

pub(super) fn run(
    args: &GrepArgs,
    store: &ResultStore,
    workspace: &Workspace,
) -> Result<Exit, CliError> {
    let GrepArgs {
        handle,
        pattern,
        ignore_case,
        context,
        max_count,
    } = args;
    let pattern = RegexBuilder::new(pattern)
        .case_insensitive(*ignore_case)
        .build()
        .map_err(|error| {
            CliError::new(Code::InvalidUsage, "the pattern is no regular expression")
                .because(&error)
                .hint("a backslash before a character takes it as it is")
        })?;
    let stored = read(handle, store)?;
    let found = stored.search(&pattern, *context);
    let matches = found.iter().filter(|line| is_match(line)).count();
    let shown = first(&found, *max_count, *context);
    let printer = &workspace.printer;
    if printer.json() {
        let lines = shown.iter().map(|line| Shown {
            line: line.number,
            text: &line.text,
            matches: is_match(line),
        });
        let report = Report {
            handle: stored.handle.as_str(),
            matches,
            lines: lines.collect(),
        };
        print_json(printer, &report)?;
    } else {
        let mut text = String::new();
        let mut last = None;
        for line in shown {
            let FoundLine {
                number,
                text: line_text,
                kind: _,
            } = line;
            if *context > 0 && last.is_some_and(|last| last + 1 < *number) {
                text.push_str("--\n");
            }
            last = Some(*number);
            let mark = if is_match(line) { ':' } else { '-' };
            let number = printer
                .paint()
                .paint(Style::Dim, &format!("{number}{mark}"));
            let line_text = printer.for_stdout(line_text.clone());
            text.extend([number.as_str(), &line_text, "\n"]);
        }
        printer.out(text)?;
    }
    if matches > max_count.get() {
        let message = format!(
            "only the first {max_count} of {matches} lines are shown: --max-count shows more"
        );
        printer.note(&message);
    }
    Ok(if matches == 0 { Exit::Tool } else { Exit::Ok })
}

fn is_match(line: &FoundLine) -> bool {
    line.kind == LineKind::Match
}

/// The lines up to so many matches, with what is shown around the last of them.
fn first(found: &[FoundLine], matches: NonZeroUsize, context: usize) -> &[FoundLine] {
    let positions = found.iter().enumerate().filter(|(_, line)| is_match(line));
    let last = positions.map(|(index, _)| index).nth(matches.get() - 1);
    let Some((index, last)) = last.and_then(|index| Some((index, found.get(index)?))) else {
        return found;
    };
    let after = found.iter().skip(index + 1);
    let after = after
        .take_while(|line| !is_match(line) && line.number <= last.number.saturating_add(context));
    found.split_at(index + 1 + after.count()).0
}
