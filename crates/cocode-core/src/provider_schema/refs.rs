//! Finds what a `$ref` means within one document. Nothing is ever fetched.

use std::collections::BTreeMap;

use serde_json::Value;

/// As many values are searched for names of schemas.
const MAX_SEARCHED: usize = 100_000;
/// As deep is searched for names of schemas.
const MAX_SEARCHED_DEPTH: usize = 128;
/// As many named schemas are known.
const MAX_NAMES: usize = 1_000;
/// The longest place of a named schema, in bytes.
const MAX_PLACE_BYTES: usize = 4_096;

/// Where the named schemas of a document are.
#[derive(Debug)]
pub(super) struct References<'a> {
    root: &'a Value,
    /// Places of schemas with an `$id`, by that.
    ids: BTreeMap<String, String>,
    /// Places by `$anchor`, with the place of the document that they are in.
    anchors: BTreeMap<String, Vec<String>>,
    /// How many of both there are.
    names: usize,
}

#[derive(Debug)]
struct Step<'a> {
    before: Option<usize>,
    name: Name<'a>,
    depth: usize,
}

#[derive(Debug)]
enum Name<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

/// What a reference leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// This schema, at this place.
    Schema(String, &'a Value),
    /// Nothing that there is.
    Nothing,
    /// Another document.
    Elsewhere,
}

impl<'a> References<'a> {
    pub(super) fn new(root: &'a Value) -> Self {
        let (ids, anchors) = (BTreeMap::new(), BTreeMap::new());
        let mut references = Self {
            root,
            ids,
            anchors,
            names: 0,
        };
        references.search();
        references
    }

    /// Follows a reference that stands at a place.
    pub(super) fn find(&self, reference: &str, from: &str) -> Found<'a> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if document.is_empty() {
            self.base_of(from)
        } else {
            match self.document(document) {
                Some(place) => place,
                None => return Found::Elsewhere,
            }
        };
        let Some(fragment) = percent_decoded(fragment) else {
            return Found::Nothing;
        };
        let place = if fragment.is_empty() || fragment.starts_with('/') {
            Some(format!("{base}{fragment}"))
        } else {
            let places = self.anchors.get(&fragment).into_iter().flatten();
            let mut here = places.filter(|place| self.base_of(place) == base);
            here.next().cloned()
        };
        let found = place.and_then(|place| {
            let schema = self.root.pointer(&place)?;
            Some((place, schema))
        });
        match found {
            Some((place, schema)) => Found::Schema(place, schema),
            None => Found::Nothing,
        }
    }

    /// The place of the innermost schema with an `$id` that a place is in.
    fn base_of(&self, place: &str) -> &str {
        let around = self.ids.values().filter(|id| is_within(place, id));
        around.max_by_key(|id| id.len()).map_or("", String::as_str)
    }

    fn document(&self, name: &str) -> Option<&str> {
        if let Some(place) = self.ids.get(name) {
            return Some(place);
        }
        // A relative reference means its sibling; who is meant is only known by its end.
        let ending = format!("/{}", name.trim_start_matches("./").trim_start_matches('/'));
        let mut alike = self.ids.iter().filter(|(id, _)| id.ends_with(&ending));
        alike.next().map(|(_, place)| place.as_str())
    }

    fn search(&mut self) {
        // Each step knows the one before it, and only names are worth spelling out how to get there.
        let mut steps: Vec<Step<'a>> = vec![Step {
            before: None,
            name: Name::Root,
            depth: 0,
        }];
        let mut left = vec![(0, self.root, true)];
        while let Some((step, value, is_schema)) = left.pop() {
            let depth = steps.get(step).map_or(0, |step| step.depth) + 1;
            if is_schema {
                self.note_names(&steps, step, value);
            }
            if depth > MAX_SEARCHED_DEPTH {
                continue;
            }
            let mut push = |name: Name<'a>, value: &'a Value, is_schema: bool| {
                if steps.len() < MAX_SEARCHED && (value.is_object() || value.is_array()) {
                    left.push((steps.len(), value, is_schema));
                    let before = Some(step);
                    steps.push(Step {
                        before,
                        name,
                        depth,
                    });
                }
            };
            match value {
                Value::Object(members) => {
                    for (key, member) in members {
                        if !(is_schema && is_data(key)) {
                            let below = !(is_schema && is_map_of_schemas(key));
                            push(Name::Key(key), member, below);
                        }
                    }
                }
                Value::Array(members) => {
                    for (index, member) in members.iter().enumerate() {
                        push(Name::Index(index), member, true);
                    }
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        for places in self.anchors.values_mut() {
            places.sort();
        }
    }

    fn note_names(&mut self, steps: &[Step<'a>], step: usize, schema: &Value) {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        let names = ["$id", "id", "$anchor", "$dynamicAnchor"];
        if !names.iter().any(|name| text(name).is_some()) {
            return;
        }
        let Some(place) = spelled_out(steps, step) else {
            return;
        };
        self.names += 1;
        if self.names <= MAX_NAMES {
            self.note_names_at(&place, schema);
        }
    }

    fn note_names_at(&mut self, place: &str, schema: &Value) {
        let text = |key: &str| schema.get(key).and_then(Value::as_str);
        for id in [text("$id"), text("id")].into_iter().flatten() {
            match id.strip_prefix('#') {
                // So draft-07 names a schema.
                Some(anchor) => self.anchor(anchor, place),
                None if text("$id") == Some(id) => {
                    let id = id.trim_end_matches('#').to_owned();
                    self.ids.entry(id).or_insert_with(|| place.to_owned());
                }
                None => {}
            }
        }
        for anchor in [text("$anchor"), text("$dynamicAnchor")]
            .into_iter()
            .flatten()
        {
            self.anchor(anchor, place);
        }
    }

    fn anchor(&mut self, name: &str, place: &str) {
        let places = self.anchors.entry(name.to_owned()).or_default();
        places.push(place.to_owned());
    }
}

/// The place of a member.
pub(super) fn joined(place: &str, key: &str) -> String {
    let key = key.replace('~', "~0").replace('/', "~1");
    format!("{place}/{key}")
}

fn spelled_out(steps: &[Step<'_>], last: usize) -> Option<String> {
    let mut names = Vec::new();
    let mut next = steps.get(last);
    let mut length = 0;
    while let Some(step) = next {
        let name = match step.name {
            Name::Root => break,
            Name::Key(key) => joined("", key),
            Name::Index(index) => format!("/{index}"),
        };
        length += name.len();
        if length > MAX_PLACE_BYTES {
            return None;
        }
        names.push(name);
        next = step.before.and_then(|before| steps.get(before));
    }
    names.reverse();
    Some(names.concat())
}

fn is_within(place: &str, around: &str) -> bool {
    let rest = place.strip_prefix(around);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_data(key: &str) -> bool {
    matches!(key, "const" | "enum" | "default" | "examples" | "example")
}

fn is_map_of_schemas(key: &str) -> bool {
    matches!(
        key,
        "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas"
    )
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
