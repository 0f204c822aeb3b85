//! The rules of those providers who take JSON Schema itself.

use serde_json::{Map, Value};

use super::{Report, is_key};

/// Who takes JSON Schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Provider {
    OpenAi,
    Plain,
    Anthropic,
}

/// What OpenAI refuses below the root, too.
const REFUSED: &[&str] = &[
    "oneOf",
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "prefixItems",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
];
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uuid",
];
const TYPES: &[&str] = &[
    "null", "boolean", "string", "integer", "number", "array", "object",
];

pub(super) fn check(report: &mut Report, root: &Value, provider: Provider) {
    if root.get("type") != Some(&Value::from("object")) {
        report.add("", "the root is no object");
    }
    for keyword in ["oneOf", "anyOf", "allOf", "enum", "not", "$ref"] {
        if root.get(keyword).is_some() {
            report.add("", &format!("{keyword} at the top level"));
        }
    }
    let definitions = root.get("$defs").and_then(Value::as_object);
    let mut check = Check {
        report,
        provider,
        definitions,
    };
    check.schema(root, "");
    for (name, schema) in definitions.into_iter().flatten() {
        check.schema(schema, &format!("/$defs/{name}"));
    }
}

struct Check<'a> {
    report: &'a mut Report,
    provider: Provider,
    definitions: Option<&'a Map<String, Value>>,
}

impl Check<'_> {
    fn schema(&mut self, schema: &Value, place: &str) {
        let members = match schema {
            Value::Object(members) => members,
            Value::Bool(_) if self.provider == Provider::Anthropic => return,
            _ => return self.report.add(place, "is no schema"),
        };
        for keyword in REFUSED {
            if self.provider != Provider::Anthropic && members.contains_key(*keyword) {
                self.report.add(place, &format!("{keyword} is refused"));
            }
        }
        self.types(members, place);
        self.reference(members, place);
        self.values(members, place);
        for (key, below) in members
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            if self.provider == Provider::Anthropic && !is_key(key) {
                self.report
                    .add(place, &format!("the key {key:?} is refused"));
            }
            self.schema(below, &format!("{place}/properties/{key}"));
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(below) = members.get(keyword)
                && !(keyword == "additionalProperties" && below.is_boolean())
            {
                self.schema(below, &format!("{place}/{keyword}"));
            }
        }
        for keyword in ["anyOf", "prefixItems"] {
            let Some(below) = members.get(keyword) else {
                continue;
            };
            let below = below.as_array().map_or(&[][..], Vec::as_slice);
            if below.is_empty() {
                self.report.add(place, &format!("{keyword} has no schemas"));
            }
            for (index, schema) in below.iter().enumerate() {
                self.schema(schema, &format!("{place}/{keyword}/{index}"));
            }
        }
    }

    fn types(&mut self, members: &Map<String, Value>, place: &str) {
        let types = match members.get("type") {
            None => Vec::new(),
            Some(Value::String(name)) => vec![name.as_str()],
            Some(Value::Array(names)) if self.provider != Provider::Plain && !names.is_empty() => {
                names
                    .iter()
                    .map(|name| name.as_str().unwrap_or(""))
                    .collect()
            }
            Some(_) => return self.report.add(place, "type is malformed"),
        };
        for (index, name) in types.iter().enumerate() {
            if !TYPES.contains(name) || types.iter().take(index).any(|earlier| earlier == name) {
                self.report
                    .add(place, &format!("type {name} is unknown or there twice"));
            }
        }
        if self.provider != Provider::Anthropic {
            if types.contains(&"array") && !members.contains_key("items") {
                self.report.add(place, "array schema missing items");
            }
            if types.contains(&"object") && !members.contains_key("properties") {
                self.report.add(place, "object schema missing properties");
            }
        }
    }

    fn reference(&mut self, members: &Map<String, Value>, place: &str) {
        let Some(reference) = members.get("$ref") else {
            return;
        };
        let name = reference
            .as_str()
            .and_then(|text| text.strip_prefix("#/$defs/"));
        let known = name.is_some_and(|name| {
            self.definitions
                .is_some_and(|definitions| definitions.contains_key(name))
        });
        if !known || self.provider == Provider::Plain {
            self.report
                .add(place, &format!("the reference {reference} leads nowhere"));
        }
        if members.len() > 1 {
            self.report.add(place, "$ref cannot have keywords");
        }
    }

    /// What draft 2020-12 says about the values of keywords.
    fn values(&mut self, members: &Map<String, Value>, place: &str) {
        for (keyword, value) in members {
            let is_valid = match keyword.as_str() {
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" => value.is_u64(),
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                    value.is_number()
                }
                "multipleOf" => value.as_f64().is_some_and(|factor| factor > 0.0),
                "uniqueItems" => value.is_boolean(),
                "description" | "pattern" | "$ref" => value.is_string(),
                "format" => value.as_str().is_some_and(|format| {
                    self.provider != Provider::OpenAi || FORMATS.contains(&format)
                }),
                "enum" => value.as_array().is_some_and(|values| !values.is_empty()),
                "properties" | "$defs" => value.is_object(),
                "required" => value.as_array().is_some_and(|keys| {
                    let is_new =
                        |index: usize| !keys.iter().take(index).any(|key| key == &keys[index]);
                    let declared = members.get("properties");
                    keys.iter().enumerate().all(|(index, key)| {
                        let key = key.as_str();
                        let known = key.is_some_and(|key| {
                            declared.is_none_or(|declared| declared.get(key).is_some())
                        });
                        known && is_new(index)
                    })
                }),
                "type"
                | "items"
                | "prefixItems"
                | "anyOf"
                | "additionalProperties"
                | "default"
                | "oneOf"
                | "allOf"
                | "title"
                | "const" => true,
                _ => false,
            };
            if !is_valid {
                let value = value.to_string().chars().take(80).collect::<String>();
                self.report.add(
                    place,
                    &format!("{keyword} is unknown or malformed: {value}"),
                );
            }
        }
    }
}
