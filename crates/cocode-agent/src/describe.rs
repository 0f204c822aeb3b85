//! A call in one line, for people.

use serde_json::Value;

use crate::content::ToolCall;

/// So many characters of it are shown.
const MAX_CHARS: usize = 300;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::describe;
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
}
