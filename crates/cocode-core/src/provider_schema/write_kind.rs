//! Writes what is about one type of value.

use std::collections::BTreeSet;

use serde_json::{Map, Number as JsonNumber, Value, json};

use super::dialect::Dialect;
use super::naming;
use super::node::{About, Array, Kind, Node, Number, Object, Rest, Text, Type};
use super::note::{Change, Unrepairable};
use super::settle::{add, join};
use super::way::{Field, ObjectWay, Way};
use super::words;
use super::write::{Level, Null, Variant, Writer, Written, not_strict};

/// The longest format that stays in a schema, in bytes.
const MAX_FORMAT_BYTES: usize = 40;

impl Writer<'_> {
    /// A list of values: those of one type are one alternative. Null is the caller's business.
    pub(super) fn choice(
        &mut self,
        values: &[Value],
        about: &About,
        place: &str,
        level: Level,
    ) -> Result<Vec<Variant>, Unrepairable> {
        let mut variants = Vec::new();
        for kind in [
            Type::Text,
            Type::Number,
            Type::Boolean,
            Type::Array,
            Type::Object,
        ] {
            let mine = values.iter().filter(|value| Type::of(value) == kind);
            let mine: Vec<&Value> = mine.collect();
            if mine.is_empty() {
                continue;
            }
            let mut about = about.clone();
            let mut written = Written {
                schema: Map::new(),
                way: Way::default(),
            };
            let is_nested = matches!(kind, Type::Array | Type::Object);
            let is_odd = self.dialect == Dialect::Gemini
                && !mine
                    .iter()
                    .all(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            let is_all = kind == Type::Boolean && mine.len() > 1;
            if is_nested || is_odd {
                if !is_all {
                    self.notes.add(place, Change::Dropped("enum".to_owned()));
                    about.tell(format!("One of {}.", words::list(mine.iter().copied())));
                }
            } else if !is_all {
                written.schema.insert("enum".to_owned(), json!(mine));
            }
            let whole = |value: &&Value| value.is_i64() || value.is_u64();
            match kind {
                Type::Array => {
                    written = self.array(&Array::any(place), place, &mut about, level)?;
                }
                Type::Object => {
                    written = self.object(&Object::any(), place, &mut about, level)?;
                }
                Type::Number if mine.iter().all(whole) => {
                    self.set_type(&mut written.schema, "integer");
                }
                kind => self.set_type(&mut written.schema, kind.as_str()),
            }
            let Written { schema, way } = written;
            variants.push(Variant { schema, way, about });
        }
        Ok(variants)
    }

    pub(super) fn text(
        &mut self,
        schema: &mut Map<String, Value>,
        text: &Text,
        about: &mut About,
        place: &str,
    ) {
        self.set_type(schema, Type::Text.as_str());
        let mut rules = Rules::new(self, schema, about, place);
        rules.count("minLength", text.min, "Has at least", "characters");
        rules.count("maxLength", text.max, "Has at most", "characters");
        if let Some(pattern) = &text.pattern {
            let is_fine = is_portable(pattern) && (rules.is_lenient() || !looks_around(pattern));
            let shown = words::cut(pattern, 100).0;
            let told = format!("Matches {shown} .");
            rules.add("pattern", json!(pattern), is_fine, told);
        }
        if let Some(format) = &text.format {
            let is_fine =
                rules.writer.dialect.takes_format(format) && format.len() <= MAX_FORMAT_BYTES;
            let told = format!("Format: {}.", words::cut(format, MAX_FORMAT_BYTES).0);
            rules.force("format", json!(format), is_fine, told);
        }
    }

    pub(super) fn number(
        &mut self,
        schema: &mut Map<String, Value>,
        number: &Number,
        about: &mut About,
        place: &str,
    ) {
        let name = if number.integer { "integer" } else { "number" };
        self.set_type(schema, name);
        let mut rules = Rules::new(self, schema, about, place);
        let Number {
            integer,
            min,
            max,
            above,
            below,
            multiple_of,
        } = number;
        let mut bounds = [("minimum", min.clone()), ("maximum", max.clone())];
        for (keyword, bound, word, step, index) in [
            ("exclusiveMinimum", above, "more", 1, 0),
            ("exclusiveMaximum", below, "less", -1, 1),
        ] {
            let Some(bound) = bound else { continue };
            let next = bound.as_i64().and_then(|bound| bound.checked_add(step));
            let inclusive = &mut bounds[index].1;
            let is_free = inclusive.is_none();
            if rules.writer.dialect.understands(keyword) {
                rules.add(keyword, json!(bound), true, String::new());
            } else if let (true, true, Some(next)) = (*integer, is_free, next) {
                *inclusive = Some(JsonNumber::from(next));
            } else {
                if is_free {
                    *inclusive = Some(bound.clone());
                }
                rules.add(
                    keyword,
                    json!(bound),
                    false,
                    format!("Must be {word} than {bound}."),
                );
            }
        }
        for (keyword, bound) in bounds {
            if let Some(bound) = bound {
                rules.add(keyword, json!(bound), true, String::new());
            }
        }
        if let Some(factor) = multiple_of {
            let told = format!("A multiple of {factor}.");
            rules.add("multipleOf", json!(factor), true, told);
        }
    }

    pub(super) fn array(
        &mut self,
        array: &Array,
        place: &str,
        about: &mut About,
        level: Level,
    ) -> Result<Written, Unrepairable> {
        let level = self.deeper(level, place)?;
        let mut schema = Map::new();
        self.set_type(&mut schema, Type::Array.as_str());
        let mut way = Way::default();
        let keeps_places = self.dialect == Dialect::Anthropic && !self.has_ways;
        if keeps_places && !array.prefix.is_empty() {
            let mut places = Vec::new();
            for node in &array.prefix {
                let written = self.node(node, level, Null::AsItIs)?;
                places.push(Value::Object(written.schema));
            }
            schema.insert("prefixItems".to_owned(), Value::Array(places));
            if !array.rest.is_never() && !array.rest.is_any() {
                let rest = self.node(&array.rest, level, Null::AsItIs)?;
                schema.insert("items".to_owned(), Value::Object(rest.schema));
            }
        } else {
            let items = self.shared_item(array, place, about);
            let items = self.node(&items, level, Null::AsItIs)?;
            schema.insert("items".to_owned(), Value::Object(items.schema));
            way.items = Some(Box::new(items.way));
        }
        let mut rules = Rules::new(self, &mut schema, about, place);
        rules.count("minItems", array.min, "Has at least", "items");
        rules.count("maxItems", array.max, "Has at most", "items");
        if array.unique {
            let told = "No item is there twice.".to_owned();
            rules.add("uniqueItems", json!(true), true, told);
        }
        Ok(Written { schema, way })
    }

    /// What all items of a list have in common.
    fn shared_item(&mut self, array: &Array, place: &str, about: &mut About) -> Node {
        if array.prefix.is_empty() {
            if array.rest.is_never() {
                // There are no items, so that it is all the same what they are.
                let mut item = Node::never(place);
                item.forms
                    .push(super::node::Form::new(Kind::Text(Text::default())));
                return item;
            }
            return Node::clone(&array.rest);
        }
        let mut item = Node::never(place);
        let mut told = Vec::new();
        for node in &array.prefix {
            told.push(super::outline::outline(node));
            join(&mut item, node);
        }
        if !array.rest.is_never() {
            join(&mut item, &array.rest);
        }
        item.about = About::default();
        let first = array.prefix.first();
        if !array.prefix.iter().all(|node| Some(node) == first) {
            self.notes.add(place, Change::TupleWidened);
        }
        about.tell(format!("In this order: {}.", told.join(", ")));
        let mut forms = Vec::new();
        for form in item.forms {
            add(&mut forms, form);
        }
        item.forms = forms;
        item
    }

    pub(super) fn object(
        &mut self,
        object: &Object,
        place: &str,
        about: &mut About,
        level: Level,
    ) -> Result<Written, Unrepairable> {
        let is_root = level == Level::ROOT;
        if self.dialect == Dialect::Gemini && object.properties.is_empty() && !is_root {
            // Such an object is refused.
            let (schema, way) = (Map::new(), Way::as_text());
            return Ok(Written { schema, way });
        }
        let below = self.deeper(level, place)?;
        let mut schema = Map::new();
        self.set_type(&mut schema, Type::Object.as_str());
        let mut object_way = ObjectWay::default();
        let mut properties = Map::new();
        let mut required = Vec::new();
        let taken: BTreeSet<String> = object.properties.keys().cloned().collect();
        for (key, node) in &object.properties {
            let shown = self.shown_key(key, &node.place, &taken);
            let is_required = object.required.contains(key);
            let presence = match (is_required, object.partly_required.contains(key)) {
                (true, _) => Presence::Required,
                (false, true) => Presence::PartlyRequired,
                (false, false) => Presence::Optional,
            };
            let (written, null_is_absent) = self.property(node, presence, below)?;
            if is_required || self.dialect == Dialect::OpenAiStrict {
                required.push(Value::String(shown.clone()));
            }
            properties.insert(shown.clone(), Value::Object(written.schema));
            let field = Field {
                original: key.clone(),
                way: written.way,
                null_is_absent,
            };
            object_way.fields.insert(shown, field);
            if is_required && let Some(values) = fixed_values(node) {
                object_way.fixed.insert(key.clone(), values);
            }
        }
        object_way.required.clone_from(&object.required);
        schema.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() || self.dialect == Dialect::OpenAiStrict {
            schema.insert("required".to_owned(), Value::Array(required));
        }
        object_way.rest = self.rest(&mut schema, object, about, place, below)?;
        let mut rules = Rules::new(self, &mut schema, about, place);
        rules.count("minProperties", object.min, "Has at least", "keys");
        rules.count("maxProperties", object.max, "Has at most", "keys");
        let mut way = Way::default();
        way.objects.push(object_way);
        Ok(Written { schema, way })
    }

    /// What holds for other keys, and the way of their values.
    fn rest(
        &mut self,
        schema: &mut Map<String, Value>,
        object: &Object,
        about: &mut About,
        place: &str,
        level: Level,
    ) -> Result<Way, Unrepairable> {
        let is_root = level == Level::ROOT.below();
        let keyword = "additionalProperties";
        let mut way = Way::default();
        match (self.dialect, &object.rest) {
            (Dialect::Gemini, Rest::Unsaid | Rest::Closed) => {}
            (Dialect::Gemini, Rest::Open(_)) => {
                self.notes.add(place, Change::Dropped(keyword.to_owned()));
                about.tell("Other keys are allowed, too.".to_owned());
            }
            (Dialect::OpenAiStrict, Rest::Open(_)) => {
                return Err(not_strict(
                    place,
                    "the object takes keys that are not listed",
                ));
            }
            (Dialect::OpenAiStrict, Rest::Unsaid) if object.properties.is_empty() && !is_root => {
                return Err(not_strict(place, "the object takes any keys"));
            }
            (Dialect::OpenAiStrict, Rest::Unsaid) => {
                self.notes.add(place, Change::Closed);
                schema.insert(keyword.to_owned(), json!(false));
            }
            (_, Rest::Closed) => {
                schema.insert(keyword.to_owned(), json!(false));
            }
            (_, Rest::Unsaid) => {}
            (_, Rest::Open(rest)) if rest.is_any() => {
                schema.insert(keyword.to_owned(), json!(true));
            }
            (_, Rest::Open(rest)) => {
                let written = self.node(rest, level, Null::AsItIs)?;
                schema.insert(keyword.to_owned(), Value::Object(written.schema));
                way = written.way;
            }
        }
        Ok(way)
    }

    /// A property, and whether null stands for its absence.
    fn property(
        &mut self,
        node: &Node,
        presence: Presence,
        level: Level,
    ) -> Result<(Written, bool), Unrepairable> {
        if presence == Presence::Required || self.dialect != Dialect::OpenAiStrict {
            return Ok((self.node(node, level, Null::AsItIs)?, false));
        }
        // The server itself says that null is the same as nothing, if that may be.
        let is_same = node.about.default == Some(Value::Null) && presence == Presence::Optional;
        if self.takes_null(node) {
            if !is_same {
                let reason = "a property can be null or absent, which may differ";
                return Err(not_strict(&node.place, reason));
            }
            return Ok((self.node(node, level, Null::AsItIs)?, true));
        }
        self.notes.add(&node.place, Change::NullIsAbsent);
        Ok((self.node(node, level, Null::Added)?, true))
    }

    fn shown_key(&mut self, key: &str, place: &str, taken: &BTreeSet<String>) -> String {
        if !self.dialect.limits_keys() || naming::is_legal_key(key) {
            return key.to_owned();
        }
        let shown = naming::of_key(key, taken);
        self.notes.add(place, Change::Renamed(shown.clone()));
        shown
    }

    fn deeper(&self, level: Level, place: &str) -> Result<Level, Unrepairable> {
        if self.dialect == Dialect::OpenAiStrict && level > Level::MAX_STRICT {
            return Err(not_strict(place, "it is nested more than 10 levels deep"));
        }
        Ok(level.below())
    }
}

/// Whether a property must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// In some alternatives.
    PartlyRequired,
    Optional,
}

/// Adds the rules of one value to its schema, or tells them.
struct Rules<'w, 'a, 's> {
    writer: &'w mut Writer<'a>,
    schema: &'s mut Map<String, Value>,
    about: &'s mut About,
    place: &'s str,
}

impl<'w, 'a, 's> Rules<'w, 'a, 's> {
    fn new(
        writer: &'w mut Writer<'a>,
        schema: &'s mut Map<String, Value>,
        about: &'s mut About,
        place: &'s str,
    ) -> Self {
        Self {
            writer,
            schema,
            about,
            place,
        }
    }

    /// Whether the provider takes every regular expression.
    fn is_lenient(&self) -> bool {
        !matches!(self.writer.dialect, Dialect::OpenAiStrict | Dialect::Gemini)
    }

    fn add(&mut self, keyword: &str, value: Value, is_fine: bool, told: String) {
        let is_fine = is_fine && self.writer.dialect.understands(keyword);
        self.force(keyword, value, is_fine, told);
    }

    fn force(&mut self, keyword: &str, value: Value, is_fine: bool, told: String) {
        if is_fine {
            self.schema.insert(keyword.to_owned(), value);
            return;
        }
        let change = Change::Dropped(keyword.to_owned());
        self.writer.notes.add(self.place, change);
        self.about.tell(told);
    }

    fn count(&mut self, keyword: &str, count: Option<u64>, beginning: &str, unit: &str) {
        if let Some(count) = count {
            let is_fine = i64::try_from(count).is_ok();
            let told = format!("{beginning} {count} {unit}.");
            self.add(keyword, json!(count), is_fine, told);
        }
    }
}

/// The values that a node has, if those are listed.
fn fixed_values(node: &Node) -> Option<Vec<Value>> {
    let values = node.forms.iter().map(|form| match &form.kind {
        Kind::Choice(values) => Some(values.clone()),
        _ => None,
    });
    let values: Option<Vec<Vec<Value>>> = values.collect();
    values
        .map(|values| values.concat())
        .filter(|values| !node.open && !values.is_empty())
}

/// Whether every engine reads a regular expression, as far as that is quickly told.
fn is_portable(pattern: &str) -> bool {
    let foreign = [
        "(?P", "(?i", "(?s", "(?m", "(?x", "(?u", "(?a", "(?#", "(?>", "(?-", "(?L",
    ];
    if foreign.iter().any(|beginning| pattern.contains(beginning)) {
        return false;
    }
    let mut open = 0_usize;
    let mut in_class = false;
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                None | Some('A' | 'Z' | 'z' | 'G' | 'h' | 'R' | 'X' | 'Q' | 'E') => return false,
                Some(_) => {}
            },
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => open += 1,
            ')' if !in_class => match open.checked_sub(1) {
                Some(left) => open = left,
                None => return false,
            },
            _ => {}
        }
    }
    open == 0 && !in_class
}

fn looks_around(pattern: &str) -> bool {
    ["(?=", "(?!", "(?<"]
        .iter()
        .any(|beginning| pattern.contains(beginning))
        || ('1'..='9').any(|digit| pattern.contains(&format!("\\{digit}")))
}
