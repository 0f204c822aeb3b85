//! A tool's input schema, read only as far as arguments on a command line need it.

use cocode_client::RawJson;
use serde_json::Value;

use super::object::{members, text_of};
use crate::text::plain;

/// How many references and combinations are followed before a schema counts as endless.
const MAX_DEPTH: usize = 16;

/// Choices that are named in one description.
const MAX_CHOICES_SHOWN: usize = 12;

/// The schema of a tool's arguments.
#[derive(Debug)]
pub(crate) struct InputSchema {
    root: Value,
    /// The names of the arguments in the order of the server.
    order: Vec<String>,
}

/// One argument that a schema describes.
#[derive(Debug)]
pub(crate) struct Property<'a> {
    pub(crate) name: &'a str,
    pub(crate) schema: &'a Value,
    pub(crate) required: bool,
}

/// What a schema says about a name.
pub(crate) enum Lookup<'a> {
    /// It is an argument of this schema.
    Known(&'a Value),
    /// Anything may be sent.
    Free,
    /// Others are described and this is not, though nothing forbids it: most likely a mistake.
    Undescribed,
    /// There is no such argument.
    Unknown,
}

/// One of the forms that a value may have.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form<'a> {
    /// One of these values.
    Choice(Vec<&'a Value>),
    Null,
    Boolean,
    Integer,
    Number,
    /// With the schema of its items.
    Array(Option<&'a Value>),
    Object,
    String,
    /// Nothing is said.
    Any,
}

impl InputSchema {
    pub(crate) fn parse(raw: &RawJson) -> Result<Self, serde_json::Error> {
        let root: Value = raw.decode()?;
        let properties = members(raw.as_str())?;
        let properties = properties
            .iter()
            .find(|(key, _)| text_of(key) == "properties");
        let properties = properties.and_then(|(_, value)| members(value.get()).ok());
        let order = properties
            .unwrap_or_default()
            .iter()
            .map(|(key, _)| text_of(key))
            .collect();
        Ok(Self { root, order })
    }

    /// All arguments, in the server's order.
    pub(crate) fn properties(&self) -> Vec<Property<'_>> {
        let mut found = self.described_in(&self.root);
        let place = |name: &str| self.order.iter().position(|other| other == name);
        found.sort_by_key(|property| place(property.name).unwrap_or(usize::MAX));
        found
    }

    fn described_in<'a>(&'a self, schema: &'a Value) -> Vec<Property<'a>> {
        let mut found: Vec<Property<'_>> = Vec::new();
        let parts = self.parts(schema, 0);
        for part in &parts {
            let Some(Value::Object(properties)) = part.get("properties") else {
                continue;
            };
            for (name, schema) in properties {
                if !found.iter().any(|property| property.name == name) {
                    let required = false;
                    found.push(Property {
                        name,
                        schema,
                        required,
                    });
                }
            }
        }
        let required = self.required_in(schema);
        for property in &mut found {
            property.required = required.contains(&property.name);
        }
        found
    }

    /// The members of a value that is an object, or of the items of a list of objects.
    pub(crate) fn members_of<'a>(&'a self, schema: &'a Value) -> Vec<Property<'a>> {
        let forms = self.forms(schema);
        let items = forms.iter().find_map(|form| match form {
            Form::Array(items) => *items,
            _ => None,
        });
        self.described_in(items.unwrap_or(schema))
    }

    /// The names that have to be there.
    pub(crate) fn required(&self) -> Vec<&str> {
        self.required_in(&self.root)
    }

    fn required_in<'a>(&'a self, schema: &'a Value) -> Vec<&'a str> {
        let parts = self.parts(schema, 0);
        let lists = parts
            .iter()
            .filter_map(|part| part.get("required")?.as_array());
        let mut names: Vec<&str> = lists.flatten().filter_map(Value::as_str).collect();
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(*name);
                true
            }
        });
        names
    }

    pub(crate) fn lookup(&self, name: &str) -> Lookup<'_> {
        let parts = self.parts(&self.root, 0);
        let known = parts
            .iter()
            .find_map(|part| part.get("properties")?.get(name));
        if let Some(schema) = known {
            return Lookup::Known(schema);
        }
        // Patterns and alternatives may know the name; the server will tell.
        let open = parts.iter().any(|part| {
            let elsewhere = part.get("$ref").is_some() && self.resolve(part).is_none();
            elsewhere
                || [
                    "patternProperties",
                    "anyOf",
                    "oneOf",
                    "if",
                    "dependentSchemas",
                ]
                .iter()
                .any(|keyword| part.get(keyword).is_some())
        });
        let described = || parts.iter().any(|part| part.get("properties").is_some());
        match self.root.get("additionalProperties") {
            Some(Value::Bool(false)) if !open => Lookup::Unknown,
            Some(schema @ Value::Object(_)) if !open => Lookup::Known(schema),
            None if !open && described() => Lookup::Undescribed,
            _ => Lookup::Free,
        }
    }

    /// The forms that a value of this schema may have; none if nothing fits.
    pub(crate) fn forms<'a>(&'a self, schema: &'a Value) -> Vec<Form<'a>> {
        let mut forms = self.forms_at(schema, 0);
        let mut seen: Vec<Form<'_>> = Vec::new();
        forms.retain(|form| {
            !seen.contains(form) && {
                seen.push(form.clone());
                true
            }
        });
        forms
    }

    fn forms_at<'a>(&'a self, schema: &'a Value, depth: usize) -> Vec<Form<'a>> {
        let Value::Object(members) = schema else {
            let fits_anything = schema.as_bool() != Some(false);
            return if fits_anything {
                vec![Form::Any]
            } else {
                Vec::new()
            };
        };
        if depth > MAX_DEPTH {
            return vec![Form::Any];
        }
        if let Some(target) = self.resolve(schema) {
            return self.forms_at(target, depth + 1);
        }
        if let Some(value) = members.get("const") {
            return vec![Form::Choice(vec![value])];
        }
        if let Some(Value::Array(values)) = members.get("enum") {
            return vec![Form::Choice(values.iter().collect())];
        }
        let own = own_forms(schema);
        let alternatives = members.get("anyOf").or_else(|| members.get("oneOf"));
        if let Some(Value::Array(alternatives)) = alternatives {
            let each = alternatives
                .iter()
                .flat_map(|one| self.forms_at(one, depth + 1));
            // An alternative that says nothing about the type leaves it to the schema around it.
            let narrowed = each.flat_map(|form| match form {
                Form::Any if !own.is_empty() => own.clone(),
                other => vec![other],
            });
            return narrowed.collect();
        }
        if !own.is_empty() {
            return own;
        }
        if let Some(Value::Array(all)) = members.get("allOf") {
            let each = all.iter().map(|one| self.forms_at(one, depth + 1));
            let telling = each.into_iter().find(|forms| !forms.contains(&Form::Any));
            return telling.unwrap_or_else(|| vec![Form::Any]);
        }
        vec![Form::Any]
    }

    /// The schema itself and all that it is combined with by `$ref` and `allOf`.
    fn parts<'a>(&'a self, schema: &'a Value, depth: usize) -> Vec<&'a Value> {
        let mut parts = vec![schema];
        if depth > MAX_DEPTH {
            return parts;
        }
        if let Some(target) = self.resolve(schema) {
            parts.extend(self.parts(target, depth + 1));
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            parts.extend(all.iter().flat_map(|one| self.parts(one, depth + 1)));
        }
        parts
    }

    /// Where a reference within this schema leads.
    fn resolve<'a>(&'a self, schema: &'a Value) -> Option<&'a Value> {
        let pointer = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.root.pointer(&percent_decoded(pointer))
    }

    /// What a value has to be, in words.
    pub(crate) fn describe(&self, schema: &Value) -> String {
        self.describe_at(schema, 0)
    }

    fn describe_at(&self, schema: &Value, depth: usize) -> String {
        let forms = self.forms(schema);
        let mut names: Vec<String> = Vec::new();
        for form in &forms {
            let name = self.name(form, depth);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        match names.len() {
            0 => "nothing".to_owned(),
            _ => crate::text::either(&names),
        }
    }

    fn name(&self, form: &Form<'_>, depth: usize) -> String {
        let name = match form {
            Form::Choice(values) => return choices(values),
            Form::Array(Some(items)) if depth < MAX_DEPTH => {
                let items = self.describe_at(items, depth + 1);
                return match items.as_str() {
                    "anything" => "array".to_owned(),
                    items => format!("array of {items}"),
                };
            }
            Form::Null => "null",
            Form::Boolean => "boolean",
            Form::Integer => "integer",
            Form::Number => "number",
            Form::Array(_) => "array",
            Form::Object => "object",
            Form::String => "string",
            Form::Any => "anything",
        };
        name.to_owned()
    }
}

fn own_forms(schema: &Value) -> Vec<Form<'_>> {
    let items = schema.get("items");
    let form = |name: &str| match name {
        "null" => Some(Form::Null),
        "boolean" => Some(Form::Boolean),
        "integer" => Some(Form::Integer),
        "number" => Some(Form::Number),
        "array" => Some(Form::Array(items)),
        "object" => Some(Form::Object),
        "string" => Some(Form::String),
        _ => None,
    };
    match schema.get("type") {
        Some(Value::String(name)) => form(name).into_iter().collect(),
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(Value::as_str)
            .filter_map(form)
            .collect(),
        _ => Vec::new(),
    }
}

fn choices(values: &[&Value]) -> String {
    let shown = |value: &&Value| match value {
        Value::String(text) => format!("`{}`", plain(text)),
        other => format!("`{other}`"),
    };
    let mut names: Vec<String> = values.iter().take(MAX_CHOICES_SHOWN).map(shown).collect();
    if values.len() > MAX_CHOICES_SHOWN {
        names.push(format!("{} others", values.len() - MAX_CHOICES_SHOWN));
    }
    crate::text::either(&names)
}

/// References are URIs, so a pointer in them may be escaped.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = (byte == b'%').then(|| (hex(ahead.next()), hex(ahead.next())));
        if let Some((Some(high), Some(low))) = digits {
            bytes.push(high * 16 + low);
            rest = ahead;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: Option<u8>) -> Option<u8> {
    let digit = char::from(digit?).to_digit(16)?;
    u8::try_from(digit).ok()
}
