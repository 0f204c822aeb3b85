//! Reads a JSON Schema: the combinators, the references and the bounds.
//!
//! Every keyword is read that any draft from 4 to 2020-12 has, and what cannot be held in a [`Node`]
//! is left out with a note and told in words. What comes out accepts everything that the original
//! accepts, except that a missing type is taken from the keywords (see [`Reader::inferred`]).

use serde_json::{Map, Value};

use super::meet::Work;
use super::node::{About, Form, Kind, Node, Type};
use super::note::{Change, Notes};
use super::read_rules;
use super::refs::{Found, References};
use super::words;

/// As deep is a schema read.
const MAX_DEPTH: usize = 48;
/// As many nodes may a schema have, with everything written out.
pub(super) const MAX_NODES: usize = 8_000;
/// How often a schema may hold itself where that is written out.
const MAX_REPEATS: usize = 1;
/// The largest default that is read, in nodes.
const MAX_DEFAULT_WEIGHT: usize = 32;
/// The longest example that is told, in characters.
const MAX_EXAMPLE_CHARS: usize = 80;

/// How references are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// How many references may be written out within each other.
    pub(super) max_references: usize,
    /// What is beyond that becomes a definition, or else is cut.
    pub(super) keeps_references: bool,
    /// Whether rules beside alternatives are written out in every alternative, or else the
    /// alternatives are left out.
    pub(super) distributes: bool,
}

/// A whole schema.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: Node,
    /// What [`Kind::Again`] means, by its number.
    pub(super) definitions: Vec<Node>,
}

/// Reads a schema, or nothing if it is too large in this reading.
pub(super) fn document(schema: &Value, reading: Reading) -> Option<(Document, Notes)> {
    let mut reader = Reader {
        references: References::new(schema),
        siblings: !is_old(schema),
        reading,
        work: Work {
            budget: MAX_NODES,
            ..Work::default()
        },
        targets: Vec::new(),
        stack: Vec::new(),
    };
    let root = reader.read(schema, "", 0);
    let mut definitions = Vec::new();
    while let Some((place, target)) = reader.targets.get(definitions.len()).cloned() {
        reader.stack = vec![place.clone()];
        let node = reader.read(target, &place, 1);
        definitions.push(node);
        if reader.work.exhausted {
            return None;
        }
    }
    let document = Document { root, definitions };
    (!reader.work.exhausted).then_some((document, reader.work.notes))
}

/// Whether what stands beside a `$ref` is nothing but decoration.
fn is_old(schema: &Value) -> bool {
    let draft = schema.get("$schema").and_then(Value::as_str);
    let old = ["draft-03", "draft-04", "draft-06", "draft-07"];
    draft.is_some_and(|draft| old.iter().any(|name| draft.contains(name)))
}

#[derive(Debug)]
pub(super) struct Reader<'a> {
    references: References<'a>,
    siblings: bool,
    reading: Reading,
    pub(super) work: Work,
    targets: Vec<(String, &'a Value)>,
    /// The places of what is being written out.
    stack: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn note(&mut self, place: &str, what: Change) {
        self.work.notes.add(place, what);
    }

    /// Leaves out a keyword.
    pub(super) fn drop_keyword(&mut self, place: &str, keyword: &str) {
        self.note(place, Change::Dropped(keyword.to_owned()));
    }

    /// Reads a schema that stands below another one.
    pub(super) fn read(&mut self, schema: &'a Value, place: &str, depth: usize) -> Node {
        if !self.work.charge(1 + place.len() / 64) {
            return Node::any(place);
        }
        if depth > MAX_DEPTH {
            self.note(place, Change::TooDeep);
            let mut node = Node::any(place);
            node.about
                .tell("It is nested too deeply to be described.".to_owned());
            return node;
        }
        match schema {
            Value::Bool(true) => Node::any(place),
            Value::Bool(false) => Node::never(place),
            Value::Object(members) => self.read_object(members, place, depth),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.note(place, Change::Malformed("schema".to_owned()));
                Node::any(place)
            }
        }
    }

    fn read_object(&mut self, members: &'a Map<String, Value>, place: &str, depth: usize) -> Node {
        if members.get("not").is_some_and(is_everything) {
            // So zod writes `undefined`.
            return Node::never(place);
        }
        let reference = members.get("$ref").and_then(Value::as_str);
        let mut node = if reference.is_some() && !self.siblings {
            Node::any(place)
        } else {
            read_rules::own_rules(self, members, place, depth)
        };
        let told = std::mem::replace(&mut node.about, self.about(members, place));
        node.about.complete(told);
        if let Some(reference) = reference {
            let target = self.follow(reference, place, depth);
            node = self.work.meet(&node, &target);
            if !self.siblings {
                return node;
            }
        }
        for (index, part) in parts(members, "allOf").iter().enumerate() {
            let part = self.read(part, &format!("{place}/allOf/{index}"), depth + 1);
            node = self.work.meet(&node, &part);
        }
        for keyword in ["anyOf", "oneOf"] {
            let parts = parts(members, keyword);
            if !parts.is_empty() {
                node = self.alternatives(&node, keyword, parts, depth);
            }
        }
        if members.get("nullable") == Some(&Value::Bool(true)) {
            node = read_rules::with_null(node);
        }
        node
    }

    /// The rules beside alternatives, written out in each of them.
    fn alternatives(
        &mut self,
        beside: &Node,
        keyword: &str,
        parts: &'a [Value],
        depth: usize,
    ) -> Node {
        let place = &beside.place;
        let mut node = Node::never(place);
        node.about = beside.about.clone();
        if !self.reading.distributes && !beside.forms.is_empty() {
            self.drop_keyword(place, keyword);
            (node.forms, node.open) = (beside.forms.clone(), beside.open);
            return node;
        }
        for (index, part) in parts.iter().enumerate() {
            let part_place = format!("{place}/{keyword}/{index}");
            let mut part = self.read(part, &part_place, depth + 1);
            let about = std::mem::take(&mut part.about);
            let (forms, open) = self.work.meet_forms(beside, &part);
            let mut met = Node::any(&part_place);
            (met.forms, met.open) = (forms, open);
            let mut met = self.inferred(met);
            if let Some(first) = met.forms.first_mut() {
                let described = std::mem::take(&mut first.about);
                first.about = about;
                first.about.complete(described);
            }
            node.forms.append(&mut met.forms);
            node.open |= met.open;
        }
        if node.open {
            // One alternative takes everything, so that the others say nothing.
            node.forms.clear();
        }
        if keyword == "oneOf" && may_overlap(&node.forms) {
            self.note(place, Change::OneOf);
        }
        node
    }

    /// Takes the types that a schema has rules about as those that it means: `{"minLength": 3}`
    /// accepts numbers too, but nobody means that.
    pub(super) fn inferred(&mut self, mut node: Node) -> Node {
        infer(&mut node, &mut self.work.notes);
        node
    }

    fn follow(&mut self, reference: &str, from: &str, depth: usize) -> Node {
        let shown = || words::cut(reference, 200).0;
        let (place, schema) = match self.references.find(reference, from) {
            Found::Schema(place, schema) => (place, schema),
            Found::Nothing => {
                self.note(from, Change::UnknownReference(shown()));
                return Node::any(from);
            }
            Found::Elsewhere => {
                self.note(from, Change::RemoteReference(shown()));
                return Node::any(from);
            }
        };
        let repeats = self.stack.iter().filter(|above| **above == place).count();
        // The document itself is being read all the time.
        let repeats = repeats + usize::from(place.is_empty());
        let is_deep = self.stack.len() >= self.reading.max_references;
        if self.reading.keeps_references && (repeats > 0 || is_deep) {
            return self.again(from, place, schema);
        }
        if repeats > MAX_REPEATS || is_deep {
            self.note(from, Change::Cut);
            let mut node = Node::any(from);
            node.about
                .tell("It has the same form as what is around it.".to_owned());
            return node;
        }
        self.stack.push(place.clone());
        let node = self.read(schema, &place, depth + 1);
        self.stack.pop();
        node
    }

    fn again(&mut self, from: &str, place: String, schema: &'a Value) -> Node {
        let known = self.targets.iter().position(|(known, _)| *known == place);
        let number = known.unwrap_or_else(|| {
            self.targets.push((place, schema));
            self.targets.len() - 1
        });
        let mut node = Node::never(from);
        node.forms = vec![Form::new(Kind::Again(number))];
        node
    }

    /// What a schema says to people, and what it says that a [`Node`] cannot hold.
    fn about(&mut self, members: &Map<String, Value>, place: &str) -> About {
        let text = |key: &str| {
            let text = members.get(key).and_then(Value::as_str).map(str::trim);
            text.filter(|text| !text.is_empty())
        };
        let title = text("title").filter(|title| is_telling(title, place));
        let description = text("description").or(title).unwrap_or_default();
        let room = self.work.charge(description.len() / 64);
        let is_small = |value: &&Value| {
            let limit = MAX_DEFAULT_WEIGHT;
            words::weight(value, limit) <= limit && words::is_shallow(value, limit)
        };
        let mut about = About {
            description: (room && !description.is_empty()).then(|| description.to_owned()),
            default: members.get("default").filter(is_small).cloned(),
            told: Vec::new(),
        };
        for (keyword, sentence) in [
            ("not", "Some values are excluded."),
            ("if", "Some rules depend on other values."),
            ("unevaluatedItems", "Not every further item is allowed."),
            ("unevaluatedProperties", "Not every other key is allowed."),
        ] {
            if members.contains_key(keyword) {
                self.drop_keyword(place, keyword);
                let told = match (keyword, members.get(keyword)) {
                    ("not", Some(not)) => not_told(not),
                    _ => None,
                };
                about.tell(told.unwrap_or_else(|| sentence.to_owned()));
            }
        }
        for keyword in ["$dynamicRef", "$recursiveRef"] {
            if members.contains_key(keyword) {
                self.drop_keyword(place, keyword);
            }
        }
        for keyword in ["contentEncoding", "contentMediaType"] {
            if let Some(content) = text(keyword) {
                about.tell(format!("The text is {}.", words::cut(content, 40).0));
            }
        }
        let examples = members.get("examples").and_then(Value::as_array);
        if let Some(examples) = examples.filter(|examples| !examples.is_empty()) {
            let examples = words::list(examples.iter().take(3));
            if examples.chars().count() <= MAX_EXAMPLE_CHARS {
                about.tell(format!("For example {examples}."));
            }
        }
        about
    }
}

/// See [`Reader::inferred`].
pub(super) fn infer(node: &mut Node, notes: &mut Notes) {
    if node.open && !node.forms.is_empty() {
        let types = node.forms.iter().filter_map(|form| form.kind.type_of());
        let types: Vec<&str> = types.map(Type::as_str).collect();
        notes.add(&node.place, Change::TypeInferred(types.join(" or ")));
        node.open = false;
    }
}

fn parts<'a>(members: &'a Map<String, Value>, keyword: &str) -> &'a [Value] {
    let parts = members.get(keyword).and_then(Value::as_array);
    parts.map_or(&[], Vec::as_slice)
}

fn is_everything(schema: &Value) -> bool {
    let is_empty = schema.as_object().is_some_and(Map::is_empty);
    is_empty || *schema == Value::Bool(true)
}

/// Whether a title says more than the key that it belongs to.
fn is_telling(title: &str, place: &str) -> bool {
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(|letter| letter.is_alphanumeric());
        letters.flat_map(char::to_lowercase).collect()
    };
    let key = place.rsplit('/').next().unwrap_or_default();
    !place.is_empty() && letters(title) != letters(key)
}

/// What is excluded, if that is a short list of values.
fn not_told(not: &Value) -> Option<String> {
    if let Some(value) = not.get("const") {
        return Some(format!("Must not be {}.", words::quoted(value)));
    }
    let values = not.get("enum").and_then(Value::as_array)?;
    Some(format!("Must not be any of {}.", words::list(values)))
}

/// Whether a value may fit two forms.
fn may_overlap(forms: &[Form]) -> bool {
    let types = |form: &Form| -> Vec<Type> {
        match &form.kind {
            Kind::Choice(_) => Vec::new(),
            kind => kind.type_of().into_iter().collect(),
        }
    };
    let all: Vec<Type> = forms.iter().flat_map(types).collect();
    let repeated = (1..all.len()).any(|index| all.iter().take(index).any(|one| *one == all[index]));
    let unknown = |form: &Form| matches!(form.kind, Kind::Again(_));
    let chosen = |form: &Form| match &form.kind {
        Kind::Choice(values) => values.iter().any(|value| all.contains(&Type::of(value))),
        _ => false,
    };
    repeated || (forms.len() > 1 && forms.iter().any(unknown)) || forms.iter().any(chosen)
}
