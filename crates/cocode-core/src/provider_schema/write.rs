//! Writes a schema in the dialect of a provider, with the way between its arguments and the server's.
//!
//! Here alternatives are put together; what is about one type is in `write_kind`.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::dialect::Dialect;
use super::naming;
use super::node::{About, Form, Kind, Node, Object, Type};
use super::note::{Change, Notes, Unrepairable};
use super::outline::outline;
use super::read::Document;
use super::settle;
use super::way::{Way, Ways};
use super::words;

/// The longest default that stays in a schema, in bytes.
const MAX_DEFAULT_BYTES: usize = 200;

/// A schema and the way of its values.
pub(super) struct Written {
    pub(super) schema: Map<String, Value>,
    pub(super) way: Way,
}

/// One alternative.
pub(super) struct Variant {
    pub(super) schema: Map<String, Value>,
    pub(super) way: Way,
    pub(super) about: About,
}

/// Writes one tool.
pub(super) struct Writer<'a> {
    pub(super) dialect: Dialect,
    pub(super) notes: &'a mut Notes,
    definitions: &'a [Node],
    names: Vec<String>,
    /// Whether arguments differ at all between the model and the server.
    pub(super) has_ways: bool,
}

impl<'a> Writer<'a> {
    pub(super) fn new(
        dialect: Dialect,
        document: &'a Document,
        arguments: &Object,
        notes: &'a mut Notes,
    ) -> Self {
        let definitions = &document.definitions;
        let mut names = Vec::new();
        let mut taken = BTreeSet::new();
        for node in definitions {
            let name = naming::of_definition(&node.place, &taken);
            taken.insert(name.clone());
            names.push(name);
        }
        let has_ways = match dialect {
            Dialect::OpenAiStrict | Dialect::Gemini => true,
            Dialect::Anthropic => {
                has_odd_key(arguments) || definitions.iter().any(node_has_odd_key)
            }
            Dialect::OpenAi | Dialect::Plain => false,
        };
        Self {
            dialect,
            notes,
            definitions,
            names,
            has_ways,
        }
    }

    /// Writes the schema of the arguments, and adds what is to be told of them.
    pub(super) fn arguments(
        &mut self,
        object: &Object,
        told: &mut Vec<String>,
    ) -> Result<(Value, Ways), Unrepairable> {
        let mut about = About::default();
        let Written { mut schema, way } = self.object(object, "", &mut about, Level::ROOT)?;
        told.extend(about.told);
        let mut ways = Ways {
            root: way,
            definitions: Vec::new(),
        };
        let mut written = Map::new();
        let needed = settle::needed(object, self.definitions);
        let definitions = self.definitions.iter().zip(self.names.clone());
        for (number, (node, name)) in definitions.enumerate() {
            if !needed.contains(&number) {
                ways.definitions.push(Way::default());
                continue;
            }
            let Written { schema, way } = self.node(node, Level::ROOT.below(), Null::AsItIs)?;
            written.insert(name, Value::Object(schema));
            ways.definitions.push(way);
        }
        if !written.is_empty() {
            schema.insert("$defs".to_owned(), Value::Object(written));
        }
        if !self.has_ways {
            ways = Ways::default();
        }
        Ok((Value::Object(schema), ways))
    }

    /// Writes one value.
    pub(super) fn node(
        &mut self,
        node: &Node,
        level: Level,
        null: Null,
    ) -> Result<Written, Unrepairable> {
        if node.open || node.is_never() {
            // What nothing fits is left out before, unless finding that takes too long.
            return self.anything(node);
        }
        let mut variants = Vec::new();
        let mut takes_null = null == Null::Added;
        for form in &node.forms {
            if form.kind == Kind::Null {
                takes_null = true;
                continue;
            }
            if let Kind::Choice(values) = &form.kind {
                takes_null |= values.contains(&Value::Null);
            }
            let mut written = self.form(form, &node.place, level)?;
            variants.append(&mut written);
        }
        if self.dialect == Dialect::Gemini {
            return Ok(self.gemini(node, variants, takes_null));
        }
        let way = self.way_of(&variants, &node.place)?;
        let Some(way) = way else {
            return self.anything(node);
        };
        let mut about = node.about.clone();
        let mut schema = match variants.len() {
            1 => {
                let mut schema = Map::new();
                for variant in variants {
                    about.complete(variant.about);
                    schema = self.or_null(variant.schema, takes_null);
                }
                schema
            }
            _ => self.any_of(variants, takes_null),
        };
        let is_reference = schema.contains_key("$ref");
        self.describe(&mut schema, &about, &node.place);
        self.default(&mut schema, &about);
        if is_reference && schema.len() > 1 {
            // OpenAI refuses a reference that has anything beside it.
            let reference = schema.remove("$ref").unwrap_or_default();
            schema.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
        }
        Ok(Written { schema, way })
    }

    /// One form, in as many alternatives as it takes.
    fn form(
        &mut self,
        form: &Form,
        place: &str,
        level: Level,
    ) -> Result<Vec<Variant>, Unrepairable> {
        let mut about = form.about.clone();
        let mut schema = Map::new();
        let mut way = Way::default();
        match &form.kind {
            Kind::Null => return Ok(Vec::new()),
            Kind::Choice(values) => return self.choice(values, &about, place, level),
            Kind::Boolean => self.set_type(&mut schema, Type::Boolean.as_str()),
            Kind::Text(text) => self.text(&mut schema, text, &mut about, place),
            Kind::Number(number) => self.number(&mut schema, number, &mut about, place),
            Kind::Array(array) => {
                Written { schema, way } = self.array(array, place, &mut about, level)?;
            }
            Kind::Object(object) => {
                Written { schema, way } = self.object(object, place, &mut about, level)?;
            }
            Kind::Again(number) => {
                let name = self.names.get(*number).map_or("", String::as_str);
                schema.insert("$ref".to_owned(), json!(format!("#/$defs/{name}")));
                way.again = Some(*number);
            }
        }
        Ok(vec![Variant { schema, way, about }])
    }

    /// The way of all alternatives, or nothing where there is none but to take any value.
    fn way_of(&mut self, variants: &[Variant], place: &str) -> Result<Option<Way>, Unrepairable> {
        let mut all = Way::default();
        if !self.has_ways {
            return Ok(Some(all));
        }
        let is_strict = self.dialect == Dialect::OpenAiStrict;
        for variant in variants {
            let way = variant.way.clone();
            let merged = if is_strict {
                all.gathered(way)
            } else {
                all.merged(way)
            };
            match merged {
                Ok(merged) => all = merged,
                Err(_) if is_strict => {
                    return Err(not_strict(place, "two alternatives cannot be told apart"));
                }
                Err(_) => {
                    self.notes.add(place, Change::FormsMerged);
                    return Ok(None);
                }
            }
        }
        Ok(Some(all))
    }

    /// A value that can be anything.
    fn anything(&mut self, node: &Node) -> Result<Written, Unrepairable> {
        match self.dialect {
            Dialect::OpenAiStrict => Err(not_strict(&node.place, "any value goes")),
            Dialect::Gemini => Ok(self.as_text(node)),
            Dialect::OpenAi | Dialect::Anthropic | Dialect::Plain => {
                let mut schema = Map::new();
                self.describe(&mut schema, &node.about, &node.place);
                self.default(&mut schema, &node.about);
                let way = Way::default();
                Ok(Written { schema, way })
            }
        }
    }

    /// A text that holds the value as JSON.
    fn as_text(&mut self, node: &Node) -> Written {
        self.notes.add(&node.place, Change::JsonText);
        let mut about = node.about.clone();
        if let [form] = node.forms.as_slice() {
            about.complete(form.about.clone());
        }
        about
            .told
            .insert(0, format!("Write JSON text: {}.", outline(node)));
        let mut schema = Map::new();
        self.set_type(&mut schema, Type::Text.as_str());
        self.describe(&mut schema, &about, &node.place);
        let way = Way::as_text();
        Written { schema, way }
    }

    fn gemini(&mut self, node: &Node, variants: Vec<Variant>, takes_null: bool) -> Written {
        if variants.iter().any(|variant| variant.way.text) {
            return self.as_text(node);
        }
        let Ok(Some(way)) = self.way_of(&variants, &node.place) else {
            return self.as_text(node);
        };
        let is_union = variants.len() > 1;
        let mut schemas = Vec::new();
        let mut node_about = Some(node.about.clone());
        for variant in variants {
            let mut schema = variant.schema;
            let mut about = node_about.take().unwrap_or_default();
            if is_union
                && let (Some(all), Some(one)) = (&about.description, &variant.about.description)
            {
                about.description = Some(format!("{all} {one}"));
            }
            about.complete(variant.about);
            if takes_null && schemas.is_empty() {
                schema.insert("nullable".to_owned(), json!(true));
            }
            self.describe(&mut schema, &about, &node.place);
            schemas.push(schema);
        }
        let schema = match (schemas.len(), schemas.pop()) {
            (1, Some(only)) => only,
            (_, Some(last)) => {
                schemas.push(last);
                // Nothing else may stand beside it.
                let mut schema = Map::new();
                schema.insert("anyOf".to_owned(), json!(schemas));
                schema
            }
            (_, None) => {
                let mut about = node.about.clone();
                about.tell("Always null.".to_owned());
                let mut schema = Map::new();
                self.set_type(&mut schema, Type::Text.as_str());
                schema.insert("nullable".to_owned(), json!(true));
                self.describe(&mut schema, &about, &node.place);
                schema
            }
        };
        Written { schema, way }
    }

    /// The same schema, or null.
    fn or_null(&self, mut schema: Map<String, Value>, takes_null: bool) -> Map<String, Value> {
        if !takes_null {
            return schema;
        }
        let scalar = schema.get("type").and_then(Value::as_str);
        let scalar = scalar.filter(|name| !matches!(*name, "object" | "array"));
        if let Some(name) = scalar.filter(|_| self.dialect.has_type_lists()) {
            let types = json!([name, "null"]);
            schema.insert("type".to_owned(), types);
            if let Some(Value::Array(values)) = schema.get_mut("enum") {
                values.push(Value::Null);
            }
            return schema;
        }
        let mut union = Map::new();
        union.insert("anyOf".to_owned(), json!([schema, { "type": "null" }]));
        union
    }

    fn any_of(&mut self, variants: Vec<Variant>, takes_null: bool) -> Map<String, Value> {
        let mut types = Vec::new();
        let mut schemas = Vec::new();
        let mut are_types = self.dialect.has_type_lists();
        for variant in variants {
            let mut schema = variant.schema;
            let is_reference = schema.contains_key("$ref");
            if !is_reference {
                self.describe(&mut schema, &variant.about, "");
            }
            are_types &= schema.len() == 1;
            types.extend(schema.get("type").cloned());
            schemas.push(Value::Object(schema));
        }
        if takes_null {
            types.push(json!("null"));
            schemas.push(json!({ "type": "null" }));
        }
        let mut schema = Map::new();
        match (schemas.len(), schemas.pop()) {
            (1, Some(Value::Object(only))) => return only,
            (length, _) if are_types && length == types.len() => {
                schema.insert("type".to_owned(), Value::Array(types));
            }
            (_, last) => {
                schemas.extend(last);
                schema.insert("anyOf".to_owned(), Value::Array(schemas));
            }
        }
        schema
    }

    /// Whether null is among the values, as far as definitions tell.
    pub(super) fn takes_null(&self, node: &Node) -> bool {
        let mut left = vec![node];
        let mut seen = BTreeSet::new();
        while let Some(node) = left.pop() {
            for form in &node.forms {
                match &form.kind {
                    Kind::Null => return true,
                    Kind::Choice(values) if values.contains(&Value::Null) => return true,
                    Kind::Again(number) if seen.insert(*number) => {
                        left.extend(self.definitions.get(*number));
                    }
                    _ => {}
                }
            }
        }
        false
    }

    pub(super) fn set_type(&self, schema: &mut Map<String, Value>, name: &str) {
        let name = match self.dialect {
            Dialect::Gemini => name.to_ascii_uppercase(),
            _ => name.to_owned(),
        };
        schema.insert("type".to_owned(), Value::String(name));
    }

    pub(super) fn describe(&mut self, schema: &mut Map<String, Value>, about: &About, place: &str) {
        let mut told = about.told.clone();
        let own = about.description.as_deref().unwrap_or_default();
        let is_said = own.to_lowercase().contains("default");
        let default = about.default.as_ref();
        let default = default.filter(|value| !value.is_null() && !is_said);
        if matches!(self.dialect, Dialect::OpenAiStrict | Dialect::Gemini)
            && let Some(default) = default
        {
            told.insert(0, format!("Default: {}.", words::quoted(default)));
        }
        if let Some(described) = words::of_value(about.description.as_deref(), &told) {
            if described.is_cut {
                self.notes.add(place, Change::DescriptionCut);
            }
            schema.insert("description".to_owned(), Value::String(described.text));
        }
    }

    fn default(&self, schema: &mut Map<String, Value>, about: &About) {
        if matches!(self.dialect, Dialect::OpenAiStrict | Dialect::Gemini) || self.has_ways {
            return;
        }
        let short = |value: &&Value| value.to_string().len() <= MAX_DEFAULT_BYTES;
        if let Some(default) = about.default.as_ref().filter(short) {
            schema.insert("default".to_owned(), default.clone());
        }
    }
}

/// How deep in a schema something is: objects and lists count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(usize);

impl Level {
    pub(super) const ROOT: Self = Self(1);
    /// As deep a strict schema may be.
    pub(super) const MAX_STRICT: Self = Self(10);

    pub(super) fn below(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Whether null is one more value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Null {
    AsItIs,
    Added,
}

pub(super) fn not_strict(place: &str, reason: &str) -> Unrepairable {
    Unrepairable::NotStrict {
        place: place.to_owned(),
        reason: reason.to_owned(),
    }
}

fn has_odd_key(object: &Object) -> bool {
    let is_odd = |key: &String| !naming::is_legal_key(key);
    object.properties.keys().any(is_odd) || object.below().into_iter().any(node_has_odd_key)
}

fn node_has_odd_key(node: &Node) -> bool {
    node.forms.iter().any(|form| match &form.kind {
        Kind::Object(object) => has_odd_key(object),
        kind => kind.below().into_iter().any(node_has_odd_key),
    })
}
