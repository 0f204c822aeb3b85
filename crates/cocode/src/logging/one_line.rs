//! What happens is one line of the log, whatever is told of it: servers and clients say much of what stands
//! there, and must not be able to make up lines, nor to steer a terminal that shows them.

use std::fmt::Write as _;
use std::io::{self, Write};

use crate::text::is_unsafe;

/// Writes each event, which comes as a whole, as one line.
#[derive(Debug)]
pub(super) struct OneLine<W> {
    pub(super) inner: W,
    /// Whether the log itself has colours. What servers say has none: that is seen to where values are
    /// formatted.
    pub(super) has_colours: bool,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let line = one_line(&String::from_utf8_lossy(event), self.has_colours);
        self.inner.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The event with one end of a line, at its end; other characters that steer are written as their numbers.
fn one_line(event: &str, has_colours: bool) -> String {
    let text = event.strip_suffix('\n');
    let mut line = String::with_capacity(event.len());
    for character in text.unwrap_or(event).chars() {
        let is_colour = character == '\u{1b}' && has_colours;
        if character == '\t' || is_colour || !is_unsafe(character) {
            line.push(character);
        } else {
            // Writing to a string does not fail.
            let _never_fails = write!(line, "{}", character.escape_default());
        }
    }
    if text.is_some() {
        line.push('\n');
    }
    line
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::OneLine;

    fn written(event: &str, has_colours: bool) -> String {
        let mut written = Vec::new();
        let mut writer = OneLine {
            inner: &mut written,
            has_colours,
        };
        writer.write_all(event.as_bytes()).unwrap();
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn an_event_is_one_line_whatever_is_told_of_it() {
        for (event, line) in [
            (
                "WARN it failed: why=\"zoë\"\n",
                "WARN it failed: why=\"zoë\"\n",
            ),
            ("WARN a\nERROR forged\r\n", "WARN a\\nERROR forged\\r\n"),
            ("a\u{1b}[2J\u{7}\u{9b}b\n", "a\\u{1b}[2J\\u{7}\\u{9b}b\n"),
            ("a\u{2028}b\u{202e}c\n", "a\\u{2028}b\\u{202e}c\n"),
            ("no end", "no end"),
            ("\n", "\n"),
        ] {
            assert_eq!(written(event, false), line);
        }
        let coloured = "\u{1b}[33m WARN\u{1b}[0m a\nb\n";
        assert_eq!(written(coloured, true), "\u{1b}[33m WARN\u{1b}[0m a\\nb\n");
    }
}
