//! The words for values, types and lists of them. Everything from outside is cut short here.

use cocode_core::nearest;
use serde_json::Value;

use super::limits::{MAX_COMPARED_BYTES, MAX_DESCRIPTION_CHARS, MAX_LISTED, MAX_SHOWN_CHARS};

/// A text on one line, cut to what is shown.
pub(super) fn cut(text: &str) -> String {
    shortened(text, MAX_SHOWN_CHARS)
}

/// A description on one line, cut to what is shown.
pub(super) fn cut_description(text: &str) -> String {
    shortened(text.trim(), MAX_DESCRIPTION_CHARS)
}

fn shortened(text: &str, limit: usize) -> String {
    let mut chars = text.chars();
    let mut short: String = chars
        .by_ref()
        .take(limit)
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

/// The names that may have been meant. Long ones would take long to compare, and are no typos.
pub(super) fn close_to<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if wanted.len() > MAX_COMPARED_BYTES {
        return Vec::new();
    }
    let names = names.into_iter();
    nearest(
        wanted,
        names.filter(|name| name.len() <= MAX_COMPARED_BYTES),
    )
}

/// Whether a name can stand in a path without quotes.
pub(super) fn is_plain_name(name: &str) -> bool {
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '$' | '@');
    !name.is_empty() && name.chars().count() <= MAX_SHOWN_CHARS && name.chars().all(is_plain)
}

/// A value as JSON, cut short.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => Value::String(cut(text)).to_string(),
        Value::Array(items) => match items.as_slice() {
            [] => "[]".to_owned(),
            [only] => format!("[{}]", plain_or_dots(only)),
            [first, ..] => format!("[{}, …]", plain_or_dots(first)),
        },
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let first = members.iter().next();
            let first = first.map(|(name, value)| {
                let name = Value::String(cut(name));
                format!("{name}: {}", plain_or_dots(value))
            });
            let more = if members.len() > 1 { ", …" } else { "" };
            format!("{{{}{more}}}", first.unwrap_or_default())
        }
        plain => plain.to_string(),
    }
}

fn plain_or_dots(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => "…".to_owned(),
        plain => shown(plain),
    }
}

/// What was given: its type, and the value itself where that is short.
pub(super) fn given(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => format!("the boolean {value}"),
        Value::Number(_) => format!("the number {value}"),
        Value::String(_) => format!("the string {}", shown(value)),
        Value::Array(items) => match items.len() {
            0 => "an empty array".to_owned(),
            1 => "an array of 1 item".to_owned(),
            count => format!("an array of {count} items"),
        },
        Value::Object(_) => "an object".to_owned(),
    }
}

/// A type with its article.
pub(super) fn type_name(name: &str) -> &'static str {
    match name {
        "null" => "null",
        "boolean" => "a boolean",
        "integer" => "an integer",
        "number" => "a number",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        _ => "something else",
    }
}

/// `a, b or c`, with no name twice and not too many.
pub(super) fn either(names: &[String]) -> String {
    joined(names, "or")
}

/// `a, b and c`, with no name twice and not too many.
pub(super) fn all_of(names: &[String]) -> String {
    joined(names, "and")
}

fn joined(names: &[String], word: &str) -> String {
    let mut distinct: Vec<String> = Vec::new();
    let mut left_out = 0;
    for name in names {
        if distinct.contains(name) {
            continue;
        }
        if distinct.len() < MAX_LISTED {
            distinct.push(name.clone());
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        distinct.push(format!("{left_out} more"));
    }
    match distinct.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} {word} {last}", others.join(", ")),
    }
}

/// `1 item`, `2 items`.
pub(super) fn counted(count: u64, one: &str) -> String {
    match (count, one) {
        (1, _) => format!("1 {one}"),
        (_, "property") => format!("{count} properties"),
        _ => format!("{count} {one}s"),
    }
}

/// What a value of this format looks like.
pub(super) fn format_example(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2025-01-31T13:45:00Z",
        "date" => "2025-01-31",
        "time" => "13:45:00Z",
        "duration" => "PT1H30M",
        "email" | "idn-email" => "name@example.com",
        "hostname" | "idn-hostname" => "www.example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" | "iri" => "https://example.com/path",
        "uri-reference" | "iri-reference" => "/path?query",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        "json-pointer" => "/a/b",
        _ => return None,
    })
}
