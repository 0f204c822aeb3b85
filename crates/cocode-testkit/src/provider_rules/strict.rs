//! What the guide to structured outputs of OpenAI says beyond JSON Schema.

use serde_json::{Map, Value};

use super::Report;

const KEYWORDS: &[&str] = &[
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "const",
    "anyOf",
    "$ref",
    "$defs",
    "pattern",
    "format",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "minItems",
    "maxItems",
];

#[derive(Default)]
struct Totals {
    properties: usize,
    values: usize,
    chars: usize,
}

pub(super) fn check(report: &mut Report, root: &Value) {
    let mut totals = Totals::default();
    schema(report, root, "", 1, &mut totals);
    for (total, limit, what) in [
        (totals.properties, 5_000, "properties"),
        (totals.values, 1_000, "values of enums"),
        (totals.chars, 120_000, "characters of names and values"),
    ] {
        if total > limit {
            report.add("", &format!("{total} {what}, of at most {limit}"));
        }
    }
}

fn schema(report: &mut Report, schema: &Value, place: &str, level: usize, totals: &mut Totals) {
    let Value::Object(members) = schema else {
        return report.add(place, "is no schema");
    };
    for keyword in members.keys() {
        if !KEYWORDS.contains(&keyword.as_str()) {
            report.add(place, &format!("'{keyword}' is not permitted"));
        }
    }
    let is_typed = ["type", "anyOf", "$ref", "enum", "const"];
    if !is_typed
        .iter()
        .any(|keyword| members.contains_key(*keyword))
    {
        report.add(place, "schema must have a 'type' key");
    }
    let has = |name: &str| match members.get("type") {
        Some(Value::Array(names)) => names.contains(&Value::from(name)),
        Some(only) => only == &Value::from(name),
        None => false,
    };
    let is_deep = has("object") || has("array");
    if is_deep && level > 10 {
        report.add(
            place,
            &format!("{level} levels of nesting exceeds limit of 10"),
        );
    }
    if has("object") {
        object(report, members, place);
    }
    if members
        .get("pattern")
        .is_some_and(|pattern| pattern.to_string().contains("(?"))
    {
        report.add(place, "regex lookarounds are not permitted");
    }
    values(report, members, place, totals);
    let below = level + usize::from(is_deep);
    for keyword in ["properties", "$defs"] {
        for (name, member) in members
            .get(keyword)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            totals.properties += usize::from(keyword == "properties");
            totals.chars += name.chars().count();
            self::schema(
                report,
                member,
                &format!("{place}/{keyword}/{name}"),
                below,
                totals,
            );
        }
    }
    if let Some(items) = members.get("items") {
        self::schema(report, items, &format!("{place}/items"), below, totals);
    }
    let parts = members.get("anyOf").and_then(Value::as_array);
    for (index, part) in parts.into_iter().flatten().enumerate() {
        self::schema(
            report,
            part,
            &format!("{place}/anyOf/{index}"),
            level,
            totals,
        );
    }
}

fn object(report: &mut Report, members: &Map<String, Value>, place: &str) {
    if members.get("additionalProperties") != Some(&Value::Bool(false)) {
        report.add(
            place,
            "'additionalProperties' is required to be supplied and to be false",
        );
    }
    let required = members.get("required").and_then(Value::as_array);
    let Some(required) = required else {
        return report.add(place, "'required' is required to be supplied");
    };
    for key in members
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
    {
        if !required.iter().any(|name| name.as_str() == Some(key)) {
            report.add(place, &format!("'required' is missing '{key}'"));
        }
    }
}

fn values(report: &mut Report, members: &Map<String, Value>, place: &str, totals: &mut Totals) {
    let chars = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
    if let Some(value) = members.get("const") {
        totals.chars += chars(value);
    }
    if let Some(Value::Array(values)) = members.get("enum") {
        let length: usize = values.iter().map(chars).sum();
        totals.values += values.len();
        totals.chars += length;
        if values.len() > 250 && length > 15_000 {
            report.add(place, "a long enum has more than 15,000 characters");
        }
    }
}
