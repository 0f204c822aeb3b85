//! Reads what a schema says to people: types, descriptions, names of properties.
//!
//! Only for words in explanations. What fits and what does not is the validator's matter.

use serde_json::{Map, Value};

use super::limits::MAX_COMPARED;
use super::pointer::percent_decoded;
use super::words::{cut_description, either, shown, type_name};

/// How many schemas are looked at for one description.
const MAX_STEPS: usize = 64;

/// A schema document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outline<'a>(pub(super) &'a Value);

impl<'a> Outline<'a> {
    /// The schema at this place, if it is an object.
    pub(super) fn at(self, pointer: &str) -> Option<&'a Map<String, Value>> {
        self.0.pointer(pointer)?.as_object()
    }

    /// The schema itself and all that it is combined with.
    fn parts(self, schema: &'a Map<String, Value>) -> Vec<&'a Map<String, Value>> {
        let mut parts = vec![schema];
        let mut next = 0;
        while let Some(part) = parts.get(next).copied() {
            next += 1;
            if parts.len() > MAX_STEPS {
                break;
            }
            parts.extend(self.target(part));
            for keyword in ["allOf", "anyOf", "oneOf"] {
                let list = part.get(keyword).and_then(Value::as_array);
                parts.extend(list.into_iter().flatten().filter_map(Value::as_object));
            }
        }
        parts
    }

    /// Where the reference of this schema leads within the document.
    fn target(self, schema: &Map<String, Value>) -> Option<&'a Map<String, Value>> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.at(&percent_decoded(pointer))
    }

    /// The names of the properties that are described here.
    pub(super) fn property_names(self, schema: &'a Map<String, Value>) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        for part in self.parts(schema) {
            let properties = part.get("properties").and_then(Value::as_object);
            let properties = properties.into_iter().flatten().take(MAX_COMPARED);
            names.extend(properties.map(|(name, _)| name.as_str()));
        }
        names.sort_unstable();
        names.dedup();
        names.truncate(MAX_COMPARED);
        names
    }

    /// The schema of one property.
    pub(super) fn property(
        self,
        schema: &'a Map<String, Value>,
        name: &str,
    ) -> Option<&'a Map<String, Value>> {
        let mut parts = self.parts(schema).into_iter();
        parts.find_map(|part| part.get("properties")?.get(name)?.as_object())
    }

    /// What a value has to be, in few words, and what it is for. Nothing if the schema says neither.
    pub(super) fn purpose(self, schema: &'a Map<String, Value>) -> Option<String> {
        let kind = self.kind(schema, &mut { MAX_STEPS });
        let texts = self.parts(schema).into_iter();
        let description = texts
            .filter_map(|part| part.get("description").or(part.get("title")))
            .find_map(Value::as_str)
            .map(cut_description)
            .filter(|text| !text.is_empty());
        match (kind, description) {
            (Some(kind), Some(text)) => Some(format!("{kind} ({text})")),
            (Some(one), None) | (None, Some(one)) => Some(one),
            (None, None) => None,
        }
    }

    fn kind(self, schema: &'a Map<String, Value>, steps: &mut usize) -> Option<String> {
        *steps = steps.checked_sub(1)?;
        if let Some(value) = schema.get("const") {
            return Some(shown(value));
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let values: Vec<String> = values.iter().take(MAX_COMPARED).map(shown).collect();
            return Some(either(&values)).filter(|text| !text.is_empty());
        }
        match schema.get("type") {
            Some(Value::String(name)) if name == "array" => {
                let items = schema.get("items").and_then(Value::as_object);
                let items = items.and_then(|items| self.kind(items, steps));
                return Some(match items {
                    Some(items) => format!("an array, each item {items}"),
                    None => "an array".to_owned(),
                });
            }
            Some(Value::String(name)) => return Some(type_name(name).to_owned()),
            Some(Value::Array(names)) => {
                let names = names.iter().filter_map(Value::as_str).map(type_name);
                let names: Vec<String> = names.map(str::to_owned).collect();
                return Some(either(&names)).filter(|text| !text.is_empty());
            }
            _ => {}
        }
        for keyword in ["anyOf", "oneOf"] {
            let list = schema.get(keyword).and_then(Value::as_array);
            let list = list.into_iter().flatten().filter_map(Value::as_object);
            let kinds: Vec<String> = list.filter_map(|one| self.kind(one, steps)).collect();
            if !kinds.is_empty() {
                return Some(either(&kinds));
            }
        }
        let all = schema.get("allOf").and_then(Value::as_array);
        let all = all.into_iter().flatten().filter_map(Value::as_object);
        let target = self.target(schema);
        all.chain(target).find_map(|part| self.kind(part, steps))
    }
}

/// What people call this schema: its title, or the name under which it is referred to.
pub(super) fn label(schema: &Map<String, Value>) -> Option<String> {
    let title = schema.get("title").and_then(Value::as_str);
    let name = || schema.get("$ref")?.as_str()?.rsplit('/').next();
    let label = title.or_else(name).map(cut_description);
    label.filter(|label| !label.is_empty() && !label.starts_with('#'))
}
