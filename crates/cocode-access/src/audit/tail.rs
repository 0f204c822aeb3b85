//! The end of a file of the log: where the chain has come to, and what stands behind that.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use super::entry::AuditEvent;
use super::hash::{AuditHash, AuditHead};
use super::line::{AuditLine, MAX_AUDIT_LINE_BYTES};
use crate::digest::sha256;

/// How much is read at first; usually that is enough.
const FIRST_WINDOW: u64 = 8 * 1024;
/// How much is read at most to find a line that can be gone on from.
const LAST_WINDOW: u64 = 4 * MAX_AUDIT_LINE_BYTES as u64;

/// How a file ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// There is nothing in it.
    Empty,
    /// With a line, and perhaps with something behind it that is none.
    Line {
        head: AuditHead,
        rest: Option<AuditEvent>,
        /// Whether the end of the line has to be written before anything else.
        is_unfinished: bool,
    },
    /// With nothing that is a line, in the whole file.
    Odd {
        rest: AuditEvent,
        is_unfinished: bool,
    },
    /// With nothing that is a line, as far as it was read.
    Unreadable,
}

impl Tail {
    /// Reads the end of a file of this length.
    pub(super) fn read(file: &File, length: u64) -> io::Result<Self> {
        if length == 0 {
            return Ok(Self::Empty);
        }
        let mut window = FIRST_WINDOW;
        loop {
            let begins = length.saturating_sub(window);
            let bytes = read_range(file, begins, length)?;
            if let Some(found) = found(&bytes, begins == 0) {
                return Ok(found);
            }
            if window >= LAST_WINDOW {
                return Ok(Self::Unreadable);
            }
            window = (window * 4).min(LAST_WINDOW);
        }
    }
}

/// The last lines of a file that are as they were written, the newest first, and whether the whole file
/// was read for that.
pub(super) fn last_lines(file: &File, length: u64, limit: usize) -> io::Result<Vec<AuditLine>> {
    let mut window = FIRST_WINDOW;
    loop {
        let begins = length.saturating_sub(window);
        let bytes = read_range(file, begins, length)?;
        let mut parts = bytes.split(|byte| *byte == b'\n');
        if begins > 0 {
            // Its beginning is further ahead.
            parts.next();
        }
        let mut lines: Vec<AuditLine> = parts
            .filter_map(|part| AuditLine::parse(std::str::from_utf8(part).ok()?))
            .collect();
        if lines.len() >= limit || begins == 0 {
            lines.reverse();
            lines.truncate(limit);
            return Ok(lines);
        }
        window = window.saturating_mul(4);
    }
}

/// What the end of a file is, if these bytes of it show that.
fn found(bytes: &[u8], is_whole: bool) -> Option<Tail> {
    let mut ends = bytes.len();
    let is_unfinished = bytes.last() != Some(&b'\n');
    // Lines from the last to the first; what stands behind `ends` is odd.
    let mut is_last = true;
    loop {
        let before = bytes.get(..ends)?;
        let line_ends = if is_last && is_unfinished {
            before.len()
        } else {
            before.len().checked_sub(1)?
        };
        let line_begins = before
            .get(..line_ends)?
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map(|end| end + 1);
        if line_begins.is_none() && !is_whole {
            return None;
        }
        let begins = line_begins.unwrap_or(0);
        let text = std::str::from_utf8(before.get(begins..line_ends)?).ok();
        if let Some(line) = text.and_then(AuditLine::parse) {
            return Some(Tail::Line {
                head: line.head(),
                rest: odd(bytes.get(ends..)?, is_unfinished),
                is_unfinished,
            });
        }
        if begins == 0 {
            let rest = odd(bytes, is_unfinished)?;
            return Some(Tail::Odd {
                rest,
                is_unfinished,
            });
        }
        ends = begins;
        is_last = false;
    }
}

/// What is said of something that is no line. It was torn by a crash if it is one line without an end.
fn odd(bytes: &[u8], is_unfinished: bool) -> Option<AuditEvent> {
    if bytes.is_empty() {
        return None;
    }
    let torn = is_unfinished && !bytes.contains(&b'\n');
    Some(AuditEvent::Healed {
        bytes: bytes.len() as u64,
        sha256: AuditHash::from_bytes(sha256(bytes)),
        torn,
    })
}

fn read_range(file: &File, begins: u64, ends: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(ends - begins).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, begins)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{Tail, last_lines};
    use crate::audit::{AuditEntry, AuditEvent, AuditHash, AuditHead, AuditLine, AuditOutcome};
    use crate::digest::sha256;

    fn lines(count: usize) -> Vec<AuditLine> {
        let mut lines = Vec::new();
        let mut last = AuditHead::START;
        for _ in 0..count {
            let line = AuditLine::after(last, &AuditEntry::now("x", AuditOutcome::Ok));
            last = line.head();
            lines.push(line);
        }
        lines
    }

    fn written(lines: &[AuditLine]) -> String {
        lines.iter().flat_map(|line| [line.text(), "\n"]).collect()
    }

    fn tail(content: &[u8]) -> Tail {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        Tail::read(&file, content.len() as u64).unwrap()
    }

    fn healed(bytes: &[u8], torn: bool) -> AuditEvent {
        AuditEvent::Healed {
            bytes: bytes.len() as u64,
            sha256: AuditHash::from_bytes(sha256(bytes)),
            torn,
        }
    }

    #[test]
    fn a_file_ends_with_its_last_line_and_what_is_behind_it_is_told_apart() {
        let lines = lines(3);
        let text = written(&lines);
        let head = lines[2].head();
        let line = |rest, is_unfinished| Tail::Line {
            head,
            rest,
            is_unfinished,
        };
        assert_eq!(tail(b""), Tail::Empty);
        assert_eq!(tail(text.as_bytes()), line(None, false));
        assert_eq!(tail(text.trim_end().as_bytes()), line(None, true));
        for (more, torn) in [
            ("{\"seq\":4", true),
            ("x\n", false),
            ("x\ny", false),
            ("\n", false),
        ] {
            let rest = Some(healed(more.as_bytes(), torn));
            let is_unfinished = !more.ends_with('\n');
            let found = tail(format!("{text}{more}").as_bytes());
            assert_eq!(found, line(rest, is_unfinished), "{more:?}");
        }
        for (odd, torn) in [("{", true), ("x\n", false), ("x\n\n", false)] {
            let rest = healed(odd.as_bytes(), torn);
            let is_unfinished = torn;
            let expected = Tail::Odd {
                rest,
                is_unfinished,
            };
            assert_eq!(tail(odd.as_bytes()), expected);
        }
    }

    #[test]
    fn every_cut_of_a_file_ends_with_the_last_line_that_is_whole() {
        let lines = lines(3);
        let text = written(&lines);
        let first = lines[0].text().len();
        for length in first..text.len() {
            let whole = lines
                .iter()
                .scan(0, |end, line| {
                    let line_end = *end + line.text().len();
                    *end = line_end + 1;
                    Some((line_end, line))
                })
                .take_while(|(line_end, _)| *line_end <= length)
                .last()
                .unwrap()
                .1;
            match tail(&text.as_bytes()[..length]) {
                Tail::Line { head, .. } => assert_eq!(head, whole.head(), "{length}"),
                other => panic!("{length}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_line_that_is_far_from_the_end_is_found_and_one_that_is_too_far_is_not() {
        let line = lines(1).remove(0);
        let far = format!("{}\n{}", line.text(), "x".repeat(100_000));
        assert!(matches!(tail(far.as_bytes()), Tail::Line { head, .. } if head == line.head()));
        let too_far = format!("{}\n{}", line.text(), "x".repeat(2_000_000));
        assert_eq!(tail(too_far.as_bytes()), Tail::Unreadable);
    }

    #[test]
    fn the_last_lines_come_newest_first() {
        let lines = lines(200);
        let text = written(&lines);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        for limit in [0, 1, 7, 150, 200, 500] {
            let found = last_lines(&file, text.len() as u64, limit).unwrap();
            let expected: Vec<AuditLine> = lines.iter().rev().take(limit).cloned().collect();
            assert_eq!(found, expected, "{limit}");
        }
    }
}
