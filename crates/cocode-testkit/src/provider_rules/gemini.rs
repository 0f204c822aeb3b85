//! The schema language of Gemini.

use serde_json::{Map, Value};

use super::{Report, is_key};

const TYPES: &[&str] = &["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"];

pub(super) fn check(report: &mut Report, root: &Value) {
    if root.get("type").and_then(Value::as_str) != Some("OBJECT") {
        report.add("", "the root is no OBJECT");
    }
    schema(report, root, "");
}

fn schema(report: &mut Report, schema: &Value, place: &str) {
    let Value::Object(members) = schema else {
        return report.add(place, "is no schema");
    };
    if let Some(parts) = members.get("anyOf") {
        if members.len() > 1 {
            report.add(place, "when using any_of, it must be the only field set");
        }
        let parts = parts.as_array().map_or(&[][..], Vec::as_slice);
        if parts.is_empty() {
            report.add(place, "any_of has no schemas");
        }
        for (index, part) in parts.iter().enumerate() {
            self::schema(report, part, &format!("{place}/anyOf/{index}"));
        }
        return;
    }
    let kind = members.get("type").and_then(Value::as_str).unwrap_or("");
    if !TYPES.contains(&kind) {
        report.add(place, &format!("invalid type {kind:?}"));
    }
    for (field, value) in members {
        if let Some(problem) = problem(kind, field, value) {
            report.add(place, &format!("{field}: {problem}"));
        }
    }
    if kind == "ARRAY" {
        match members.get("items") {
            Some(items) => self::schema(report, items, &format!("{place}/items")),
            None => report.add(place, "items: missing field"),
        }
    }
    if kind == "OBJECT" {
        object(report, members, place);
    }
}

/// What is wrong with a field, for this type.
fn problem(kind: &str, field: &str, value: &Value) -> Option<&'static str> {
    let is_number = matches!(kind, "NUMBER" | "INTEGER");
    let (belongs, is_valid) = match field {
        "type" | "description" | "title" => (true, value.is_string()),
        "nullable" => (true, value.is_boolean()),
        "format" => {
            let known: &[&str] = match kind {
                "STRING" => &["enum", "date-time"],
                "NUMBER" => &["float", "double"],
                "INTEGER" => &["int32", "int64"],
                _ => &[],
            };
            (
                true,
                value.as_str().is_some_and(|format| known.contains(&format)),
            )
        }
        "enum" => {
            let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
            let values = value.as_array();
            let is_valid = values.is_some_and(|all| !all.is_empty() && all.iter().all(is_text));
            (kind == "STRING", is_valid)
        }
        "pattern" => {
            let pattern = value.as_str();
            (
                kind == "STRING",
                pattern.is_some_and(|pattern| !pattern.contains("(?")),
            )
        }
        "minLength" | "maxLength" => (kind == "STRING", value.as_i64().is_some()),
        "minimum" | "maximum" => (is_number, value.is_number()),
        "items" => (kind == "ARRAY", value.is_object()),
        "minItems" | "maxItems" => (kind == "ARRAY", value.as_i64().is_some()),
        "properties" => (kind == "OBJECT", value.is_object()),
        "required" => (kind == "OBJECT", value.is_array()),
        "minProperties" | "maxProperties" => (kind == "OBJECT", value.as_i64().is_some()),
        _ => return Some("cannot find field"),
    };
    match (belongs, is_valid) {
        (true, true) => None,
        (false, _) => Some("not allowed for this type"),
        (true, false) => Some("has an invalid value"),
    }
}

fn object(report: &mut Report, members: &Map<String, Value>, place: &str) {
    let empty = Map::new();
    let properties = members
        .get("properties")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    if properties.is_empty() {
        report.add(place, "properties: should be non-empty for OBJECT type");
    }
    let required = members.get("required").and_then(Value::as_array);
    for key in required.into_iter().flatten() {
        if !key.as_str().is_some_and(|key| properties.contains_key(key)) {
            report.add(place, &format!("required: property {key} is not defined"));
        }
    }
    for (key, below) in properties {
        if !is_key(key) {
            report.add(place, &format!("the key {key:?} is refused"));
        }
        schema(report, below, &format!("{place}/properties/{key}"));
    }
}
