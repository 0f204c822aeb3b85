//! A call for people: in one line, and with all that the line leaves out.

use serde_json::Value;

use crate::company::ApprovalQuestion;
use crate::content::ToolCall;

/// So many characters of it are shown.
const MAX_CHARS: usize = 300;
/// So many characters of the arguments of a call are shown to whoever decides about it.
const MAX_DETAIL_CHARS: usize = 4_000;

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
    let line: String = what
        .chars()
        .map(|character| {
            if character.is_control() {
                ' '
            } else {
                character
            }
        })
        .take(MAX_CHARS)
        .collect();
    if line.chars().count() == MAX_CHARS {
        return format!("{line}…");
    }
    line
}

/// All arguments, unless the summary is all there is to say: nobody is to agree to half a command.
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
    let text = format!("{:#}", question.arguments);
    let n_chars = text.chars().count();
    let mut shown: String = text.chars().take(MAX_DETAIL_CHARS).collect();
    if let Some(more) = n_chars
        .checked_sub(MAX_DETAIL_CHARS)
        .filter(|more| *more > 0)
    {
        shown.extend(["\n[", &more.to_string(), " more characters are not shown]"]);
    }
    Some(format!("with {shown}"))
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
        };
        assert_eq!(details(&question("ls")), None);
        let long = format!("echo {}; rm -r /", "x".repeat(400));
        let shown = details(&question(&long)).unwrap();
        assert!(shown.contains("; rm -r /"), "{shown}");
        assert!(details(&question("ls\nrm x")).is_some());
    }
}
