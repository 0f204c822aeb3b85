//! Shows the beginning and the end of a text that is too long to be shown.

use std::borrow::Cow;

use super::tokens::{prefix_of, quarters, quarters_of, suffix_of};

/// Of three parts, so many are for the beginning: that is where headings and first rows are.
const HEAD_PARTS: u64 = 2;

/// What is shown of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview<'a> {
    /// The text, or its beginning and end with a line between them that says what is missing. In a
    /// budget too small for that line there is only the beginning.
    pub text: Cow<'a, str>,
    /// What is missing; nothing if the text is whole.
    pub left_out: Option<LeftOut>,
}

/// What a preview lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Bytes that are not shown.
    pub bytes: usize,
    /// Lines of which something is not shown.
    pub lines: usize,
    /// About how many tokens those are.
    pub tokens: u64,
}

impl LeftOut {
    fn of(text: &str) -> Self {
        Self {
            bytes: text.len(),
            lines: text.lines().count(),
            tokens: super::estimate_tokens(text),
        }
    }

    /// The line in the gap. It is ASCII, so that it is as heavy as it is long.
    fn mark(&self) -> String {
        let Self {
            bytes,
            lines,
            tokens,
        } = self;
        let lines_are = if *lines == 1 { "line" } else { "lines" };
        format!("\n[... {lines} {lines_are}, {bytes} bytes, about {tokens} tokens left out ...]\n")
    }
}

/// Fits a text into a budget of tokens, by keeping its beginning and its end.
///
/// What [`estimate_tokens`](super::estimate_tokens) says of the preview is never more than the
/// budget. Lines are kept whole where there are any of a sensible length, characters always.
///
/// ```
/// use cocode_core::preview;
///
/// let text = "one line\n".repeat(1000);
/// let shown = preview(&text, 50);
/// assert!(shown.text.starts_with("one line\none line\n"));
/// assert!(shown.text.contains("tokens left out"));
/// assert_eq!(preview("short", 50).text, "short");
/// ```
#[must_use]
pub fn preview(text: &str, budget_tokens: u64) -> Preview<'_> {
    let budget = quarters_of(budget_tokens);
    if quarters(text) <= budget {
        return Preview {
            text: Cow::Borrowed(text),
            left_out: None,
        };
    }
    // No part of the text can have a longer mark than the whole, but for the plural of lines.
    let longest_mark = LeftOut::of(text).mark().len() as u64 + 1;
    let Some(room) = budget.checked_sub(longest_mark) else {
        let (head, rest) = text.split_at(prefix_of(text, budget));
        return Preview {
            text: Cow::Borrowed(head),
            left_out: Some(LeftOut::of(rest)),
        };
    };
    let head_room = room / 3 * HEAD_PARTS;
    let head = whole_lines_at_end(text.split_at(prefix_of(text, head_room)).0);
    let tail_room = room.saturating_sub(quarters(head));
    // Both together weigh less than the text, so they cannot meet.
    let tail = whole_lines_at_start(text.split_at(suffix_of(text, tail_room)).1);
    let middle = text
        .strip_prefix(head)
        .and_then(|rest| rest.strip_suffix(tail))
        .unwrap_or_default();
    let left_out = LeftOut::of(middle);
    let mark = left_out.mark();
    // A line that ended by itself needs no second end.
    let mark = if head.ends_with('\n') {
        mark.trim_start_matches('\n')
    } else {
        &mark
    };
    Preview {
        text: Cow::Owned(format!("{head}{mark}{tail}")),
        left_out: Some(left_out),
    }
}

/// Without the line at the end that was cut, unless most of the text is that line.
fn whole_lines_at_end(text: &str) -> &str {
    match text.rfind('\n') {
        Some(end) if end >= text.len() / 2 => text.split_at(end + 1).0,
        _ => text,
    }
}

/// Without the line at the start that was cut, unless most of the text is that line.
fn whole_lines_at_start(text: &str) -> &str {
    match text.find('\n') {
        Some(end) if end < text.len() / 2 => text.split_at(end + 1).1,
        _ => text,
    }
}
