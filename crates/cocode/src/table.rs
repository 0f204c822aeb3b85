//! Tables for people: aligned columns with a head, the last column as wide as it likes.

use crate::printer::{Paint, Style};
use crate::text::plain;

/// A cell and how it stands out.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Option<Style>,
}

impl Cell {
    pub(crate) fn new(text: impl AsRef<str>) -> Self {
        let text = plain(text.as_ref());
        Self { text, style: None }
    }

    #[must_use]
    pub(crate) fn styled(mut self, style: Style) -> Self {
        self.style = Some(style);
        self
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }

    fn painted(&self, paint: Paint) -> String {
        match self.style {
            Some(style) => paint.paint(style, &self.text),
            None => self.text.clone(),
        }
    }
}

/// Lays out rows of equally many cells.
pub(crate) fn table(head: &[&str], rows: &[Vec<Cell>], paint: Paint) -> String {
    let head: Vec<Cell> = head
        .iter()
        .map(|title| Cell::new(title).styled(Style::Dim))
        .collect();
    let widths: Vec<usize> = (0..head.len())
        .map(|column| {
            let cells = std::iter::once(&head).chain(rows);
            let widths = cells.filter_map(|row| row.get(column)).map(Cell::width);
            widths.max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let padding = " ".repeat(width.saturating_sub(cell.width()) + 2);
            line.push_str(&cell.painted(paint));
            line.push_str(&padding);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Cell, table};
    use crate::printer::Paint;

    #[test]
    fn columns_are_aligned_and_lines_end_with_text() {
        let rows = [
            vec![Cell::new("a"), Cell::new("long one")],
            vec![Cell::new("bcd"), Cell::new("")],
        ];
        let text = table(&["N", "TEXT"], &rows, Paint { on: false });
        assert_eq!(text, "N    TEXT\na    long one\nbcd\n");
    }
}
