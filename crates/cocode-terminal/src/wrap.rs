//! Breaks styled lines so that each fits into so many columns.

use crate::style::{Line, Span};
use crate::text::{grapheme_width, graphemes};

/// Breaks at spaces, and within words that are longer than a line. Lines after the first begin with
/// `hanging`. What is broken at is left out.
pub(crate) fn wrap_words(line: &Line, columns: usize, hanging: &Line) -> Vec<Line> {
    let room = columns.max(hanging.width() + 1).max(2);
    let mut breaker = Breaker::new(room, hanging);
    for span in line.spans() {
        for piece in split_keeping_spaces(span.text()) {
            let piece = Span::new(piece, span.style());
            if piece.text().starts_with(' ') {
                breaker.end_word();
                breaker.add_space(piece);
            } else {
                breaker.word.push(piece);
            }
        }
    }
    breaker.finish()
}

/// Breaks wherever a line is full: nothing is left out.
pub(crate) fn wrap_cells(line: &Line, columns: usize) -> Vec<Line> {
    let room = columns.max(2);
    let mut rows = Vec::new();
    let mut row = Line::default();
    let mut taken = 0;
    for span in line.spans() {
        for grapheme in graphemes(span.text()) {
            let wide = grapheme_width(grapheme);
            if taken + wide > room {
                rows.push(std::mem::take(&mut row));
                taken = 0;
            }
            row.push(Span::new(grapheme, span.style()));
            taken += wide;
        }
    }
    rows.push(row);
    rows
}

/// Words and runs of spaces, in turn.
fn split_keeping_spaces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let in_spaces = first == ' ';
        let end = rest
            .find(|character: char| (character == ' ') != in_spaces)
            .unwrap_or(rest.len());
        let Some((piece, after)) = rest.split_at_checked(end) else {
            break;
        };
        pieces.push(piece);
        rest = after;
    }
    pieces
}

struct Breaker<'a> {
    room: usize,
    hanging: &'a Line,
    rows: Vec<Line>,
    row: Line,
    taken: usize,
    /// Spaces after the last word: they count only if another word follows on the row.
    spaces: Line,
    word: Line,
}

impl<'a> Breaker<'a> {
    fn new(room: usize, hanging: &'a Line) -> Self {
        Self {
            room,
            hanging,
            rows: Vec::new(),
            row: Line::default(),
            taken: 0,
            spaces: Line::default(),
            word: Line::default(),
        }
    }

    fn add_space(&mut self, piece: Span) {
        self.spaces.push(piece);
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let spaces = std::mem::take(&mut self.spaces);
        let (word_width, spaces_width) = (word.width(), spaces.width());
        if self.taken + spaces_width + word_width <= self.room {
            self.row.append(spaces);
            self.row.append(word);
            self.taken += spaces_width + word_width;
            return;
        }
        if self.taken > self.start_of_row() {
            self.break_row();
        }
        if self.taken + word_width <= self.room {
            self.row.append(word);
            self.taken += word_width;
            return;
        }
        for span in word.spans() {
            for grapheme in graphemes(span.text()) {
                let wide = grapheme_width(grapheme);
                if self.taken + wide > self.room && self.taken > self.start_of_row() {
                    self.break_row();
                }
                self.row.push(Span::new(grapheme, span.style()));
                self.taken += wide;
            }
        }
    }

    /// Where text begins on this row.
    fn start_of_row(&self) -> usize {
        if self.rows.is_empty() {
            0
        } else {
            self.hanging.width()
        }
    }

    fn break_row(&mut self) {
        let next = self.hanging.clone();
        self.taken = next.width();
        self.rows.push(std::mem::replace(&mut self.row, next));
    }

    fn finish(mut self) -> Vec<Line> {
        self.end_word();
        self.rows.push(self.row);
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;

    fn wrapped(text: &str, columns: usize, hanging: &str) -> Vec<String> {
        let lines = wrap_words(&Line::plain(text), columns, &Line::plain(hanging));
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn lines_are_broken_at_spaces() {
        assert_eq!(wrapped("one two three", 7, ""), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 7, "  "), ["one two", "  three"]);
        assert_eq!(wrapped("", 6, ""), [""]);
        assert_eq!(wrapped("漢字 漢字", 5, ""), ["漢字", "漢字"]);
    }

    #[test]
    fn words_longer_than_a_line_are_broken_within() {
        assert_eq!(wrapped("abcdefgh", 3, ""), ["abc", "def", "gh"]);
        assert_eq!(wrapped("a 漢字漢", 3, ""), ["a", "漢", "字", "漢"]);
        assert_eq!(wrapped("x abcdef", 4, " "), ["x", " abc", " def"]);
    }

    #[test]
    fn a_word_of_two_styles_stays_together() {
        let line = Line::plain("aa bb").with("cc", Style::PLAIN.bold());
        let rows = wrap_words(&line, 5, &Line::default());
        assert_eq!(
            rows.iter().map(Line::text).collect::<Vec<_>>(),
            ["aa", "bbcc"]
        );
        assert_eq!(rows.last().map(|row| row.spans().len()), Some(2));
    }

    #[test]
    fn cells_are_broken_with_nothing_left_out() {
        let rows = wrap_cells(&Line::plain("ab cd漢"), 5);
        assert_eq!(
            rows.iter().map(Line::text).collect::<Vec<_>>(),
            ["ab cd", "漢"]
        );
        assert_eq!(wrap_cells(&Line::default(), 5), [Line::default()]);
    }
}
