//! Untrusted text and call arguments, rendered so that nothing in them is hidden from a person.

use std::fmt::Write as _;

use serde_json::Value;

/// Longest argument name that is shown whole.
const MAX_NAME_CHARS: usize = 60;
/// Least space for a value, however many arguments there are.
const MIN_VALUE_CHARS: usize = 40;
/// Longest run of blanks that is shown as it is.
const MAX_BLANKS: usize = 8;

/// Whether a character is invisible and can hide or reorder the text around it: bidirectional controls, line
/// separators, zero-width and tag characters, blank fillers. The joiners U+200C and U+200D are not: scripts and
/// emoji need them. Control characters are left to [`char::is_control`].
pub fn is_hidden_format(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{200e}'
            | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text on one line: control and hidden characters as their escapes, long runs of blanks as their length.
pub fn make_visible(text: &str) -> String {
    let mut visible = String::with_capacity(text.len());
    let mut blanks = String::new();
    for character in text.chars() {
        let is_blank = character.is_whitespace() || character == '\u{2800}';
        if is_blank && !character.is_control() && !is_hidden_format(character) {
            blanks.push(character);
            continue;
        }
        push_blanks(&mut visible, &mut blanks);
        if character.is_control() || is_hidden_format(character) {
            visible.extend(character.escape_default());
        } else {
            visible.push(character);
        }
    }
    push_blanks(&mut visible, &mut blanks);
    visible
}

fn push_blanks(visible: &mut String, blanks: &mut String) {
    match blanks.chars().count() {
        ..=MAX_BLANKS => visible.push_str(blanks),
        // Writing to a string does not fail.
        count => drop(write!(visible, "[{count} blanks]")),
    }
    blanks.clear();
}

/// The arguments of a call for the person who decides about it: one line for each, `name: value`.
///
/// The values share `total_chars`, and each is shortened by itself, so that none pushes another out of view.
/// If there are more than `max_values` arguments, the last line has the number and names of the others.
pub fn argument_lines(arguments: &Value, total_chars: usize, max_values: usize) -> Vec<String> {
    let members: Vec<(&str, String)> = match arguments {
        Value::Null => Vec::new(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_string()))
            .collect(),
        other => vec![("arguments", other.to_string())],
    };
    member_lines(&members, total_chars, max_values)
}

/// The same for the members of an object whose values are still JSON text. Equal names are listed each.
pub fn member_lines<N: AsRef<str>, V: AsRef<str>>(
    members: &[(N, V)],
    total_chars: usize,
    max_values: usize,
) -> Vec<String> {
    let (shown, rest) = members.split_at(members.len().min(max_values));
    let each = total_chars / shown.len().max(1);
    let name = |name: &N| excerpt(name.as_ref(), MAX_NAME_CHARS);
    let mut lines: Vec<String> = shown
        .iter()
        .map(|(key, value)| {
            format!(
                "{}: {}",
                name(key),
                excerpt(value.as_ref(), each.max(MIN_VALUE_CHARS))
            )
        })
        .collect();
    if !rest.is_empty() {
        let names: Vec<String> = rest.iter().map(|(key, _)| name(key)).collect();
        lines.push(format!(
            "{} more arguments, values not shown: {}",
            rest.len(),
            names.join(", ")
        ));
    }
    lines
}

/// Beginning and end of a text that is too long, with the number of characters between them.
fn excerpt(text: &str, max_chars: usize) -> String {
    let text = make_visible(text);
    let count = text.chars().count();
    let Some(left_out) = count.checked_sub(max_chars).filter(|more| *more > 0) else {
        return text;
    };
    let tail = max_chars / 3;
    let head: String = text.chars().take(max_chars - tail).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    format!("{head} … {left_out} characters left out … {tail}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{argument_lines, is_hidden_format, make_visible, member_lines};

    #[test]
    fn bidirectional_and_hidden_characters_are_escaped() {
        let bidirectional = ('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        let hidden = ['\u{200e}', '\u{200f}', '\u{61c}', '\u{200b}', '\u{e0041}'];
        for character in bidirectional.chain(hidden) {
            assert!(is_hidden_format(character), "{character:?}");
            let expected = format!("a{}b", character.escape_unicode());
            assert_eq!(make_visible(&format!("a{character}b")), expected);
        }
        let emoji = "zoë 漢字 👩\u{200d}👧 שלום";
        assert_eq!(make_visible(emoji), emoji);
        assert_eq!(make_visible("a\n\tb\u{1b}[2J"), "a\\n\\tb\\u{1b}[2J");
    }

    #[test]
    fn padding_in_one_argument_hides_no_other() {
        for padding in [" ", "\n", "\u{a0}", "\u{2800}", "x", "\u{200b}"] {
            let arguments = json!({
                "a": format!("harmless{}end", padding.repeat(100_000)),
                "path": "/etc/passwd",
            });
            let lines = argument_lines(&arguments, 400, 32);
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[0].starts_with("a: \"harmless"), "{lines:?}");
            assert!(lines[0].ends_with("end\""), "{lines:?}");
            assert!(lines[0].chars().count() < 300, "{lines:?}");
            assert_eq!(lines[1], "path: \"/etc/passwd\"");
        }
        let lines = argument_lines(&json!({ "a": "x".repeat(1000) }), 90, 32);
        let expected = format!(
            "a: \"{} … 912 characters left out … {}\"",
            "x".repeat(59),
            "x".repeat(29)
        );
        assert_eq!(lines, [expected]);
    }

    #[test]
    fn every_argument_is_named_however_many_there_are() {
        let all = (0..100).map(|n| (format!("name{n}"), json!(n)));
        let lines = argument_lines(&all.collect(), 4_000, 10);
        assert_eq!(lines.len(), 11);
        assert!(lines[10].starts_with("90 more arguments"), "{lines:?}");
        let all = lines.join(" ");
        for n in 0..100 {
            assert!(all.contains(&format!("name{n}")), "{n}");
        }
    }

    #[test]
    fn equal_names_are_listed_each() {
        let twice = [("path", "\"a\"".to_owned()), ("path", "\"b\"".to_owned())];
        assert_eq!(member_lines(&twice, 100, 9), ["path: \"a\"", "path: \"b\""]);
        assert!(argument_lines(&json!(null), 100, 9).is_empty());
        assert_eq!(argument_lines(&json!([1]), 100, 9), ["arguments: [1]"]);
    }
}
