//! A line typed at a terminal that does not show it.

use std::io::{self, Read as _, Write as _, stderr, stdin};

use cocode_auth::MAX_SECRET_BYTES;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::error::{CliError, Code};
use crate::text::plain;
use crate::workspace::Workspace;

/// The keys that do something, as the terminal sends them.
const CTRL_C: u8 = 0x03;
const CTRL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CTRL_U: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// Asks for a line and reads it, showing nothing of it.
pub(crate) fn line(question: &str, workspace: &Workspace) -> Result<String, CliError> {
    let cannot =
        |error| CliError::new(Code::FileError, "cannot ask at the terminal").because(&error);
    let quiet = Quiet::begin().map_err(cannot)?;
    let mut out = stderr().lock();
    write!(out, "{}", plain(question))
        .and_then(|()| out.flush())
        .map_err(cannot)?;
    drop(out);
    let typed = typed(&mut stdin().lock());
    drop(quiet);
    // The end of the line was typed unseen too.
    workspace.printer.err_line("");
    let bytes = match typed.map_err(cannot)? {
        Typed::Line(bytes) => bytes,
        Typed::Interrupted => return Err(CliError::new(Code::Interrupted, "interrupted")),
    };
    String::from_utf8(bytes).map_err(|_never_shown| {
        CliError::new(Code::InvalidUsage, "what was typed is not UTF-8 text")
    })
}

enum Typed {
    Line(Vec<u8>),
    Interrupted,
}

/// Keys one by one. Ctrl-C comes as one of them, so that the terminal is put back before the end.
fn typed(input: &mut impl io::BufRead) -> io::Result<Typed> {
    let mut line = Vec::new();
    for key in input.bytes() {
        match key? {
            b'\n' | b'\r' | CTRL_D => break,
            CTRL_C => return Ok(Typed::Interrupted),
            CTRL_U => line.clear(),
            BACKSPACE | DELETE => {
                // A character of several bytes is one to the person who typed it.
                while line.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {}
            }
            key if line.len() <= MAX_SECRET_BYTES => line.push(key),
            _ => {}
        }
    }
    Ok(Typed::Line(line))
}

/// A terminal that shows nothing and hands over every key, until this is dropped.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut quiet = before.clone();
        let modes = LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        quiet.local_modes.remove(modes);
        // Now, not flushed: what was pasted before the question is meant as the answer.
        tcsetattr(stdin(), OptionalActions::Now, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs no putting back.
        let _gone = tcsetattr(stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::{Typed, typed};

    #[track_caller]
    fn check(keys: &str, expected: Option<&str>) {
        let line = match typed(&mut keys.as_bytes()).unwrap() {
            Typed::Line(bytes) => Some(String::from_utf8(bytes).unwrap()),
            Typed::Interrupted => None,
        };
        assert_eq!(line.as_deref(), expected, "{keys:?}");
    }

    #[test]
    fn keys_make_a_line() {
        check("abc\ndef", Some("abc"));
        check("abc\r", Some("abc"));
        check("ab\u{7f}c\n", Some("ac"));
        check("aö\u{8}c\n", Some("ac"));
        check("\u{7f}a\n", Some("a"));
        check("wrong\u{15}right\n", Some("right"));
        check("abc\u{4}", Some("abc"));
        check("abc\u{3}", None);
        check("", Some(""));
    }
}
