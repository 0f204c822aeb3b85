//! Says in plain English what a schema cannot, within bounds.

use serde_json::Value;

/// What is told of one value beside its own description, in characters.
const MAX_TOLD_CHARS: usize = 300;
/// The longest description of one value, in characters, without what is told.
const MAX_OWN_CHARS: usize = 2_000;
/// The longest value that is quoted, in characters.
const MAX_QUOTED_CHARS: usize = 60;
/// How many values are quoted of a list.
const MAX_QUOTED: usize = 20;
/// The deepest value that is quoted.
const MAX_QUOTED_DEPTH: usize = 8;
/// Stands where something is cut.
const CUT: &str = "…";

/// A description, and whether it is cut.
pub(super) struct Described {
    pub(super) text: String,
    pub(super) is_cut: bool,
}

/// The description of one value: its own words, then what is told.
pub(super) fn of_value(own: Option<&str>, told: &[String]) -> Option<Described> {
    let own = own.map(str::trim).unwrap_or_default();
    let (own, is_cut) = cut(own, MAX_OWN_CHARS);
    let told = sentences(told, MAX_TOLD_CHARS);
    let text = joined(&own, &told);
    (!text.is_empty()).then_some(Described { text, is_cut })
}

/// The description of a tool, which has a limit for the whole. Its own words come first and keep
/// at least two thirds of the room.
pub(super) fn of_tool(own: Option<&str>, told: &[String], limit: usize) -> Described {
    let own = own.map(str::trim).unwrap_or_default();
    let told_limit = (limit / 3).min(2 * MAX_TOLD_CHARS);
    let told = sentences(told, told_limit);
    let taken = told.chars().count();
    let room = if taken == 0 {
        limit
    } else {
        limit - taken - ". ".len()
    };
    let (own, is_cut) = cut(own, room);
    let text = joined(&own, &told);
    Described { text, is_cut }
}

/// The text, or its beginning with a mark, in at most so many characters.
pub(super) fn cut(text: &str, limit: usize) -> (String, bool) {
    if text.chars().count() <= limit {
        return (text.to_owned(), false);
    }
    let mut kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    kept.truncate(kept.trim_end().len());
    kept.push_str(CUT);
    (kept, true)
}

/// A value as it is written in JSON, cut if it is long.
pub(super) fn quoted(value: &Value) -> String {
    if !is_shallow(value, MAX_QUOTED_DEPTH) {
        return CUT.to_owned();
    }
    cut(&value.to_string(), MAX_QUOTED_CHARS).0
}

/// Values as they are written in JSON, one after the other.
pub(super) fn list<'a>(values: impl IntoIterator<Item = &'a Value>) -> String {
    let mut values = values.into_iter();
    let mut words: Vec<String> = values.by_ref().take(MAX_QUOTED).map(quoted).collect();
    if values.next().is_some() {
        words.push(CUT.to_owned());
    }
    words.join(", ")
}

/// Names in quotes, one after the other.
pub(super) fn names<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names = names.into_iter();
    let quote = |name: &String| format!("`{}`", cut(name, MAX_QUOTED_CHARS).0);
    let mut words: Vec<String> = names.by_ref().take(MAX_QUOTED).map(quote).collect();
    if names.next().is_some() {
        words.push(CUT.to_owned());
    }
    words.join(", ")
}

/// Whether a value is not nested deeper than this.
pub(super) fn is_shallow(value: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(members) => members.iter().all(|member| is_shallow(member, below)),
        Value::Object(members) => members.values().all(|member| is_shallow(member, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// How much a value is, in nodes; text counts as one for every 64 bytes. What is beyond the limit
/// is not counted.
pub(super) fn weight(value: &Value, limit: usize) -> usize {
    let mut total = 0;
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        total += 1;
        match value {
            Value::String(text) => total += text.len() / 64,
            Value::Array(members) => {
                total += members.len() / 64;
                left.extend(members.iter().take(limit));
            }
            Value::Object(members) => {
                total += members
                    .keys()
                    .take(limit)
                    .map(|key| key.len() / 64)
                    .sum::<usize>();
                left.extend(members.values().take(limit));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if total > limit {
            break;
        }
    }
    total
}

fn sentences(told: &[String], limit: usize) -> String {
    let mut text = String::new();
    let mut taken = 0;
    for sentence in told {
        let length = sentence.chars().count() + usize::from(taken > 0);
        if taken + length > limit.saturating_sub(2) {
            text.push(' ');
            text.push_str(CUT);
            break;
        }
        if taken > 0 {
            text.push(' ');
        }
        text.push_str(sentence);
        taken += length;
    }
    text.trim_start().to_owned()
}

fn joined(own: &str, told: &str) -> String {
    match (own.is_empty(), told.is_empty()) {
        (true, _) => told.to_owned(),
        (_, true) => own.to_owned(),
        // What is told begins a new sentence.
        (false, false) if own.ends_with(|last: char| last.is_alphanumeric()) => {
            format!("{own}. {told}")
        }
        (false, false) => format!("{own} {told}"),
    }
}
