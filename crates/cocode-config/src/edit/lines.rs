//! The lines of a text: where they begin and end, which comments and empty lines go with which
//! block, and how pieces are cut out and put in.

use std::ops::Range;

/// A text, and how its lines end.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) text: &'a str,
    pub(super) newline: &'static str,
}

/// A part of a text: whole lines.
pub(super) struct Piece {
    pub(super) range: Range<usize>,
    /// Whether it begins with a header.
    pub(super) is_block: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let newline = newline_of(text);
        Self { text, newline }
    }

    /// Takes pieces out, and an empty line with each block.
    pub(super) fn cut(&self, pieces: Vec<Piece>) -> String {
        let edits = pieces
            .into_iter()
            .map(|piece| (self.with_blank(piece), String::new()));
        self.apply(edits.collect())
    }

    pub(super) fn with_blank(&self, piece: Piece) -> Range<usize> {
        let Piece { range, is_block } = piece;
        if !is_block {
            return range;
        }
        let before = self.previous_line(range.start);
        let after = range.end..self.line_end(range.end);
        if !before.is_empty() && self.is_blank(&before) {
            before.start..range.end
        } else if range.start == 0 && !after.is_empty() && self.is_blank(&after) {
            range.start..after.end
        } else {
            range
        }
    }

    pub(super) fn apply(&self, mut edits: Vec<(Range<usize>, String)>) -> String {
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut text = String::with_capacity(self.text.len());
        let mut done = 0;
        for (range, new) in edits {
            text.push_str(self.text.get(done..range.start).unwrap_or_default());
            text.push_str(&new);
            done = done.max(range.end);
        }
        text.push_str(self.text.get(done..).unwrap_or_default());
        text
    }

    /// The start of the comments that stand right above a line, which belong to it, but not
    /// above the floor. Directives for editors (`#:schema`) belong to the file.
    pub(super) fn comments_start(&self, line: usize, floor: usize) -> usize {
        let mut start = line;
        loop {
            let previous = self.previous_line(start);
            let text = self.text.get(previous.clone()).unwrap_or_default().trim();
            let is_comment = text.starts_with('#') && !text.starts_with("#:");
            if previous.start < floor || !is_comment {
                return start;
            }
            start = previous.start;
        }
    }

    /// The end of the comments that stand right below a block, unless they stand right above the
    /// next one.
    pub(super) fn comments_end(&self, end: usize) -> usize {
        let mut at = end;
        loop {
            let line = at..self.line_end(at);
            if line.is_empty() || self.is_blank(&line) {
                return at;
            }
            let text = self.text.get(line.clone()).unwrap_or_default();
            if !text.trim_start().starts_with('#') {
                return end;
            }
            at = line.end;
        }
    }

    pub(super) fn is_blank(&self, range: &Range<usize>) -> bool {
        let text = self.text.get(range.clone()).unwrap_or_default();
        text.trim().is_empty()
    }

    pub(super) fn previous_line(&self, line: usize) -> Range<usize> {
        match line.checked_sub(1) {
            Some(end_of_previous) => self.line_start(end_of_previous)..line,
            None => 0..0,
        }
    }

    pub(super) fn line_start(&self, at: usize) -> usize {
        let before = self.text.get(..at).unwrap_or_default();
        before.rfind('\n').map_or(0, |newline| newline + 1)
    }

    pub(super) fn line_end(&self, at: usize) -> usize {
        let after = self.text.get(at..).unwrap_or_default();
        after
            .find('\n')
            .map_or(self.text.len(), |newline| at + newline + 1)
    }

    /// Another text with the line ends of this one.
    pub(super) fn ended(&self, text: &str) -> String {
        let text = text.replace("\r\n", "\n");
        match self.newline {
            "\n" => text,
            newline => text.replace('\n', newline),
        }
    }
}

/// The line ends of a text are those of its first line.
fn newline_of(text: &str) -> &'static str {
    let first = text.split_inclusive('\n').next().unwrap_or_default();
    if first.ends_with("\r\n") {
        "\r\n"
    } else {
        "\n"
    }
}
