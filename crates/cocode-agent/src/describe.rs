//! A call for people: in one line, and with all that the line leaves out.

use cocode_core::{argument_lines, is_hidden_format};
use serde_json::Value;

use crate::company::ApprovalQuestion;
use crate::content::ToolCall;

/// So many characters of it are shown.
const MAX_CHARS: usize = 300;
/// So many characters of the arguments of a call are shown to whoever decides about it.
const MAX_DETAIL_CHARS: usize = 4_000;
/// So many arguments are shown with their values; of further ones only the names are.
const MAX_DETAIL_VALUES: usize = 1_000;

/// What a call would do: the tool, and the argument that says most.
pub fn describe(call: &ToolCall) -> String {
    let arguments = call.arguments.to_object();
    let text = |key: &str| arguments.get(key).and_then(Value::as_str);
    let main = match call.name.as_str() {
        "shell" => text("command"),
        "read" | "list" | "edit" | "write" => text("path"),
        "find" | "grep" => text("pattern"),
        _ => None,
    };
    let what = match main {
        Some(main) => format!("{}: {main}", call.name),
        None => match arguments.as_object() {
            Some(members) if members.is_empty() => call.name.clone(),
            _ => format!("{} {arguments}", call.name),
        },
    };
    let mut line = String::new();
    for character in what.chars().take(MAX_CHARS) {
        match character {
            control if control.is_control() => line.push(' '),
            hidden if is_hidden_format(hidden) => line.extend(hidden.escape_unicode()),
            other => line.push(other),
        }
    }
    if what.chars().nth(MAX_CHARS).is_some() {
        line.push('…');
    }
    line
}

/// The lines with all arguments, unless the summary has them. Long values are shortened each by itself.
pub fn details(question: &ApprovalQuestion) -> Option<String> {
    let members = question.arguments.as_object()?;
    let is_said = match members.values().next() {
        None => true,
        Some(Value::String(text)) if members.len() == 1 => {
            question.summary == format!("{}: {text}", question.tool)
        }
        Some(_) => false,
    };
    if is_said {
        return None;
    }
    let mut lines = argument_lines(&question.arguments, MAX_DETAIL_CHARS, MAX_DETAIL_VALUES);
    let replaced = question.replaced_text.as_deref();
    let replaced = replaced.map(|text| format!("({} lines are replaced)", text.lines().count()));
    lines.extend(replaced);
    Some(format!("with these arguments:\n  {}", lines.join("\n  ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{describe, details};
    use crate::company::ApprovalQuestion;
    use crate::content::{Arguments, ToolCall};

    fn of(name: &str, arguments: serde_json::Value) -> String {
        describe(&ToolCall {
            id: String::new(),
            name: name.to_owned(),
            arguments: Arguments::Json(arguments),
        })
    }

    #[test]
    fn the_argument_that_says_most_is_shown_on_one_line() {
        assert_eq!(
            of("shell", json!({"command": "ls\nrm x"})),
            "shell: ls rm x"
        );
        assert_eq!(of("mcp__a__b", json!({"x": 1})), "mcp__a__b {\"x\":1}");
        assert_eq!(of("mcp__a__b", json!({})), "mcp__a__b");
        let long = of("shell", json!({"command": "x".repeat(1000)}));
        assert_eq!(long.chars().count(), 301);
    }

    #[test]
    fn what_the_line_leaves_out_is_in_the_details() {
        let question = |command: &str| ApprovalQuestion {
            id: "1".to_owned(),
            tool: "shell".to_owned(),
            summary: of("shell", json!({ "command": command })),
            arguments: json!({ "command": command }),
            why: "it writes".to_owned(),
            justification: None,
            can_remember: false,
            ..ApprovalQuestion::default()
        };
        assert_eq!(details(&question("ls")), None);
        let long = format!("echo {}; rm -r /", "x".repeat(400));
        let shown = details(&question(&long)).unwrap();
        assert!(shown.contains("; rm -r /"), "{shown}");
        assert!(details(&question("ls\nrm x")).is_some());
    }
}
