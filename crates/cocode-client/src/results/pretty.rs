//! Indents JSON without changing anything else: the order of keys and the spelling of numbers and
//! strings stay.

use serde_json::value::RawValue;

const INDENT: &str = "  ";
/// Deeper JSON stays as it is: the indentation would grow with the square of the depth.
const MAX_DEPTH: usize = 128;

/// `text` with one member or element on each line, if it is a JSON object or list.
pub(super) fn pretty(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    serde_json::from_str::<&RawValue>(text).ok()?;
    indented(text)
}

/// Indents what is known to be JSON, unless it is too deep.
fn indented(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len() * 3 / 2);
    let mut depth = 0_usize;
    let mut letters = json.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => {
                out.push('"');
                let mut is_escaped = false;
                for letter in letters.by_ref() {
                    out.push(letter);
                    if letter == '"' && !is_escaped {
                        break;
                    }
                    is_escaped = letter == '\\' && !is_escaped;
                }
            }
            '{' | '[' => {
                out.push(letter);
                while letters.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(end);
                } else {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return None;
                    }
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            blank if blank.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    Some(out)
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str(INDENT);
    }
}

#[cfg(test)]
mod tests {
    use super::pretty;

    #[test]
    fn only_blanks_change() {
        let json =
            r#" {"b":[1,2.50e3,{}],"a":"x\",{\\","c":[ ],"n":123456789012345678901234567890} "#;
        let expected = r#"{
  "b": [
    1,
    2.50e3,
    {}
  ],
  "a": "x\",{\\",
  "c": [],
  "n": 123456789012345678901234567890
}"#;
        assert_eq!(pretty(json).as_deref(), Some(expected));
        assert_eq!(pretty(expected).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_no_object_or_list_stays_as_it_is() {
        for text in ["", "plain", "12", "\"text\"", "{not json}", "[1] and more"] {
            assert_eq!(pretty(text), None, "{text}");
        }
        assert_eq!(pretty(&"[".repeat(100_000)), None);
        let deep = |depth: usize| "[".repeat(depth) + "1" + &"]".repeat(depth);
        assert!(pretty(&deep(128)).is_some());
        assert_eq!(pretty(&deep(100_000)), None);
    }
}
