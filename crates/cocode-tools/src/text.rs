//! Text for models: names that cannot pretend to be something else, lines of bounded length.

use std::path::Path;

use crate::limits::{MAX_LINE_BYTES, SNIFF_BYTES};

/// A path or name on one line: control characters are escaped, and what is not UTF-8 is replaced.
pub(crate) fn shown(path: impl AsRef<Path>) -> String {
    let mut shown = String::new();
    for character in path.as_ref().to_string_lossy().chars() {
        if character.is_control() || matches!(character, '\u{2028}' | '\u{2029}') {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether the beginning of a file says that it is not text.
pub(crate) fn is_binary(content: &[u8]) -> bool {
    let beginning = content.get(..SNIFF_BYTES).unwrap_or(content);
    memchr::memchr(0, beginning).is_some()
}

/// A line without its end, cut around `focus` if it is too long, and whether it was cut.
pub(crate) fn line(bytes: &[u8], focus: usize) -> (String, bool) {
    let bytes = without_line_end(bytes);
    if bytes.len() <= MAX_LINE_BYTES {
        return (String::from_utf8_lossy(bytes).into_owned(), false);
    }
    // Some of what stands before the focus is kept; at either end the cut is made between
    // characters.
    let last_start = bytes.len() - MAX_LINE_BYTES;
    let start = focus.saturating_sub(MAX_LINE_BYTES / 4).min(last_start);
    let window = bytes.get(start..start + MAX_LINE_BYTES).unwrap_or_default();
    let window = if start > 0 {
        without_broken_start(window)
    } else {
        window
    };
    let before = if start > 0 { "…" } else { "" };
    let after = if start < last_start { "…" } else { "" };
    let text = String::from_utf8_lossy(without_broken_end(window));
    (format!("{before}{text}{after}"), true)
}

pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Leaves out the rest of a character that was cut in two.
pub(crate) fn without_broken_start(bytes: &[u8]) -> &[u8] {
    let broken = bytes
        .iter()
        .take(3)
        .take_while(|byte| *byte & 0xc0 == 0x80)
        .count();
    bytes.get(broken..).unwrap_or_default()
}

/// Leaves out the beginning of a character that was cut in two.
pub(crate) fn without_broken_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or_default()
        }
        // Whole, or not UTF-8 to begin with.
        Ok(_) | Err(_) => bytes,
    }
}

/// A number and its noun.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line() {
        assert_eq!(
            shown("a\nb\tc\u{7f}d\u{2028}é"),
            "a\\nb\\tc\\u{7f}d\\u{2028}é"
        );
    }

    #[test]
    fn short_lines_are_whole_and_lose_their_end() {
        assert_eq!(line(b"abc\r\n", 0), ("abc".to_owned(), false));
        assert_eq!(line(b"a\xff", 0), ("a\u{fffd}".to_owned(), false));
    }

    #[test]
    fn long_lines_are_cut_between_characters_around_the_focus() {
        let text = "é".repeat(4000);
        for focus in [0, 3999, 4000, 7999] {
            let (cut, was_cut) = line(text.as_bytes(), focus);
            assert!(was_cut && cut.len() <= MAX_LINE_BYTES + 6, "{}", cut.len());
            assert_eq!(cut.starts_with('…'), focus > 0, "{focus}");
            assert_eq!(cut.ends_with('…'), focus < 7999, "{focus}");
            assert!(!cut.contains('\u{fffd}'), "{focus}");
        }
    }

    #[test]
    fn halves_of_characters_are_left_out() {
        let bytes = "aé".as_bytes();
        assert_eq!(without_broken_end(&bytes[..2]), b"a");
        assert_eq!(without_broken_end(bytes), bytes);
        assert_eq!(without_broken_start(&bytes[2..]), b"");
        assert_eq!(without_broken_end(b"a\xffb"), b"a\xffb");
    }

    #[test]
    fn a_null_byte_early_in_a_file_makes_it_binary() {
        let mut content = vec![b'a'; 2 * SNIFF_BYTES];
        assert!(!is_binary(&content));
        content[SNIFF_BYTES] = 0;
        assert!(!is_binary(&content));
        content[SNIFF_BYTES - 1] = 0;
        assert!(is_binary(&content));
    }
}
