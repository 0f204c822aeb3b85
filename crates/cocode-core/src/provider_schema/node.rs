//! A schema between reading and writing: alternatives that are each about one type of value.
//!
//! What a [`Node`] accepts is what any of its forms accepts and, while it is open, every value of a
//! type that no form is about. So `{}` is open without forms, `false` is neither, and
//! `{"minLength": 3}` is open with one form about text.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Number as JsonNumber, Value};

/// A schema.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    /// Where it is in the original, as a JSON pointer.
    pub(super) place: String,
    pub(super) about: About,
    pub(super) forms: Vec<Form>,
    pub(super) open: bool,
}

/// What people and models read.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct About {
    pub(super) description: Option<String>,
    pub(super) default: Option<Value>,
    /// Sentences about rules that the schema itself does not hold.
    pub(super) told: Vec<String>,
}

/// One alternative.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    pub(super) about: About,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Null,
    Boolean,
    Text(Text),
    Number(Number),
    Array(Array),
    Object(Object),
    /// One of these values.
    Choice(Vec<Value>),
    /// What the definition with this number accepts.
    Again(usize),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Text {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) pattern: Option<String>,
    pub(super) format: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Number {
    pub(super) integer: bool,
    pub(super) min: Option<JsonNumber>,
    pub(super) max: Option<JsonNumber>,
    pub(super) above: Option<JsonNumber>,
    pub(super) below: Option<JsonNumber>,
    pub(super) multiple_of: Option<JsonNumber>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Array {
    pub(super) prefix: Vec<Node>,
    pub(super) rest: Box<Node>,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
    pub(super) unique: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Object {
    pub(super) properties: BTreeMap<String, Node>,
    pub(super) required: BTreeSet<String>,
    /// Keys that are required in some of the alternatives that this was made of.
    pub(super) partly_required: BTreeSet<String>,
    pub(super) rest: Rest,
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// What holds for keys that are not listed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Rest {
    /// They are not spoken of, which allows them.
    Unsaid,
    /// They are forbidden.
    Closed,
    /// They are allowed, with such values.
    Open(Box<Node>),
}

/// The types of JSON. An integer is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Null,
    Boolean,
    Text,
    Number,
    Array,
    Object,
}

impl Node {
    /// Accepts every value.
    pub(super) fn any(place: &str) -> Self {
        Self {
            open: true,
            ..Self::never(place)
        }
    }

    /// Accepts no value.
    pub(super) fn never(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            about: About::default(),
            forms: Vec::new(),
            open: false,
        }
    }

    pub(super) fn is_any(&self) -> bool {
        self.open && self.forms.is_empty()
    }

    pub(super) fn is_never(&self) -> bool {
        !self.open && self.forms.is_empty()
    }

    pub(super) fn holds_again(&self) -> bool {
        let again = |form: &Form| matches!(form.kind, Kind::Again(_));
        self.forms.iter().any(again)
    }

    /// How many nodes this is, itself included.
    pub(super) fn weight(&self) -> usize {
        let below = self.forms.iter().map(|form| match &form.kind {
            Kind::Choice(values) => values.len(),
            kind => 1 + kind.below().into_iter().map(Self::weight).sum::<usize>(),
        });
        1 + below.sum::<usize>()
    }
}

impl Form {
    pub(super) fn new(kind: Kind) -> Self {
        let about = About::default();
        Self { about, kind }
    }
}

impl Array {
    pub(super) fn any(place: &str) -> Self {
        Self {
            prefix: Vec::new(),
            rest: Box::new(Node::any(place)),
            min: None,
            max: None,
            unique: false,
        }
    }

    /// What the item at an index must be.
    pub(super) fn at(&self, index: usize) -> &Node {
        self.prefix.get(index).unwrap_or(&self.rest)
    }
}

impl Object {
    pub(super) fn any() -> Self {
        Self {
            properties: BTreeMap::new(),
            required: BTreeSet::new(),
            partly_required: BTreeSet::new(),
            rest: Rest::Unsaid,
            min: None,
            max: None,
        }
    }
}

impl Object {
    /// The nodes right below.
    pub(super) fn below(&self) -> Vec<&Node> {
        let rest = match &self.rest {
            Rest::Open(rest) => Some(&**rest),
            Rest::Unsaid | Rest::Closed => None,
        };
        self.properties.values().chain(rest).collect()
    }
}

impl About {
    /// Adds a sentence, once.
    pub(super) fn tell(&mut self, sentence: String) {
        if !self.told.contains(&sentence) {
            self.told.push(sentence);
        }
    }

    /// Fills in what is missing from another.
    pub(super) fn complete(&mut self, other: Self) {
        let Self {
            description,
            default,
            told,
        } = other;
        self.description = self.description.take().or(description);
        self.default = self.default.take().or(default);
        for sentence in told {
            self.tell(sentence);
        }
    }
}

impl Kind {
    /// The type that this is about, unless it is about several.
    pub(super) fn type_of(&self) -> Option<Type> {
        match self {
            Self::Null => Some(Type::Null),
            Self::Boolean => Some(Type::Boolean),
            Self::Text(_) => Some(Type::Text),
            Self::Number(_) => Some(Type::Number),
            Self::Array(_) => Some(Type::Array),
            Self::Object(_) => Some(Type::Object),
            Self::Choice(_) | Self::Again(_) => None,
        }
    }
}

impl Kind {
    /// The nodes right below.
    pub(super) fn below(&self) -> Vec<&Node> {
        match self {
            Self::Array(array) => array.prefix.iter().chain([&*array.rest]).collect(),
            Self::Object(object) => object.below(),
            Self::Null
            | Self::Boolean
            | Self::Text(_)
            | Self::Number(_)
            | Self::Choice(_)
            | Self::Again(_) => Vec::new(),
        }
    }

    /// Does something to the nodes right below.
    pub(super) fn each_below(&mut self, change: &mut dyn FnMut(&mut Node)) {
        match self {
            Self::Array(array) => {
                array.prefix.iter_mut().for_each(&mut *change);
                change(&mut array.rest);
            }
            Self::Object(object) => {
                object.properties.values_mut().for_each(&mut *change);
                if let Rest::Open(rest) = &mut object.rest {
                    change(rest);
                }
            }
            Self::Null
            | Self::Boolean
            | Self::Text(_)
            | Self::Number(_)
            | Self::Choice(_)
            | Self::Again(_) => {}
        }
    }
}

impl Type {
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::String(_) => Self::Text,
            Value::Number(_) => Self::Number,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    /// As JSON Schema calls it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Text => "string",
            Self::Number => "number",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}
