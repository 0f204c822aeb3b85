//! What the Messages interface documents about requests, and the errors that it answers with.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Report, list, text};
use crate::http::HttpRequest;
use crate::provider_rules::violations;

/// The most marks for the cache in one request.
const MAX_CACHE_MARKS: usize = 4;

const MEMBERS: [&str; 13] = [
    "model",
    "messages",
    "max_tokens",
    "system",
    "stream",
    "tools",
    "tool_choice",
    "thinking",
    "metadata",
    "temperature",
    "stop_sequences",
    "top_p",
    "output_config",
];

pub(super) fn check(report: &mut Report, request: &HttpRequest, body: &Value) {
    report.header(request, "x-api-key", "");
    report.header(request, "anthropic-version", "2023-06-01");
    report.known("", body, &MEMBERS);
    let max_tokens = body
        .get("max_tokens")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    if max_tokens == 0 {
        report.add("max_tokens: Field required".into());
    }
    if let Some(budget) = body
        .pointer("/thinking/budget_tokens")
        .and_then(Value::as_u64)
        && !(1024..max_tokens).contains(&budget)
    {
        report.add("thinking: `max_tokens` must be greater than `thinking.budget_tokens`".into());
    }
    if body.pointer("/thinking/type") == Some(&Value::from("enabled")) {
        check_thought_before_call(report, list(body, "messages"));
    }
    for (at, block) in list(body, "system").iter().enumerate() {
        check_text(report, &format!("system.{at}"), block);
    }
    let mut names = BTreeSet::new();
    for (at, tool) in list(body, "tools").iter().enumerate() {
        let mut bare = tool.clone();
        if let Some(members) = bare.as_object_mut() {
            members.remove("cache_control");
        }
        for what in violations("anthropic", &bare) {
            report.add(format!("tools.{at}: {what}"));
        }
        if !names.insert(text(tool, "name")) {
            report.add("tools: Tool names must be unique.".into());
        }
    }
    if cache_marks(body) > MAX_CACHE_MARKS {
        report.add("A maximum of 4 blocks with cache_control may be provided".into());
    }
    check_messages(report, list(body, "messages"));
}

/// With thinking, the last message of the model begins with a thought if it has calls.
fn check_thought_before_call(report: &mut Report, messages: &[Value]) {
    let last = messages
        .iter()
        .rfind(|message| text(message, "role") == "assistant");
    let blocks = last
        .map(|message| list(message, "content"))
        .unwrap_or_default();
    let has_calls = blocks.iter().any(|block| text(block, "type") == "tool_use");
    let first = blocks
        .first()
        .map(|block| text(block, "type"))
        .unwrap_or_default();
    if has_calls && !first.ends_with("thinking") {
        report.add(format!(
            "Expected `thinking` or `redacted_thinking`, but found `{first}`."
        ));
    }
}

fn check_messages(report: &mut Report, messages: &[Value]) {
    if messages.is_empty() {
        report.add("messages: at least one message is required".into());
    }
    let mut all_calls = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let expected = if at.is_multiple_of(2) {
            "user"
        } else {
            "assistant"
        };
        if text(message, "role") != expected {
            report.add(format!(
                "messages.{at}: roles must alternate, {expected} is expected"
            ));
        }
        let blocks = list(message, "content");
        if blocks.is_empty() && text(message, "content").is_empty() {
            report.add(format!(
                "messages.{at}: all messages must have non-empty content"
            ));
        }
        check_results(report, at, blocks, &std::mem::take(&mut open));
        for (n, block) in blocks.iter().enumerate() {
            check_block(
                report,
                &format!("messages.{at}.content.{n}"),
                expected,
                block,
            );
            if text(block, "type") == "tool_use" {
                open.push(text(block, "id"));
                if !all_calls.insert(text(block, "id")) {
                    report.add(format!("messages.{at}: `tool_use` ids must be unique"));
                }
            }
        }
    }
    if messages.len().is_multiple_of(2) {
        report.add("messages: the last message must be of the user".into());
    }
}

/// Every call has its result in the next message, before anything else there, and the other way round.
fn check_results(report: &mut Report, at: usize, blocks: &[Value], open: &[&str]) {
    let is_result = |block: &&Value| text(block, "type") == "tool_result";
    let results: Vec<&str> = blocks
        .iter()
        .filter(is_result)
        .map(|block| text(block, "tool_use_id"))
        .collect();
    for id in open.iter().filter(|id| !results.contains(id)) {
        report.add(format!(
            "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {id}"
        ));
    }
    for id in results.iter().filter(|id| !open.contains(id)) {
        report.add(format!(
            "messages.{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"
        ));
    }
    if results.iter().collect::<BTreeSet<_>>().len() != results.len() {
        report.add(format!(
            "messages.{at}: each tool_use must have a single result"
        ));
    }
    if blocks.iter().take(results.len()).filter(is_result).count() != results.len() {
        report.add(format!("messages.{at}: tool_result blocks must come first"));
    }
}

fn check_block(report: &mut Report, place: &str, role: &str, block: &Value) {
    match (text(block, "type"), role) {
        ("text", _) => check_text(report, place, block),
        ("image", "user") => check_image(report, place, block),
        ("tool_result", "user") => {
            report.known(
                &format!("{place}."),
                block,
                &[
                    "type",
                    "tool_use_id",
                    "content",
                    "is_error",
                    "cache_control",
                ],
            );
            for (n, inner) in list(block, "content").iter().enumerate() {
                match text(inner, "type") {
                    "text" => check_text(report, &format!("{place}.{n}"), inner),
                    "image" => check_image(report, &format!("{place}.{n}"), inner),
                    other => report.add(format!("{place}.{n}: {other} is not allowed here")),
                }
            }
        }
        ("tool_use", "assistant") => {
            let id = text(block, "id");
            let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
            if id.is_empty() || !id.chars().all(fits) {
                report.add(format!(
                    "{place}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
                ));
            }
            if !block.get("input").is_some_and(Value::is_object) {
                report.add(format!("{place}.input: Input should be a valid dictionary"));
            }
        }
        ("thinking", "assistant") => {
            if text(block, "signature").is_empty() || block.get("thinking").is_none() {
                report.add(format!("{place}: Invalid `signature` in `thinking` block"));
            }
        }
        ("redacted_thinking", "assistant") if !text(block, "data").is_empty() => {}
        (other, _) => report.add(format!("{place}: `{other}` is not allowed for {role}")),
    }
}

fn check_text(report: &mut Report, place: &str, block: &Value) {
    if text(block, "text").trim().is_empty() {
        report.add(format!(
            "{place}: text content blocks must contain non-whitespace text"
        ));
    }
    report.known(
        &format!("{place}."),
        block,
        &["type", "text", "cache_control", "citations"],
    );
}

fn check_image(report: &mut Report, place: &str, block: &Value) {
    let source = block.get("source").unwrap_or(&Value::Null);
    let kinds = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let fits = text(source, "type") == "base64" && kinds.contains(&text(source, "media_type"));
    if !fits || text(source, "data").is_empty() {
        report.add(format!("{place}.source: is not an image that can be taken"));
    }
}

fn cache_marks(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            let inside: usize = members.values().map(cache_marks).sum();
            inside + usize::from(members.contains_key("cache_control"))
        }
        Value::Array(items) => items.iter().map(cache_marks).sum(),
        _ => 0,
    }
}
