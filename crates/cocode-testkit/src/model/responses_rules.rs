//! What the Responses interface documents about requests, and the errors that it answers with.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Report, list, text};
use crate::http::HttpRequest;
use crate::provider_rules::violations;

const MEMBERS: [&str; 13] = [
    "model",
    "input",
    "instructions",
    "stream",
    "store",
    "include",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "prompt_cache_key",
    "reasoning",
    "text",
];

/// The fewest tokens that may be asked for.
const MIN_OUTPUT_TOKENS: u64 = 16;

/// The longest name of a call, and the longest key of a cache.
const MAX_ID_CHARS: usize = 64;

pub(super) fn check(report: &mut Report, request: &HttpRequest, body: &Value) {
    report.header(request, "authorization", "Bearer ");
    report.known("", body, &MEMBERS);
    let most = body.get("max_output_tokens").and_then(Value::as_u64);
    if most.is_some_and(|most| most < MIN_OUTPUT_TOKENS) {
        report.add("max_output_tokens: below the minimum value of 16".into());
    }
    if text(body, "prompt_cache_key").len() > MAX_ID_CHARS {
        report.add("prompt_cache_key: string too long".into());
    }
    if body.get("store") != Some(&Value::Bool(false)) {
        report.add("store: nothing is to be kept".into());
    }
    for (at, tool) in list(body, "tools").iter().enumerate() {
        let is_strict = tool.get("strict") == Some(&Value::Bool(true));
        let dialect = if is_strict { "openai-strict" } else { "openai" };
        for what in violations(dialect, tool) {
            report.add(format!("tools[{at}]: {what}"));
        }
    }
    let items = list(body, "input");
    if items.is_empty() {
        report.add("input: Missing required parameter".into());
    }
    let mut called = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let place = format!("input[{at}]");
        match text(item, "type") {
            "message" => check_message(report, &place, item),
            "function_call" => {
                report.known(
                    &place,
                    item,
                    &["type", "id", "call_id", "name", "arguments", "status"],
                );
                check_id(report, &place, text(item, "call_id"));
                called.insert(text(item, "call_id"));
                if !item.get("arguments").is_some_and(Value::is_string) {
                    report.add(format!("{place}.arguments: expected a string"));
                }
            }
            "function_call_output" => {
                let id = text(item, "call_id");
                if !called.contains(id) {
                    report.add(format!(
                        "No tool call found for function call output with call_id {id}."
                    ));
                }
                if !answered.insert(id) {
                    report.add(format!("{place}: {id} has an output already"));
                }
                check_output(report, &place, item.get("output").unwrap_or(&Value::Null));
            }
            "reasoning" => {
                let next = items
                    .get(at + 1)
                    .map(|next| (text(next, "type"), text(next, "role")));
                let follows = matches!(
                    next,
                    Some(("function_call" | "reasoning", _) | ("message", "assistant"))
                );
                if !follows {
                    report.add(format!(
                        "Item '{}' of type 'reasoning' was provided without its required following item.",
                        text(item, "id")
                    ));
                }
                if text(item, "encrypted_content").is_empty()
                    || !item.get("summary").is_some_and(Value::is_array)
                {
                    report.add(format!("{place}: is not as it was given out"));
                }
            }
            other => report.add(format!("{place}: Invalid value: '{other}'")),
        }
    }
    for id in called.difference(&answered) {
        report.add(format!("No tool output found for function call {id}."));
    }
}

fn check_id(report: &mut Report, place: &str, id: &str) {
    if id.is_empty() || id.len() > MAX_ID_CHARS {
        report.add(format!("{place}.call_id: expected 1 to 64 characters"));
    }
}

fn check_message(report: &mut Report, place: &str, item: &Value) {
    report.known(place, item, &["type", "role", "content", "id", "status"]);
    let allowed: &[&str] = match text(item, "role") {
        "user" => &["input_text", "input_image"],
        "assistant" => &["output_text", "refusal"],
        other => return report.add(format!("{place}.role: Invalid value: '{other}'")),
    };
    let parts = list(item, "content");
    if parts.is_empty() {
        report.add(format!("{place}.content: is empty"));
    }
    for part in parts {
        check_part(report, place, part, allowed);
    }
}

fn check_output(report: &mut Report, place: &str, output: &Value) {
    match output {
        Value::String(_) => {}
        Value::Array(parts) if !parts.is_empty() => {
            for part in parts {
                check_part(report, place, part, &["input_text", "input_image"]);
            }
        }
        _ => report.add(format!(
            "{place}.output: expected a string or an array of content"
        )),
    }
}

fn check_part(report: &mut Report, place: &str, part: &Value, allowed: &[&str]) {
    let kind = text(part, "type");
    if !allowed.contains(&kind) {
        report.add(format!(
            "{place}: Invalid value: '{kind}'. Supported values are: {allowed:?}"
        ));
    }
    if kind == "input_image" && !text(part, "image_url").starts_with("data:image/") {
        report.add(format!("{place}.image_url: is no image"));
    }
    if kind.ends_with("_text") && !part.get("text").is_some_and(Value::is_string) {
        report.add(format!("{place}.text: Missing required parameter"));
    }
}
