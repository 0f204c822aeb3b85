//! What is documented about requests for chat completions, and the errors that answer them.

use serde_json::Value;

use super::{Report, list, text};
use crate::http::HttpRequest;
use crate::provider_rules::violations;

const MEMBERS: [&str; 10] = [
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
];

pub(super) fn check(report: &mut Report, _request: &HttpRequest, body: &Value) {
    report.known("", body, &MEMBERS);
    for (at, tool) in list(body, "tools").iter().enumerate() {
        let function = tool.get("function").unwrap_or(&Value::Null);
        if text(tool, "type") != "function" {
            report.add(format!("tools[{at}].type: is no function"));
        }
        for what in violations("plain", function) {
            report.add(format!("tools[{at}]: {what}"));
        }
    }
    let messages = list(body, "messages");
    if messages.is_empty() {
        report.add("messages: is too short".into());
    }
    // Calls of the last message of the model that have no answer yet.
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        let role = text(message, "role");
        if role != "tool" && !open.is_empty() {
            report.add(format!(
                "{place}: An assistant message with 'tool_calls' must be followed by tool messages \
                 responding to each 'tool_call_id': {}",
                open.join(", ")
            ));
            open.clear();
        }
        match role {
            "system" if at == 0 => check_content(report, &place, message),
            "user" => check_content(report, &place, message),
            "assistant" => open = check_assistant(report, &place, message),
            "tool" => {
                let id = text(message, "tool_call_id");
                match open.iter().position(|call| *call == id) {
                    Some(found) => drop(open.remove(found)),
                    None => report.add(format!(
                        "{place}: tool_call_id '{id}' not found in 'tool_calls'"
                    )),
                }
                if !message.get("content").is_some_and(Value::is_string) {
                    report.add(format!("{place}.content: expected a string"));
                }
            }
            other => report.add(format!("{place}.role: '{other}' is not expected here")),
        }
    }
    let last = messages.last().map(|message| text(message, "role"));
    if !matches!(last, Some("user" | "tool")) || !open.is_empty() {
        report.add("messages: the last is of the user, or of the tools".into());
    }
}

fn check_assistant<'a>(report: &mut Report, place: &str, message: &'a Value) -> Vec<&'a str> {
    report.known(
        place,
        message,
        &[
            "role",
            "content",
            "tool_calls",
            "reasoning_content",
            "reasoning",
            "refusal",
        ],
    );
    let calls = list(message, "tool_calls");
    if calls.is_empty() && text(message, "content").is_empty() {
        report.add(format!("{place}: 'content' or 'tool_calls' must be set"));
    }
    for call in calls {
        let function = call.get("function").unwrap_or(&Value::Null);
        if text(call, "type") != "function" || text(call, "id").is_empty() {
            report.add(format!("{place}.tool_calls: has no type or id"));
        }
        let arguments: Result<Value, _> = serde_json::from_str(text(function, "arguments"));
        if text(function, "name").is_empty() || !arguments.is_ok_and(|own| own.is_object()) {
            report.add(format!(
                "{place}.tool_calls: the arguments are no JSON object"
            ));
        }
    }
    calls.iter().map(|call| text(call, "id")).collect()
}

fn check_content(report: &mut Report, place: &str, message: &Value) {
    match message.get("content") {
        Some(Value::String(text)) if !text.is_empty() => {}
        Some(Value::Array(parts)) if !parts.is_empty() => {
            for part in parts {
                let url = part.pointer("/image_url/url").and_then(Value::as_str);
                let fits = match text(part, "type") {
                    "text" => part.get("text").is_some_and(Value::is_string),
                    "image_url" => url.is_some_and(|url| url.starts_with("data:image/")),
                    _ => false,
                };
                if !fits {
                    report.add(format!("{place}.content: a part is not understood"));
                }
            }
        }
        _ => report.add(format!(
            "{place}.content: expected a string or an array of objects"
        )),
    }
}
