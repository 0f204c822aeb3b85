//! A kept result for reading: as text, page by page, and by search.

use std::num::NonZeroUsize;
use std::time::SystemTime;

use cocode_core::split_at_tokens;
use cocode_wire::RawJson;
use regex::Regex;

use super::blocks::Parts;
use super::handle::ResultHandle;
use crate::features::CallResult;

/// What a page holds where nobody says otherwise: little enough for any model.
pub const DEFAULT_PAGE_TOKENS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(4_999);

/// A found line is cut to about so many bytes around what was found.
pub const MAX_FOUND_LINE_BYTES: usize = 500;

/// A result that was kept.
#[derive(Clone, Debug)]
pub struct StoredResult {
    /// Its name.
    pub handle: ResultHandle,
    /// The server it came from.
    pub server: String,
    /// The tool that gave it.
    pub tool: String,
    /// When it came.
    pub kept_at: SystemTime,
    /// The result as it came.
    pub raw: RawJson,
}

/// How much one page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageSize {
    /// So many lines, however long they are.
    Lines(NonZeroUsize),
    /// So many tokens. Lines are kept whole, unless one alone is longer.
    Tokens(NonZeroUsize),
}

impl Default for PageSize {
    fn default() -> Self {
        Self::Tokens(DEFAULT_PAGE_TOKENS)
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Which one it is; the first is 1.
    pub number: usize,
    /// How many there are.
    pub pages: usize,
    /// The first line that is on it, at least in part; the first of all is 1.
    pub first_line: usize,
    /// The last line that is on it, at least in part.
    pub last_line: usize,
    /// How many lines the whole text has.
    pub lines: usize,
    /// What is on it.
    pub text: String,
}

/// A line that was found, or that stands near one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLine {
    /// Which line it is; the first of all is 1.
    pub number: usize,
    /// What it says, or the part of a long line around the first match.
    pub text: String,
    /// Why it is shown.
    pub kind: LineKind,
}

/// Why a line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// It matches.
    Match,
    /// It stands near one that does.
    Context,
}

impl StoredResult {
    /// The result with its content.
    pub fn result(&self) -> CallResult {
        CallResult::parse(self.raw.clone())
    }

    /// What a person would read: the texts, with JSON indented, notes in the place of images and
    /// other binary content, and structured content unless a text repeats it. A result that has none
    /// of these is shown whole. Every line ends with a line break.
    pub fn text(&self) -> String {
        let parts = Parts::of(&self.raw);
        if parts.blocks.is_empty() && parts.structured.is_none() {
            let whole = super::pretty::pretty(self.raw.as_str());
            return whole.unwrap_or_else(|| self.raw.as_str().to_owned()) + "\n";
        }
        parts.text(&[])
    }

    /// A page of [`StoredResult::text`], if there are so many. The first is 1.
    pub fn page(&self, number: usize, size: PageSize) -> Option<Page> {
        let text = self.text();
        let pieces = pages(&text, size);
        let piece = pieces.get(number.checked_sub(1)?)?;
        Some(Page {
            number,
            pages: pieces.len(),
            first_line: piece.first_line,
            last_line: piece.last_line,
            lines: text.lines().count(),
            text: piece.text.to_owned(),
        })
    }

    /// The lines of [`StoredResult::text`] that match, each with so many lines before and after it.
    pub fn search(&self, pattern: &Regex, context_lines: usize) -> Vec<FoundLine> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        let matches: Vec<bool> = lines.iter().map(|line| pattern.is_match(line)).collect();
        let mut found = Vec::new();
        // The first line that is not shown yet.
        let mut next = 0;
        for (index, _) in matches.iter().enumerate().filter(|(_, matches)| **matches) {
            let first = index.saturating_sub(context_lines).max(next);
            let last = index.saturating_add(context_lines).min(lines.len() - 1);
            for shown in first..=last {
                let (Some(line), Some(is_match)) = (lines.get(shown), matches.get(shown)) else {
                    continue;
                };
                found.push(FoundLine {
                    number: shown + 1,
                    text: excerpt(line, pattern),
                    kind: if *is_match {
                        LineKind::Match
                    } else {
                        LineKind::Context
                    },
                });
            }
            next = next.max(last + 1);
        }
        found
    }
}

/// A page before it is taken out of the text.
struct Piece<'a> {
    text: &'a str,
    first_line: usize,
    last_line: usize,
}

/// Divides a text. There is always a first page.
fn pages(text: &str, size: PageSize) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut first_line = 1;
    loop {
        let (page, after) = match size {
            PageSize::Lines(lines) => split_at_lines(rest, lines.get()),
            PageSize::Tokens(tokens) => split_before(rest, tokens.get() as u64),
        };
        let ended_lines = page.bytes().filter(|byte| *byte == b'\n').count();
        let is_open = !page.ends_with('\n');
        pieces.push(Piece {
            text: page,
            first_line,
            last_line: (first_line + ended_lines + usize::from(is_open))
                .saturating_sub(1)
                .max(first_line),
        });
        if after.is_empty() {
            return pieces;
        }
        first_line += ended_lines;
        rest = after;
    }
}

fn split_at_lines(text: &str, lines: usize) -> (&str, &str) {
    let end: usize = text.split_inclusive('\n').take(lines).map(str::len).sum();
    text.split_at(end)
}

/// As many whole lines as so many tokens allow, or a part of the first if not even that one fits.
fn split_before(text: &str, tokens: u64) -> (&str, &str) {
    let (head, rest) = split_at_tokens(text, tokens);
    let end = match head.rfind('\n') {
        _ if rest.is_empty() => text.len(),
        Some(line_end) => line_end + 1,
        // One character can be more than a page may have.
        None if head.is_empty() => text.chars().next().map_or(0, char::len_utf8),
        None => head.len(),
    };
    text.split_at(end)
}

/// The line, or what is around the first match if the line is long.
fn excerpt(line: &str, pattern: &Regex) -> String {
    if line.len() <= MAX_FOUND_LINE_BYTES {
        return line.to_owned();
    }
    let start = pattern.find(line).map_or(0, |found| found.start());
    // A third of the excerpt stands before the match.
    let from = start.saturating_sub(MAX_FOUND_LINE_BYTES / 3);
    let from = line.floor_char_boundary(from);
    let to = line.floor_char_boundary(from + MAX_FOUND_LINE_BYTES);
    let before = if from == 0 { "" } else { "…" };
    let after = if to == line.len() { "" } else { "…" };
    let shown = line.get(from..to).unwrap_or(line);
    format!("{before}{shown}{after}")
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
