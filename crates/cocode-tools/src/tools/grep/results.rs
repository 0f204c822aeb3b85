//! Matching lines as they are shown, with their surroundings.

use std::path::Path;

use serde_json::{Value, json};

use crate::limits::MAX_RESULT_BYTES;
use crate::output::ToolOutput;
use crate::text::{self, count, shown};
use crate::tools::with_notes;
use crate::walk::Report;

/// What was found, and what was left out.
#[derive(Default)]
pub(super) struct Results {
    text: String,
    matches: Vec<Value>,
    pub(super) has_more: bool,
    pub(super) n_too_large: u64,
    pub(super) n_unreadable: u64,
    /// The search took too long.
    pub(super) is_late: bool,
    n_cut: u64,
}

/// A line that matches.
pub(super) struct Hit {
    /// Counted from 1.
    pub(super) number: usize,
    /// Where it begins and ends in the file.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Where in the line the match is.
    pub(super) focus: usize,
}

/// What is around a line.
pub(super) struct Surroundings<'a> {
    pub(super) content: &'a [u8],
    pub(super) path: &'a Path,
    pub(super) context: usize,
}

impl<'a> Surroundings<'a> {
    /// Up to so many lines before a line, but none before `from`.
    fn before(&self, hit: &Hit, from: usize) -> Vec<&'a [u8]> {
        let mut lines = Vec::new();
        let mut end = hit.start;
        while lines.len() < self.context && end > from {
            let rest = self.content.get(..end - 1).unwrap_or_default();
            let start = memchr::memrchr(b'\n', rest).map_or(0, |newline| newline + 1);
            lines.push(self.content.get(start..end).unwrap_or_default());
            end = start;
        }
        lines.reverse();
        lines
    }

    /// Up to so many lines after a line, but none from `until` on.
    fn after(&self, hit: &Hit, until: usize) -> Vec<&'a [u8]> {
        let rest = self.content.get(hit.end..until).unwrap_or_default();
        rest.split_inclusive(|byte| *byte == b'\n')
            .take(self.context)
            .collect()
    }
}

impl Results {
    /// There are as many matches as were asked for, or as fit.
    pub(super) fn is_full(&self, limit: usize) -> bool {
        self.matches.len() >= limit || self.text.len() >= MAX_RESULT_BYTES
    }

    pub(super) fn add(&mut self, surroundings: &Surroundings<'_>, last: Option<&Hit>, hit: &Hit) {
        let Surroundings {
            content,
            path,
            context,
        } = surroundings;
        let mut shown_until = 0;
        let mut next_number = 1;
        if let Some(last) = last {
            let after = self.show_after(surroundings, last, hit.start);
            shown_until = last.end + after.iter().map(|line| line.len()).sum::<usize>();
            next_number = last.number + 1 + after.len();
        }
        let before = surroundings.before(hit, shown_until);
        let first_number = hit.number - before.len();
        if *context > 0 && !self.text.is_empty() && (last.is_none() || first_number > next_number) {
            self.text.push_str("--\n");
        }
        for (index, line) in before.iter().enumerate() {
            self.show(path, first_number + index, '-', line, 0);
        }
        let line = content.get(hit.start..hit.end).unwrap_or_default();
        let text = self.show(path, hit.number, ':', line, hit.focus);
        let mut found = json!({
            "path": path.to_string_lossy(),
            "line": hit.number,
            "text": text,
        });
        if *context > 0 {
            let texts = |lines: Vec<&[u8]>| -> Vec<String> {
                lines.iter().map(|line| text::line(line, 0).0).collect()
            };
            found["before"] = texts(surroundings.before(hit, 0)).into();
            found["after"] = texts(surroundings.after(hit, content.len())).into();
        }
        self.matches.push(found);
    }

    /// Shows what follows a match, up to the next one.
    pub(super) fn show_after<'a>(
        &mut self,
        surroundings: &Surroundings<'a>,
        hit: &Hit,
        until: usize,
    ) -> Vec<&'a [u8]> {
        let after = surroundings.after(hit, until);
        for (index, line) in after.iter().enumerate() {
            self.show(surroundings.path, hit.number + 1 + index, '-', line, 0);
        }
        after
    }

    fn show(
        &mut self,
        path: &Path,
        number: usize,
        mark: char,
        line: &[u8],
        focus: usize,
    ) -> String {
        let (line, was_cut) = text::line(line, focus);
        self.n_cut += u64::from(was_cut);
        let shown = format!("{}{mark}{number}{mark}{line}\n", shown(path));
        self.text.push_str(&shown);
        line
    }

    pub(super) fn output(self, report: &Report) -> ToolOutput {
        let Self {
            text,
            matches,
            has_more,
            n_too_large,
            n_unreadable,
            is_late,
            n_cut,
        } = self;
        let mut notes = Vec::new();
        if matches.is_empty() {
            notes.push("nothing matches".to_owned());
        }
        if has_more {
            let shown = count(matches.len() as u64, "match is", "matches are");
            notes.push(format!("only the first {shown} shown"));
        }
        if is_late {
            notes.push("the search stopped, because it took too long".to_owned());
        }
        for (number, one, many) in [
            (n_cut, "long line is cut", "long lines are cut"),
            (
                n_too_large,
                "file is too large and was not searched",
                "files are too large and were not searched",
            ),
            (
                n_unreadable,
                "file could not be read",
                "files could not be read",
            ),
        ] {
            if number > 0 {
                notes.push(count(number, one, many));
            }
        }
        notes.extend(report.notes());
        let is_complete =
            !has_more && !is_late && n_too_large + n_unreadable == 0 && report.is_complete();
        let structured = json!({ "matches": matches, "truncated": !is_complete });
        ToolOutput::structured(with_notes(text, &notes), structured)
    }
}
