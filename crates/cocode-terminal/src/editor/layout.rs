//! Where the characters of the input stand on the screen.

use std::borrow::Cow;

use super::Editor;
use crate::text::{graphemes, harmless, width};

const TAB: &str = "    ";

/// The rows of a text, and the place of every character in them.
#[derive(Debug)]
pub(crate) struct Layout {
    /// What stands in each row.
    pub(crate) rows: Vec<String>,
    /// The row and the column of the cursor.
    pub(crate) cursor: (usize, usize),
    /// For every place where the cursor can be: its byte, its row, its column.
    places: Vec<(usize, usize, usize)>,
}

impl Editor {
    /// Lays the text out in rows of so many columns.
    pub(crate) fn layout(&self, columns: usize) -> Layout {
        let columns = columns.max(2);
        let mut rows = vec![String::new()];
        let mut places = Vec::new();
        let mut column = 0;
        let mut byte = 0;
        for grapheme in graphemes(&self.text) {
            let is_break = grapheme == "\n";
            let shown = match grapheme {
                "\t" => Cow::Borrowed(TAB),
                "\n" => Cow::Borrowed(""),
                other => harmless(other),
            };
            let wide = width(&shown);
            if !is_break && column + wide > columns {
                rows.push(String::new());
                column = 0;
            }
            places.push((byte, rows.len() - 1, column));
            byte += grapheme.len();
            if is_break {
                rows.push(String::new());
                column = 0;
            } else {
                column += wide;
                if let Some(row) = rows.last_mut() {
                    row.push_str(&shown);
                }
            }
        }
        // After the last character of a full row, the cursor is where the next character will be.
        if column >= columns {
            rows.push(String::new());
            column = 0;
        }
        places.push((byte, rows.len() - 1, column));
        let cursor = places
            .iter()
            .find(|(byte, _, _)| *byte >= self.cursor)
            .map_or((0, 0), |(_, row, column)| (*row, *column));
        Layout {
            rows,
            cursor,
            places,
        }
    }
}

impl Layout {
    /// The place in a row that is nearest to a column, from the left.
    pub(super) fn place(&self, row: usize, column: usize) -> Option<usize> {
        let in_row = self.places.iter().filter(|place| place.1 == row);
        let mut fitting = in_row.clone().filter(|place| place.2 <= column);
        let found = fitting.next_back().or_else(|| in_row.clone().next());
        found.map(|(byte, _, _)| *byte)
    }
}
