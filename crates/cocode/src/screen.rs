//! A piece of text at the bottom of a terminal that is drawn again in place.

use std::fmt::Write as _;

use crate::error::CliError;
use crate::printer::Printer;

/// Where stdout is a terminal: text that takes the place of what was drawn before.
#[derive(Debug)]
pub(crate) struct Screen<'a> {
    printer: &'a Printer,
    /// Lines that are on the screen now.
    drawn: usize,
    shown: String,
}

impl<'a> Screen<'a> {
    pub(crate) fn new(printer: &'a Printer) -> Self {
        Self {
            printer,
            drawn: 0,
            shown: String::new(),
        }
    }

    /// Draws lines, as many as there is room for.
    pub(crate) fn draw(&mut self, text: &str) -> Result<(), CliError> {
        if text == self.shown {
            return Ok(());
        }
        // The last line of the terminal is that of the cursor.
        let room = self.printer.height().saturating_sub(1).max(2);
        let n_lines = text.lines().count();
        let mut cut = String::new();
        if n_lines > room {
            for line in text.lines().take(room - 1) {
                cut.push_str(line);
                cut.push('\n');
            }
            // Writing to a string cannot fail.
            let _infallible = writeln!(cut, "… and {} more", n_lines - (room - 1));
        }
        let fits = if cut.is_empty() { text } else { &cut };
        self.replace(fits)?;
        self.drawn = fits.lines().count();
        text.clone_into(&mut self.shown);
        Ok(())
    }

    /// Puts lines above what is drawn, where they stay.
    pub(crate) fn say(&mut self, lines: &str) -> Result<(), CliError> {
        let shown = std::mem::take(&mut self.shown);
        self.replace(lines)?;
        self.drawn = 0;
        self.draw(&shown)
    }

    /// Puts the last state of the text in the place of what was drawn, however long it is.
    pub(crate) fn finish(mut self, text: &str) -> Result<(), CliError> {
        self.replace(text)
    }

    fn replace(&mut self, text: &str) -> Result<(), CliError> {
        let up = match self.drawn {
            0 => String::new(),
            drawn => format!("\x1b[{drawn}A\r"),
        };
        // Long lines are cut by the terminal: wrapped, they would be more lines than are counted.
        self.printer
            .out(format!("{up}\x1b[J\x1b[?7l{text}\x1b[?7h"))
    }
}
