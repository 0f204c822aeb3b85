//! Draws on the terminal: finished lines go into its scrollback and are never touched again, the
//! live area below them is drawn anew. Only what has changed is written, in one go, so nothing
//! flickers. The other screen of the terminal is never used, so scrolling, searching and selecting
//! stay with the terminal.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::style::{Line, Palette};

/// Asks for pasted text in brackets, and for keys that tell Shift-Enter from Enter.
const ENTER: &str = "\u{1b}[?2004h\u{1b}[>1u";
/// Takes that back, and shows the cursor.
const LEAVE: &str = "\u{1b}[<1u\u{1b}[?2004l\u{1b}[?25h\u{1b}[0m";
/// Lets the terminal show nothing until all is written, with the cursor hidden.
const BEGIN: &str = "\u{1b}[?2026h\u{1b}[?25l";
const END: &str = "\u{1b}[?2026l";
const CLEAR_TO_END_OF_ROW: &str = "\u{1b}[K";
const CLEAR_BELOW: &str = "\u{1b}[J";

/// Columns and rows of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// What is shown below the scrollback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Rows, each no wider than the terminal.
    pub(crate) rows: Vec<Line>,
    /// Where the cursor is, as row and column; hidden if nowhere.
    pub(crate) cursor: Option<(usize, usize)>,
}

/// The terminal as this session draws on it.
pub(crate) struct Screen<W: Write> {
    out: W,
    size: Size,
    palette: Palette,
    /// What is drawn of the live area, and where in it the cursor was left.
    drawn: Vec<Line>,
    cursor: (usize, usize),
    is_cursor_shown: bool,
    /// Finished lines that are not drawn yet.
    finished: Vec<Line>,
    /// What is drawn may have been moved by a change of size, so none of it is trusted.
    is_shaken: bool,
    has_entered: bool,
}

impl<W: Write> Screen<W> {
    pub(crate) fn new(out: W, size: Size, palette: Palette) -> Self {
        Self {
            out,
            size,
            palette,
            drawn: Vec::new(),
            cursor: (0, 0),
            is_cursor_shown: true,
            finished: Vec::new(),
            is_shaken: false,
            has_entered: false,
        }
    }

    /// Sets the modes of the terminal.
    pub(crate) fn enter(&mut self) -> io::Result<()> {
        self.has_entered = true;
        self.out.write_all(ENTER.as_bytes())?;
        self.out.flush()
    }

    /// Sets the modes again, after somebody else has written to the terminal: what is drawn is left
    /// where it is, and drawing goes on below.
    pub(crate) fn enter_again(&mut self) -> io::Result<()> {
        self.drawn.clear();
        self.cursor = (0, 0);
        self.enter()
    }

    /// Removes the live area and gives the terminal back as it was, with what is finished drawn.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        if !self.has_entered {
            return Ok(());
        }
        self.has_entered = false;
        self.draw(Live::default())?;
        self.out.write_all(LEAVE.as_bytes())?;
        self.out.flush()
    }

    /// The line is finished: the next drawing puts it into the scrollback. It may be wider than the
    /// terminal, which then breaks it, and knows when it is copied that it is one.
    pub(crate) fn print(&mut self, line: Line) {
        self.finished.push(line);
    }

    /// The terminal has another size now.
    pub(crate) fn resize(&mut self, size: Size) {
        if size == self.size {
            return;
        }
        if size.columns != self.size.columns {
            self.cursor.0 = self.reflowed_cursor_row(usize::from(size.columns).max(1));
        }
        self.size = size;
        self.is_shaken = true;
    }

    /// Moves what can be seen into the scrollback, so that the terminal is empty and nothing is lost.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let mut bytes = String::from(BEGIN);
        go_up(&mut bytes, self.cursor.0);
        bytes.push('\r');
        bytes.push_str(CLEAR_BELOW);
        // To the last row, wherever that is; each line end there moves everything up by one.
        bytes.push_str("\u{1b}[9999B");
        bytes.push_str(&"\n".repeat(usize::from(self.size.rows).saturating_sub(1)));
        bytes.push_str("\u{1b}[H");
        bytes.push_str(END);
        self.drawn.clear();
        self.cursor = (0, 0);
        self.out.write_all(bytes.as_bytes())?;
        self.out.flush()
    }

    /// Calls the person.
    pub(crate) fn ring(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x07")?;
        self.out.flush()
    }

    /// Draws finished lines, and the live area below them.
    pub(crate) fn draw(&mut self, mut live: Live) -> io::Result<()> {
        self.clip(&mut live);
        let is_same = self.finished.is_empty() && !self.is_shaken && self.drawn == live.rows;
        let last = live.rows.len().saturating_sub(1);
        let cursor = live.cursor.unwrap_or((last, 0));
        if is_same && cursor == self.cursor && live.cursor.is_some() == self.is_cursor_shown {
            return Ok(());
        }
        let mut bytes = String::from(BEGIN);
        go_up(&mut bytes, self.cursor.0);
        bytes.push('\r');
        if self.is_shaken || !self.finished.is_empty() {
            bytes.push_str(CLEAR_BELOW);
            self.drawn.clear();
            self.is_shaken = false;
        }
        for line in self.finished.drain(..) {
            line.write(&mut bytes, self.palette);
            bytes.push_str("\r\n");
        }
        self.write_rows(&mut bytes, &live.rows);
        self.cursor = cursor;
        self.is_cursor_shown = live.cursor.is_some();
        go_up(&mut bytes, last - self.cursor.0.min(last));
        bytes.push('\r');
        if self.cursor.1 > 0 {
            // Writing to a string does not fail.
            let _infallible = write!(bytes, "\u{1b}[{}C", self.cursor.1);
        }
        if live.cursor.is_some() {
            bytes.push_str("\u{1b}[?25h");
        }
        bytes.push_str(END);
        self.drawn = live.rows;
        self.out.write_all(bytes.as_bytes())?;
        self.out.flush()
    }

    /// Writes rows from the first on, where the cursor is, and leaves it on the last. Rows that are
    /// already there are passed over.
    fn write_rows(&self, bytes: &mut String, rows: &[Line]) {
        for (place, row) in rows.iter().enumerate() {
            if place > 0 {
                bytes.push_str("\r\n");
            }
            if self.drawn.get(place) != Some(row) {
                row.write(bytes, self.palette);
                bytes.push_str(CLEAR_TO_END_OF_ROW);
            }
        }
        if self.drawn.len() > rows.len() {
            if rows.is_empty() {
                bytes.push_str(CLEAR_BELOW);
            } else {
                // Clearing starts at the cursor, so it must not stand on the last row.
                bytes.push_str("\r\n");
                bytes.push_str(CLEAR_BELOW);
                go_up(bytes, 1);
            }
        }
    }

    /// A live area higher than the terminal would push its own rows into the scrollback. The lowest
    /// rows stay: the input line is there.
    fn clip(&self, live: &mut Live) {
        let most = usize::from(self.size.rows).saturating_sub(1).max(1);
        let excess = live.rows.len().saturating_sub(most);
        if excess > 0 {
            live.rows.drain(..excess);
            live.cursor = live
                .cursor
                .and_then(|(row, column)| Some((row.checked_sub(excess)?, column)));
        }
    }

    /// In which row of what is drawn the cursor is, after the terminal has broken the rows that are
    /// wider than it is now. It breaks them as well if it was narrower already when they were drawn,
    /// because its size is told late. Nearly all terminals break rows; one that cuts them instead gets
    /// a few rows drawn higher than they were.
    fn reflowed_cursor_row(&self, columns: usize) -> usize {
        let (row, column) = self.cursor;
        let above: usize = self
            .drawn
            .iter()
            .take(row)
            .map(|row| row.width().div_ceil(columns).max(1))
            .sum();
        // At the end of its row, the cursor stays there even if the row is just full.
        let width = self.drawn.get(row).map_or(0, Line::width);
        let column = if column < width {
            column
        } else {
            column.saturating_sub(1)
        };
        above + column / columns
    }
}

impl<W: Write> Drop for Screen<W> {
    fn drop(&mut self) {
        // In a panic, its message stands where the live area was, and must stay.
        let left = if std::thread::panicking() {
            self.out.write_all(LEAVE.as_bytes())
        } else {
            self.leave()
        };
        if let Err(error) = left {
            tracing::debug!(%error, "the terminal could not be restored");
        }
    }
}

/// What gives a terminal back as it was, whatever was being drawn: for a panic hook, after
/// [`leave_raw_mode`](crate::leave_raw_mode).
pub fn restoring_bytes() -> String {
    format!("{END}\r\n{CLEAR_BELOW}{LEAVE}")
}

fn go_up(bytes: &mut String, rows: usize) {
    if rows > 0 {
        // Writing to a string does not fail.
        let _infallible = write!(bytes, "\u{1b}[{rows}A");
    }
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
