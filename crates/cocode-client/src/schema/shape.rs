//! Measures how much work a schema can ask for on one value, before anything is checked by it.
//!
//! Every object of the document counts as a schema here, whether it is one or not, and a reference
//! that can not be followed exactly leads to everything it may mean. So the measure may be too
//! high, but never too low.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::error::SchemaError;
use super::limits::{MAX_CHAIN, MAX_FAN};
use super::pointer::percent_decoded;

/// Keywords whose list of schemas applies to the same value.
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords whose schema applies to the same value.
const SINGLES: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords whose members are schemas that apply to the same value.
const MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// Keywords that lead elsewhere.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Schemas with a name of their own.
const MAX_NAMED: usize = 1000;

/// How a schema is built.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The longest chain of schemas that apply to one value, one within the other.
    pub(super) chain: u32,
    /// How many regular expressions there are.
    pub(super) patterns: usize,
}

/// Measures a document, or says that it asks for too much.
pub(super) fn measure(root: &Value) -> Result<Shape, SchemaError> {
    let mut objects = Vec::new();
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                objects.push(value);
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    let members = objects.iter().filter_map(|object| object.as_object());
    let patterns = members.map(patterns_of).sum();
    let named: Vec<&Value> = objects
        .iter()
        .copied()
        .filter(|one| is_named(one))
        .collect();
    // Each of them is looked at for each reference.
    if named.len() > MAX_NAMED {
        return Err(SchemaError::TooIntricate);
    }
    let mut survey = Survey {
        root,
        named,
        known: HashMap::with_capacity(objects.len()),
    };
    let mut chain = 0;
    for object in objects {
        chain = chain.max(survey.extent(object, 0)?.chain);
    }
    Ok(Shape { chain, patterns })
}

fn patterns_of(members: &Map<String, Value>) -> usize {
    let own = members.get("pattern").is_some_and(Value::is_string);
    let names = members.get("patternProperties").and_then(Value::as_object);
    usize::from(own) + names.map_or(0, Map::len)
}

fn is_named(object: &Value) -> bool {
    has_own_pointers(object) || has_any(object, &["$anchor", "$dynamicAnchor"])
}

/// Whether pointers within this object count from the object itself.
fn has_own_pointers(object: &Value) -> bool {
    has_any(object, &["$id", "id", "$recursiveAnchor"])
}

/// Whether one of these keywords is there. A property of that name would be a schema, not a text.
fn has_any(object: &Value, keywords: &[&str]) -> bool {
    let mut values = keywords.iter().filter_map(|keyword| object.get(keyword));
    values.any(|value| value.is_string() || value.is_boolean())
}

/// What one schema asks for on one value.
#[derive(Clone, Copy)]
struct Extent {
    chain: u32,
    fan: u64,
}

struct Survey<'a> {
    root: &'a Value,
    /// The objects that can be referred to by a name.
    named: Vec<&'a Value>,
    known: HashMap<*const Value, Extent>,
}

impl<'a> Survey<'a> {
    fn extent(&mut self, schema: &'a Value, depth: u32) -> Result<Extent, SchemaError> {
        // A schema that leads back to itself without going deeper into the value ends here, too.
        if depth > MAX_CHAIN {
            return Err(SchemaError::TooIntricate);
        }
        let Value::Object(members) = schema else {
            return Ok(Extent { chain: 1, fan: 1 });
        };
        if let Some(known) = self.known.get(&std::ptr::from_ref(schema)) {
            // The way to a known schema counts as well.
            return if known.chain.saturating_add(depth) > MAX_CHAIN {
                Err(SchemaError::TooIntricate)
            } else {
                Ok(*known)
            };
        }
        let (mut chain, mut fan) = (0, 1_u64);
        for next in self.same_value(members) {
            let extent = self.extent(next, depth + 1)?;
            chain = chain.max(extent.chain);
            fan = fan.saturating_add(extent.fan);
        }
        if fan > MAX_FAN {
            return Err(SchemaError::TooIntricate);
        }
        let extent = Extent {
            chain: chain + 1,
            fan,
        };
        self.known.insert(std::ptr::from_ref(schema), extent);
        Ok(extent)
    }

    /// The schemas that apply to the same value as the one with these members.
    fn same_value(&self, members: &'a Map<String, Value>) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let get = |keyword: &&str| members.get(*keyword);
        for list in LISTS.iter().filter_map(get).filter_map(Value::as_array) {
            found.extend(list);
        }
        found.extend(SINGLES.iter().filter_map(get));
        for map in MAPS.iter().filter_map(get).filter_map(Value::as_object) {
            found.extend(map.values().filter(|schema| schema.is_object()));
        }
        for reference in REFERENCES.iter().filter_map(get).filter_map(Value::as_str) {
            self.follow(reference, &mut found);
        }
        found
    }

    fn follow(&self, reference: &str, found: &mut Vec<&'a Value>) {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_decoded(fragment);
        if fragment.is_empty() || fragment.starts_with('/') {
            let is_own = document.is_empty() || is_named(self.root);
            let elsewhere = self.named.iter().copied();
            let elsewhere =
                elsewhere.filter(|one| !std::ptr::eq(*one, self.root) && has_own_pointers(one));
            let starts = is_own.then_some(self.root).into_iter().chain(elsewhere);
            found.extend(starts.filter_map(|start| start.pointer(&fragment)));
            return;
        }
        let is_meant = |one: &&&Value| {
            ["$anchor", "$dynamicAnchor", "$id", "id"]
                .iter()
                .any(|name| {
                    let name = one.get(name).and_then(Value::as_str);
                    name.is_some_and(|name| name.trim_start_matches('#') == fragment)
                })
        };
        found.extend(self.named.iter().filter(is_meant));
    }
}
