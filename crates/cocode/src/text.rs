//! Text from servers made fit for a terminal: no control characters, sensible width.

use std::fmt::Write as _;

use cocode_core::is_hidden_format;

/// One line that cannot move the cursor, change colors, ring the bell or reorder what is read.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => plain.push(' '),
            other => push_safe(&mut plain, other),
        }
    }
    plain
}

/// A text of many lines that a terminal can show without being steered by it. Unlike [`plain`],
/// this keeps line breaks and tabs.
pub(crate) fn tame(text: &str) -> String {
    let mut tame = String::with_capacity(text.len());
    for character in text.replace("\r\n", "\n").chars() {
        match character {
            '\n' | '\t' => tame.push(character),
            other => push_safe(&mut tame, other),
        }
    }
    tame
}

fn push_safe(safe: &mut String, character: char) {
    match character {
        control if control.is_control() => safe.push('\u{fffd}'),
        hidden if is_hidden_format(hidden) => safe.extend(hidden.escape_unicode()),
        other => safe.push(other),
    }
}

/// The lines of a text, each as [`plain`].
pub(crate) fn plain_lines(text: &str) -> Vec<String> {
    text.lines().map(plain).collect()
}

/// JSON in one line that a terminal can show without being steered by it, and that is the same to whoever reads
/// it: what would steer stands within texts there, and is written by its number.
pub(crate) fn safe_json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for character in json.chars() {
        if is_unsafe(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _never_fails = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Control characters, ends of lines, and characters that hide or reorder text.
pub(crate) fn is_unsafe(character: char) -> bool {
    character.is_control() || is_hidden_format(character)
}

/// The first line, or the first paragraph where that is how it is written.
pub(crate) fn summary(text: &str) -> String {
    let paragraph = text.trim().split("\n\n").next().unwrap_or_default();
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    plain(&words.join(" "))
}

/// No more than so many characters, with a mark where something was left out.
pub(crate) fn cut(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(characters.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Breaks a text into lines of at most `width` characters, at blanks where there are any.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(20);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let paragraph = plain(paragraph);
        if paragraph.chars().count() <= width {
            lines.push(paragraph.trim_end().to_owned());
            continue;
        }
        let indent: String = paragraph.chars().take_while(|c| *c == ' ').collect();
        let mut line = indent.clone();
        let mut length = line.len();
        let mut empty = true;
        for word in paragraph.split_whitespace() {
            let word_length = word.chars().count();
            if !empty && length + 1 + word_length > width {
                lines.push(std::mem::replace(&mut line, indent.clone()));
                length = line.len();
                empty = true;
            }
            if !empty {
                line.push(' ');
                length += 1;
            }
            line.push_str(word);
            length += word_length;
            empty = false;
        }
        lines.push(line);
    }
    lines
}

/// `12.3 kB`.
pub(crate) fn size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let mut value = bytes as f64;
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut unit = "B";
    for next in ["kB", "MB", "GB"] {
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    format!("{value:.1} {unit}")
}

/// `1.2 ms`, or `3.40 s` for what people can feel.
pub(crate) fn duration(duration: std::time::Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1000.0)
    } else {
        format!("{seconds:.2} s")
    }
}

/// How long ago, as people say it.
pub(crate) fn age(age: std::time::Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..=99 => format!("{seconds} s"),
        100..=5999 => format!("{} min", seconds / 60),
        6000..=359_999 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// `a, b or c`.
pub(crate) fn either<S: AsRef<str>>(names: &[S]) -> String {
    let mut text = String::new();
    for (index, name) in names.iter().enumerate() {
        let separator = match index {
            0 => "",
            _ if index + 1 == names.len() => " or ",
            _ => ", ",
        };
        // Writing to a string cannot fail.
        let _infallible = write!(text, "{separator}{}", name.as_ref());
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{duration, either, plain, safe_json, size, summary, tame, wrap};

    #[test]
    fn no_escape_sequence_reaches_a_terminal() {
        assert_eq!(
            plain("a\u{1b}[31mb\tc\nd\u{7}\u{202e}"),
            "a\u{fffd}[31mb c d\u{fffd}\\u{202e}"
        );
    }

    #[test]
    fn json_that_steers_nothing_says_the_same() {
        let text = "a\u{1b}[2J\u{7f}\u{9b}\u{2028}\u{202e}\n\"zoë\" 🦀";
        let json = serde_json::to_string(text).unwrap();
        let safe = safe_json(&json);
        assert_eq!(
            safe,
            "\"a\\u001b[2J\\u007f\\u009b\\u2028\\u202e\\n\\\"zoë\\\" 🦀\""
        );
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
    }

    #[test]
    fn tamed_text_keeps_its_lines_and_loses_its_commands() {
        assert_eq!(
            tame("a\tb\r\nc\rd\u{1b}]0;x\u{7}\u{9b}2J\u{7f}\n"),
            "a\tb\nc\u{fffd}d\u{fffd}]0;x\u{fffd}\u{fffd}2J\u{fffd}\n"
        );
        assert_eq!(tame("שלום 👩\u{200d}👧"), "שלום 👩\u{200d}👧");
    }

    #[test]
    fn characters_that_reorder_or_hide_text_are_shown_as_escapes() {
        for (hidden, shown) in [
            ("a\u{202e}b\u{2066}", "a\\u{202e}b\\u{2066}"),
            ("\u{200e}\u{200f}\u{61c}", "\\u{200e}\\u{200f}\\u{61c}"),
            ("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}"),
        ] {
            assert_eq!(tame(hidden), shown);
            assert_eq!(plain(hidden), shown);
        }
    }

    #[test]
    fn summaries_are_the_first_paragraph_on_one_line() {
        assert_eq!(summary("\n  One\n  two.\n\nThree."), "One two.");
        assert_eq!(summary(""), "");
    }

    #[test]
    fn lines_break_at_blanks_and_keep_their_indentation() {
        let wrapped = wrap(
            "aaaaaaaaa bbbbbbbbb ccccccccc\n  dd eeeeeeeeee ffffffffff",
            20,
        );
        assert_eq!(
            wrapped,
            [
                "aaaaaaaaa bbbbbbbbb",
                "ccccccccc",
                "  dd eeeeeeeeee",
                "  ffffffffff"
            ]
        );
        let long = "x".repeat(50);
        assert_eq!(wrap(&long, 20), [long]);
    }

    #[test]
    fn quantities_read_well() {
        let sizes = [0, 999, 1000, 12_345, 999_960, 5_000_000].map(size);
        assert_eq!(
            sizes,
            ["0 B", "999 B", "1.0 kB", "12.3 kB", "1.0 MB", "5.0 MB"]
        );
        assert_eq!(duration(Duration::from_micros(1234)), "1.2 ms");
        assert_eq!(duration(Duration::from_millis(3400)), "3.40 s");
        assert_eq!(either(&["a"]), "a");
        assert_eq!(either(&["a", "b", "c"]), "a, b or c");
    }
}
