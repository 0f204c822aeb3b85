//! Takes regular expressions out of a schema that cannot be matched in linear time.
//!
//! What is left never refuses what the whole schema allows. A pattern that only has to match can
//! simply go; but where the outcome is turned around or compared (`not`, `oneOf`, `if`,
//! `maxContains`), what depends on it is widened as well.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::limits::MAX_PATTERNS;

/// Keywords whose value is one schema, or in old drafts a list of them.
const SINGLES: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const MAPS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Removes patterns for which `is_supported` says no, and all beyond the limit. Returns how many
/// were removed.
pub(super) fn relax(schema: &mut Value, is_supported: impl Fn(&str) -> bool) -> usize {
    let mut work = Work {
        is_supported,
        known: HashMap::new(),
        removed: 0,
    };
    work.relaxed(schema);
    work.removed
}

/// Whether a schema may depend on a pattern that was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taint {
    None,
    Open,
}

impl Taint {
    fn or(self, other: Self) -> Self {
        if self == Self::Open { self } else { other }
    }
}

struct Work<F> {
    is_supported: F,
    known: HashMap<String, bool>,
    removed: usize,
}

impl<F: Fn(&str) -> bool> Work<F> {
    fn supports(&mut self, pattern: &str) -> bool {
        if let Some(known) = self.known.get(pattern) {
            return *known;
        }
        let supported = self.known.len() < MAX_PATTERNS && (self.is_supported)(pattern);
        self.known.insert(pattern.to_owned(), supported);
        supported
    }

    fn relaxed(&mut self, schema: &mut Value) -> Taint {
        let Value::Object(members) = schema else {
            return Taint::None;
        };
        let mut taints: HashMap<&str, Taint> = HashMap::new();
        for keyword in SINGLES.into_iter().chain(LISTS) {
            let taint = match members.get_mut(keyword) {
                Some(Value::Array(schemas)) => self.all(schemas.iter_mut()),
                Some(schema) => self.relaxed(schema),
                None => Taint::None,
            };
            taints.insert(keyword, taint);
        }
        for keyword in MAPS {
            if let Some(Value::Object(schemas)) = members.get_mut(keyword) {
                let taint = self.all(schemas.values_mut());
                taints.insert(keyword, taint);
            }
        }
        let own = self.own_patterns(members);
        widen(members, |keyword| taints.get(keyword) == Some(&Taint::Open));
        // Where a reference leads is not followed: it may lead to a pattern.
        let refers = REFERENCES.iter().any(|name| members.contains_key(*name));
        let below = ["$defs", "definitions"];
        let inner = LISTS.into_iter().chain(SINGLES).chain(MAPS);
        let inner = inner.filter(|keyword| !below.contains(keyword));
        let start = if refers { Taint::Open } else { own };
        inner.fold(start, |taint, keyword| {
            taint.or(taints.get(keyword).copied().unwrap_or(Taint::None))
        })
    }

    fn all<'a>(&mut self, schemas: impl Iterator<Item = &'a mut Value>) -> Taint {
        schemas.fold(Taint::None, |taint, schema| self.relaxed(schema).or(taint))
    }

    fn own_patterns(&mut self, members: &mut Map<String, Value>) -> Taint {
        let mut taint = Taint::None;
        let pattern = members.get("pattern").and_then(Value::as_str);
        if pattern.is_some_and(|pattern| !self.supports(pattern)) {
            members.remove("pattern");
            self.removed += 1;
            taint = Taint::Open;
        }
        if let Some(Value::Object(patterns)) = members.get_mut("patternProperties") {
            let before = patterns.len();
            patterns.retain(|pattern, _| self.supports(pattern));
            let removed = before - patterns.len();
            if removed > 0 {
                // Any property might have been allowed by what is gone, so all are.
                patterns.insert(String::new(), json!({}));
                self.removed += removed;
                taint = Taint::Open;
            }
        }
        taint
    }
}

/// Replaces what asks for a schema *not* to fit, where that is no longer known.
fn widen(members: &mut Map<String, Value>, is_open: impl Fn(&str) -> bool) {
    if is_open("not") {
        members.remove("not");
    }
    if is_open("contains") {
        members.remove("maxContains");
    }
    if is_open("oneOf")
        && let Some(branches) = members.remove("oneOf")
    {
        also(members, json!({ "anyOf": branches }));
    }
    if is_open("if")
        && let Some(condition) = members.remove("if")
    {
        let positive = members.remove("then").unwrap_or_else(|| json!({}));
        let negative = members.remove("else").unwrap_or_else(|| json!({}));
        also(
            members,
            json!({ "anyOf": [{ "allOf": [condition, positive] }, negative] }),
        );
    }
}

fn also(members: &mut Map<String, Value>, schema: Value) {
    match members.get_mut("allOf") {
        Some(Value::Array(all)) => all.push(schema),
        _ => {
            members.insert("allOf".to_owned(), Value::Array(vec![schema]));
        }
    }
}
