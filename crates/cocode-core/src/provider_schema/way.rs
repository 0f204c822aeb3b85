//! The way between arguments as a model gives them and as the server wants them.
//!
//! A [`Way`] depends on nothing but the type of a value, the keys of an object and, where a schema is
//! strict and has several objects, the keys that tell those apart.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

/// How many definitions may be followed without going deeper into the value.
const MAX_FOLLOWED: usize = 64;

/// What is done to one value.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Way {
    /// The model gives a text that holds the value as JSON.
    pub(super) text: bool,
    pub(super) objects: Vec<ObjectWay>,
    pub(super) items: Option<Box<Self>>,
    /// Goes on as the definition with this number.
    pub(super) again: Option<usize>,
}

/// What is done to one kind of object.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ObjectWay {
    /// By the key that the model sees.
    pub(super) fields: BTreeMap<String, Field>,
    /// What is done to the values of other keys.
    pub(super) rest: Way,
    /// The keys that the server needs.
    pub(super) required: BTreeSet<String>,
    /// The values of needed keys, where there are only some.
    pub(super) fixed: BTreeMap<String, Vec<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) original: String,
    pub(super) way: Way,
    /// Null stands for its absence.
    pub(super) null_is_absent: bool,
}

/// The ways of a whole tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Ways {
    pub(super) root: Way,
    pub(super) definitions: Vec<Way>,
}

impl Ways {
    /// What a model gave, as the server wants it.
    pub(super) fn back(&self, given: Value) -> Value {
        self.go(&self.root, given, Direction::Back)
    }

    /// What the server wants, as a model would give it.
    pub(super) fn forth(&self, original: Value) -> Value {
        self.go(&self.root, original, Direction::Forth)
    }

    fn go(&self, way: &Way, value: Value, direction: Direction) -> Value {
        let way = self.followed(way);
        if way.text {
            return match (direction, value) {
                // A model that does not write JSON means the text itself.
                (Direction::Back, Value::String(text)) => {
                    serde_json::from_str(&text).unwrap_or(Value::String(text))
                }
                (Direction::Back, value) => value,
                (Direction::Forth, value) => Value::String(value.to_string()),
            };
        }
        match value {
            Value::Array(items) => match &way.items {
                Some(below) => {
                    let items = items.into_iter();
                    items.map(|item| self.go(below, item, direction)).collect()
                }
                None => Value::Array(items),
            },
            Value::Object(members) => {
                let fits = |object: &&ObjectWay| object.fits(&members, direction);
                let found = way.objects.iter().find(fits).or(way.objects.first());
                match (found, direction) {
                    (None, _) => Value::Object(members),
                    (Some(object), Direction::Back) => self.object_back(object, members),
                    (Some(object), Direction::Forth) => self.object_forth(object, members),
                }
            }
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
        }
    }

    fn followed<'w>(&'w self, way: &'w Way) -> &'w Way {
        let mut way = way;
        for _ in 0..MAX_FOLLOWED {
            match way.again.and_then(|number| self.definitions.get(number)) {
                Some(next) => way = next,
                None => break,
            }
        }
        way
    }

    fn object_back(&self, object: &ObjectWay, members: Map<String, Value>) -> Value {
        let mut original = Map::new();
        for (key, value) in members {
            let Some(field) = object.fields.get(&key) else {
                // What a model spells in the server's own way stays, unless it is there already.
                let value = self.go(&object.rest, value, Direction::Back);
                original.entry(key).or_insert(value);
                continue;
            };
            if field.null_is_absent && value.is_null() {
                continue;
            }
            let value = self.go(&field.way, value, Direction::Back);
            original.insert(field.original.clone(), value);
        }
        Value::Object(original)
    }

    fn object_forth(&self, object: &ObjectWay, mut members: Map<String, Value>) -> Value {
        let mut given = Map::new();
        for (key, field) in &object.fields {
            match members.remove(&field.original) {
                Some(value) if field.null_is_absent && value.is_null() => {
                    given.insert(key.clone(), value);
                }
                Some(value) => {
                    let value = self.go(&field.way, value, Direction::Forth);
                    given.insert(key.clone(), value);
                }
                None if field.null_is_absent => {
                    given.insert(key.clone(), Value::Null);
                }
                None => {}
            }
        }
        for (key, value) in members {
            let value = self.go(&object.rest, value, Direction::Forth);
            given.entry(key).or_insert(value);
        }
        Value::Object(given)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Back,
    Forth,
}

/// Two ways differ for the same value.
#[derive(Debug)]
pub(super) struct Conflict;

impl Way {
    pub(super) fn as_text() -> Self {
        Self {
            text: true,
            ..Self::default()
        }
    }

    /// The one way for what either is for.
    pub(super) fn merged(mut self, other: Self) -> Result<Self, Conflict> {
        if self == other {
            return Ok(self);
        }
        let is_deep = |way: &Self| !way.objects.is_empty() || way.items.is_some();
        let clash = (self.again.is_some() && (other.again.is_some() || is_deep(&other)))
            || (other.again.is_some() && is_deep(&self));
        if self.text != other.text || clash {
            return Err(Conflict);
        }
        self.again = self.again.or(other.again);
        self.items = match (self.items, other.items) {
            (Some(one), Some(other)) => Some(Box::new(one.merged(*other)?)),
            (one, other) => one.or(other),
        };
        for object in other.objects {
            self.objects = match self.objects.pop() {
                Some(known) => vec![known.merged(object)?],
                None => vec![object],
            };
        }
        Ok(self)
    }

    /// The way for what either is for, where objects stay apart as long as they can be told apart.
    pub(super) fn gathered(mut self, mut other: Self) -> Result<Self, Conflict> {
        let theirs = std::mem::take(&mut other.objects);
        if self.again.is_some() && !theirs.is_empty() {
            return Err(Conflict);
        }
        for object in theirs {
            if self.objects.contains(&object) {
                continue;
            }
            if self
                .objects
                .iter()
                .any(|known| !known.differs_from(&object))
            {
                return Err(Conflict);
            }
            self.objects.push(object);
        }
        let mine = std::mem::take(&mut self.objects);
        if other.again.is_some() && !mine.is_empty() {
            return Err(Conflict);
        }
        let mut merged = self.merged(other)?;
        merged.objects = mine;
        Ok(merged)
    }
}

impl ObjectWay {
    fn merged(mut self, other: Self) -> Result<Self, Conflict> {
        for (key, field) in other.fields {
            let merged = match self.fields.remove(&key) {
                None => field,
                Some(known) if known.original == field.original => Field {
                    way: known.way.merged(field.way)?,
                    ..known
                },
                Some(_) => return Err(Conflict),
            };
            self.fields.insert(key, merged);
        }
        self.rest = self.rest.merged(other.rest)?;
        Ok(self)
    }

    /// Whether no object can be meant by both.
    fn differs_from(&self, other: &Self) -> bool {
        let needs_more = |one: &Self, other: &Self| {
            let unknown = |key: &String| !other.fields.contains_key(key);
            one.required.iter().any(unknown)
        };
        let is_fixed_otherwise = self.fixed.iter().any(|(key, values)| {
            let theirs = other.fixed.get(key);
            theirs.is_some_and(|theirs| !theirs.iter().any(|value| values.contains(value)))
        });
        is_fixed_otherwise || needs_more(self, other) || needs_more(other, self)
    }

    /// Whether an object is likely of this kind.
    fn fits(&self, members: &Map<String, Value>, direction: Direction) -> bool {
        let known = members.keys().all(|key| self.fields.contains_key(key));
        let complete = match direction {
            Direction::Back => self.fields.keys().all(|key| members.contains_key(key)),
            Direction::Forth => self.required.iter().all(|key| members.contains_key(key)),
        };
        let fixed = self.fixed.iter().all(|(key, values)| {
            let value = members.get(key);
            value.is_some_and(|value| values.contains(value))
        });
        known && complete && fixed
    }
}
