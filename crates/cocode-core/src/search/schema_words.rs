//! The texts of a JSON Schema that say what a tool is for: names of parameters, what is said of
//! them, and what they may be.

use serde_json::Value;

/// Levels of a schema that are read: below, it is about details.
const MAX_DEPTH: usize = 6;
/// Values of one parameter that are read.
const MAX_VALUES: usize = 24;
/// Parameters of one tool that are read, at all levels together.
const MAX_PARAMETERS: usize = 200;

/// What a schema says.
#[derive(Debug, Default)]
pub(super) struct SchemaTexts<'a> {
    pub(super) names: Vec<&'a str>,
    pub(super) texts: Vec<&'a str>,
}

impl<'a> SchemaTexts<'a> {
    pub(super) fn of(schema: &'a Value) -> Self {
        let mut found = Self::default();
        found.read(schema, 0);
        found
    }

    fn read(&mut self, schema: &'a Value, depth: usize) {
        let Value::Object(members) = schema else {
            return;
        };
        if depth > MAX_DEPTH {
            return;
        }
        for (key, value) in members {
            match (key.as_str(), value) {
                ("properties", Value::Object(parameters)) => {
                    for (name, parameter) in parameters {
                        if self.names.len() >= MAX_PARAMETERS {
                            return;
                        }
                        self.names.push(name);
                        self.read(parameter, depth + 1);
                    }
                }
                // What is said of all parameters together is said of the tool elsewhere.
                ("description" | "title" | "const", Value::String(text)) if depth > 0 => {
                    self.texts.push(text);
                }
                ("enum", Value::Array(values)) => {
                    let values = values.iter().filter_map(Value::as_str);
                    self.texts.extend(values.take(MAX_VALUES));
                }
                ("items" | "additionalProperties", inner) => self.read(inner, depth + 1),
                ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(all)) => {
                    for one in all.iter().take(MAX_VALUES) {
                        self.read(one, depth + 1);
                    }
                }
                ("$defs" | "definitions", Value::Object(all)) => {
                    for one in all.values().take(MAX_VALUES) {
                        self.read(one, depth + 1);
                    }
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PARAMETERS, SchemaTexts};

    #[test]
    fn names_and_texts_are_read_at_all_levels() {
        let schema = serde_json::json!({
            "description": "not this",
            "properties": {
                "city": { "description": "where" },
                "days": { "anyOf": [{ "enum": ["today", 7] }, { "title": "Other" }] },
                "points": { "items": { "properties": { "lat": {} } } },
                "odd": true,
            },
            "$defs": { "kind": { "const": "x" } },
        });
        let mut found = SchemaTexts::of(&schema);
        found.names.sort_unstable();
        found.texts.sort_unstable();
        assert_eq!(found.names, ["city", "days", "lat", "odd", "points"]);
        assert_eq!(found.texts, ["Other", "today", "where", "x"]);
    }

    #[test]
    fn what_has_no_end_is_cut() {
        let many: serde_json::Map<_, _> = (0..1000)
            .map(|number| (format!("p{number}"), serde_json::json!({})))
            .collect();
        let schema = serde_json::json!({ "properties": many });
        assert_eq!(SchemaTexts::of(&schema).names.len(), MAX_PARAMETERS);
        let mut deep = serde_json::json!({ "description": "deepest" });
        for _ in 0..100 {
            deep = serde_json::json!({ "items": deep });
        }
        assert_eq!(SchemaTexts::of(&deep).texts, [""; 0]);
    }
}
