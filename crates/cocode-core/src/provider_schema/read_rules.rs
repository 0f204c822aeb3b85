//! Reads the keywords that are about values of one type, and lists of allowed values.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Number as JsonNumber, Value};

use super::node::{Array, Form, Kind, Node, Number, Object, Rest, Text};
use super::note::Change;
use super::read::{MAX_NODES, Reader};
use super::refs::joined;
use super::words;

const TEXT: &[&str] = &["minLength", "maxLength", "pattern", "format"];
const NUMBER: &[&str] = &[
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
];
const ARRAY: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
];
const OBJECT: &[&str] = &[
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "patternProperties",
    "propertyNames",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
];
/// The longest pattern that is kept, in bytes.
const MAX_PATTERN_BYTES: usize = 2_000;
/// The deepest value that a list of values may hold.
const MAX_CHOICE_DEPTH: usize = 16;

/// What the keywords of a schema say, apart from combinators and references.
pub(super) fn own_rules<'a>(
    reader: &mut Reader<'a>,
    members: &'a Map<String, Value>,
    place: &str,
    depth: usize,
) -> Node {
    let mut rules = Rules {
        reader,
        members,
        place,
        depth,
        told: Vec::new(),
    };
    let mut node = rules.typed();
    let told = std::mem::take(&mut rules.told);
    if let Some(choice) = rules.choice() {
        node = reader.work.meet(&choice, &node);
    }
    for sentence in told {
        node.about.tell(sentence);
    }
    node
}

/// The same, or null.
pub(super) fn with_null(mut node: Node) -> Node {
    let takes_null = |form: &Form| match &form.kind {
        Kind::Null => true,
        Kind::Choice(values) => values.contains(&Value::Null),
        _ => false,
    };
    if !node.open && !node.forms.iter().any(takes_null) {
        node.forms.push(Form::new(Kind::Null));
    }
    node
}

/// Whether a schema of keys says nothing: keys are texts already.
fn takes_every_text(schema: &Value) -> bool {
    match schema {
        Value::Bool(takes) => *takes,
        Value::Object(members) => members.iter().all(|(keyword, value)| {
            let is_text = keyword == "type" && value == "string";
            is_text || matches!(keyword.as_str(), "title" | "description" | "$comment")
        }),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => false,
    }
}

struct Rules<'r, 'a> {
    reader: &'r mut Reader<'a>,
    members: &'a Map<String, Value>,
    place: &'r str,
    depth: usize,
    told: Vec<String>,
}

impl Rules<'_, '_> {
    fn typed(&mut self) -> Node {
        let mut node = Node::any(self.place);
        let types = self.types();
        node.open = types.is_none();
        let mut wanted = types.unwrap_or_else(|| {
            let has = |words: &[&str]| words.iter().any(|word| self.members.contains_key(*word));
            let groups = [
                (TEXT, "string"),
                (NUMBER, "number"),
                (ARRAY, "array"),
                (OBJECT, "object"),
            ];
            let present = groups.iter().filter(|(words, _)| has(words));
            present.map(|(_, name)| *name).collect()
        });
        if wanted.contains(&"number") {
            wanted.retain(|name| *name != "integer");
        }
        for name in wanted {
            let kind = match name {
                "null" => Kind::Null,
                "boolean" => Kind::Boolean,
                "string" => Kind::Text(self.text()),
                "array" => Kind::Array(self.array()),
                "object" => Kind::Object(self.object()),
                _ => Kind::Number(self.number(name == "integer")),
            };
            node.forms.push(Form::new(kind));
        }
        node
    }

    /// The types that are named, or nothing if any is allowed.
    fn types(&mut self) -> Option<Vec<&'static str>> {
        let named = match self.members.get("type")? {
            Value::String(name) => vec![name.as_str()],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        let mut types = Vec::new();
        for name in &named {
            let known = match *name {
                "null" => "null",
                "boolean" => "boolean",
                "string" => "string",
                "integer" => "integer",
                "number" => "number",
                "array" => "array",
                "object" => "object",
                _ => {
                    self.malformed("type");
                    self.told
                        .push(format!("Of type {}.", words::cut(name, 40).0));
                    return None;
                }
            };
            if !types.contains(&known) {
                types.push(known);
            }
        }
        if types.is_empty() {
            self.malformed("type");
            return None;
        }
        Some(types)
    }

    fn choice(&mut self) -> Option<Node> {
        let mut node = Node::never(self.place);
        let values = match (self.members.get("const"), self.members.get("enum")) {
            (Some(value), _) => {
                if !self.reader.work.charge(words::weight(value, MAX_NODES)) {
                    return None;
                }
                vec![value.clone()]
            }
            (None, Some(list @ Value::Array(values))) => {
                if !words::is_shallow(list, MAX_CHOICE_DEPTH) {
                    self.reader.drop_keyword(self.place, "enum");
                    return None;
                }
                if !self.reader.work.charge(words::weight(list, MAX_NODES)) {
                    return None;
                }
                let mut seen = BTreeSet::new();
                let new = values.iter().filter(|value| seen.insert(value.to_string()));
                new.cloned().collect()
            }
            (None, Some(_)) => {
                self.malformed("enum");
                return None;
            }
            (None, None) => return None,
        };
        if !values
            .iter()
            .all(|value| words::is_shallow(value, MAX_CHOICE_DEPTH))
        {
            self.reader.drop_keyword(self.place, "enum");
            return None;
        }
        if !values.is_empty() {
            node.forms.push(Form::new(Kind::Choice(values)));
        }
        Some(node)
    }

    fn text(&mut self) -> Text {
        let string = |key: &str| self.members.get(key).and_then(Value::as_str);
        let pattern = string("pattern").filter(|pattern| pattern.len() <= MAX_PATTERN_BYTES);
        let format = string("format").filter(|format| format.len() <= MAX_PATTERN_BYTES);
        Text {
            pattern: pattern.map(str::to_owned),
            format: format.map(str::to_owned),
            min: self.count("minLength").filter(|least| *least > 0),
            max: self.count("maxLength"),
        }
    }

    fn number(&mut self, integer: bool) -> Number {
        let mut number = Number {
            integer,
            min: self.numeric("minimum"),
            max: self.numeric("maximum"),
            above: None,
            below: None,
            multiple_of: self.numeric("multipleOf"),
        };
        let is_positive = |factor: &JsonNumber| factor.as_f64().is_some_and(|factor| factor > 0.0);
        number.multiple_of = number.multiple_of.filter(is_positive);
        // In draft 4 these say how another one is meant.
        match self.members.get("exclusiveMinimum") {
            Some(Value::Bool(true)) => number.above = number.min.take(),
            Some(Value::Bool(false)) | None => {}
            Some(_) => number.above = self.numeric("exclusiveMinimum"),
        }
        match self.members.get("exclusiveMaximum") {
            Some(Value::Bool(true)) => number.below = number.max.take(),
            Some(Value::Bool(false)) | None => {}
            Some(_) => number.below = self.numeric("exclusiveMaximum"),
        }
        number
    }

    fn array(&mut self) -> Array {
        let mut array = Array::any(self.place);
        array.min = self.count("minItems").filter(|least| *least > 0);
        array.max = self.count("maxItems");
        array.unique = self.members.get("uniqueItems") == Some(&Value::Bool(true));
        let (prefix, rest) = match (self.members.get("prefixItems"), self.members.get("items")) {
            (_, Some(Value::Array(prefix))) => (Some(("items", prefix)), "additionalItems"),
            (Some(Value::Array(prefix)), _) => (Some(("prefixItems", prefix)), "items"),
            (_, _) => (None, "items"),
        };
        if let Some((keyword, prefix)) = prefix {
            for (index, item) in prefix.iter().enumerate() {
                let place = format!("{}/{keyword}/{index}", self.place);
                array
                    .prefix
                    .push(self.reader.read(item, &place, self.depth + 1));
            }
        }
        if let Some(rest) = self.below(rest) {
            *array.rest = rest;
        }
        let length = u64::try_from(array.prefix.len()).unwrap_or(u64::MAX);
        if array.max.is_some_and(|most| most <= length) {
            array.rest = Box::new(Node::never(self.place));
        }
        if self.members.contains_key("contains") {
            self.reader.drop_keyword(self.place, "contains");
            self.told
                .push("Some items must be of a certain form.".to_owned());
        }
        array
    }

    fn object(&mut self) -> Object {
        let mut object = Object {
            properties: self.properties(),
            required: self.required(),
            partly_required: BTreeSet::new(),
            rest: match self.below("additionalProperties") {
                None => Rest::Unsaid,
                Some(rest) if rest.is_never() => Rest::Closed,
                Some(rest) => Rest::Open(Box::new(rest)),
            },
            min: self.count("minProperties").filter(|least| *least > 0),
            max: self.count("maxProperties"),
        };
        if let Some(Value::Object(patterns)) = self.members.get("patternProperties") {
            self.reader.drop_keyword(self.place, "patternProperties");
            let keys = words::names(patterns.keys());
            self.told.push(format!("Keys can also match {keys}."));
            if object.rest != Rest::Unsaid {
                object.rest = Rest::Open(Box::new(Node::any(self.place)));
            }
        }
        self.misplaced_items();
        for keyword in ["dependencies", "dependentSchemas"] {
            if self.members.contains_key(keyword) {
                self.reader.drop_keyword(self.place, keyword);
            }
        }
        let names = self.members.get("propertyNames");
        if let Some(names) = names.filter(|names| !takes_every_text(names)) {
            self.reader.drop_keyword(self.place, "propertyNames");
            let pattern = names.get("pattern").and_then(Value::as_str);
            let pattern = pattern.map(|pattern| words::cut(pattern, 60).0);
            let told = pattern.map(|pattern| format!("Keys must match `{pattern}`."));
            self.told.extend(told);
        }
        if let Some(Value::Object(dependent)) = self.members.get("dependentRequired") {
            self.reader.drop_keyword(self.place, "dependentRequired");
            for (key, needed) in dependent.iter().take(8) {
                let needed = needed.as_array().into_iter().flatten();
                let needed = words::list(needed);
                let key = words::cut(key, 60).0;
                self.told.push(format!("`{key}` needs {needed} too."));
            }
        }
        object
    }

    /// Some write the keys of an object below `items`, where they mean nothing. They are told, because
    /// nothing else does, and demand nothing.
    fn misplaced_items(&mut self) {
        let is_object = self.members.get("type") == Some(&Value::from("object"));
        let items = self.members.get("items").filter(|_| is_object);
        let keys = items.and_then(|items| items.get("properties")?.as_object());
        if let Some(keys) = keys.filter(|keys| !keys.is_empty()) {
            self.reader.drop_keyword(self.place, "items");
            let keys = words::names(keys.keys());
            self.told.push(format!("May have {keys}."));
        }
    }

    fn properties(&mut self) -> BTreeMap<String, Node> {
        let mut properties = BTreeMap::new();
        match self.members.get("properties") {
            Some(Value::Object(members)) => {
                let place = joined(self.place, "properties");
                for (key, schema) in members {
                    let node = self
                        .reader
                        .read(schema, &joined(&place, key), self.depth + 1);
                    properties.insert(key.clone(), node);
                }
            }
            Some(_) => self.malformed("properties"),
            None => {}
        }
        properties
    }

    fn required(&mut self) -> BTreeSet<String> {
        let Some(keys) = self.members.get("required") else {
            return BTreeSet::new();
        };
        if !self.reader.work.charge(words::weight(keys, MAX_NODES)) {
            return BTreeSet::new();
        }
        let keys = keys
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        keys.map(str::to_owned).collect()
    }

    /// The schema that a keyword has as its value.
    fn below(&mut self, keyword: &str) -> Option<Node> {
        let schema = self.members.get(keyword)?;
        let place = joined(self.place, keyword);
        Some(self.reader.read(schema, &place, self.depth + 1))
    }

    fn count(&mut self, keyword: &str) -> Option<u64> {
        let value = self.members.get(keyword)?;
        // `3.0` is a whole number, too.
        let text = value.to_string();
        let whole = text.strip_suffix(".0").unwrap_or(&text);
        let count = whole.parse().ok().filter(|_| value.is_number());
        if count.is_none() {
            self.malformed(keyword);
        }
        count
    }

    fn numeric(&mut self, keyword: &str) -> Option<JsonNumber> {
        if let Value::Number(number) = self.members.get(keyword)? {
            return Some(number.clone());
        }
        self.malformed(keyword);
        None
    }

    fn malformed(&mut self, keyword: &str) {
        let change = Change::Malformed(keyword.to_owned());
        self.reader.note(self.place, change);
    }
}
