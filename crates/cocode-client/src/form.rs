//! The forms of elicitations: the fields a server asks for, their defaults, and whether an answer
//! fits them.

use std::borrow::Cow;
use std::collections::HashSet;

use cocode_wire::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use cocode_wire::members::Members;

/// A flat form, in the server's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Form {
    /// Its fields.
    pub fields: Vec<Field>,
}

/// One field.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name in the answer.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it means.
    pub description: Option<String>,
    /// What it holds.
    pub kind: FieldKind,
    /// What it holds if nobody says otherwise.
    pub default: Option<Value>,
    /// Whether it has to be filled in.
    pub required: bool,
    /// What its value must keep to.
    pub limits: Limits,
}

/// What the value of a field must keep to; each bound is inclusive.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// The least number.
    pub minimum: Option<f64>,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// The fewest characters of a text.
    pub min_length: Option<usize>,
    /// The most characters of a text.
    pub max_length: Option<usize>,
    /// The fewest choices.
    pub min_items: Option<usize>,
    /// The most choices.
    pub max_items: Option<usize>,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldKind {
    /// Text, of this `format` if any.
    Text(Option<String>),
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// One of these: what is sent, and what is shown.
    Choice(Vec<(String, String)>),
    /// Any number of these: what is sent, and what is shown.
    Choices(Vec<(String, String)>),
    /// Something that a flat form cannot ask for.
    Other,
}

#[derive(Deserialize)]
struct SchemaWire<'a> {
    #[serde(borrow, default)]
    properties: Members<'a>,
    #[serde(default)]
    required: Vec<String>,
}

#[derive(Deserialize)]
struct FieldWire<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    format: Option<String>,
    #[serde(default)]
    default: Option<Value>,
    #[serde(default, rename = "enum")]
    values: Option<Vec<String>>,
    #[serde(default, rename = "enumNames")]
    names: Option<Vec<String>>,
    #[serde(default, rename = "oneOf")]
    one_of: Option<Vec<Titled>>,
    #[serde(default, rename = "anyOf")]
    any_of: Option<Vec<Titled>>,
    #[serde(borrow, default)]
    items: Option<&'a RawValue>,
    #[serde(default)]
    minimum: Option<f64>,
    #[serde(default)]
    maximum: Option<f64>,
    #[serde(default, rename = "minLength")]
    min_length: Option<usize>,
    #[serde(default, rename = "maxLength")]
    max_length: Option<usize>,
    #[serde(default, rename = "minItems")]
    min_items: Option<usize>,
    #[serde(default, rename = "maxItems")]
    max_items: Option<usize>,
}

#[derive(Deserialize)]
struct Titled {
    #[serde(rename = "const")]
    value: String,
    #[serde(default)]
    title: Option<String>,
}

impl Form {
    /// Reads the schema of an elicitation.
    pub fn parse(schema: &RawJson) -> Result<Self, serde_json::Error> {
        let SchemaWire {
            properties,
            required,
        } = schema.decode()?;
        let required: HashSet<String> = required.into_iter().collect();
        let field = |(name, raw): &(Cow<'_, str>, &RawValue)| {
            let wire: FieldWire<'_> = serde_json::from_str(raw.get())?;
            Ok(Field {
                name: name.clone().into_owned(),
                required: required.contains(&**name),
                kind: wire.kind(),
                limits: wire.limits(),
                title: wire.title,
                description: wire.description,
                default: wire.default,
            })
        };
        let fields = properties
            .0
            .iter()
            .map(field)
            .collect::<Result<_, serde_json::Error>>()?;
        Ok(Self { fields })
    }

    /// `answer` with the default of every field that it leaves out.
    pub fn with_defaults(&self, mut answer: Map<String, Value>) -> Map<String, Value> {
        for field in &self.fields {
            if let Some(default) = &field.default {
                answer
                    .entry(field.name.clone())
                    .or_insert_with(|| default.clone());
            }
        }
        answer
    }
}

impl Limits {
    /// Why `value` does not keep to them, if it does not.
    pub fn broken_by(&self, value: &Value) -> Option<String> {
        let (size, least, most, what) = match value {
            Value::Number(number) => {
                let number = number.as_f64()?;
                let low = self.minimum.filter(|least| number < *least);
                let high = self.maximum.filter(|most| number > *most);
                return match (low, high) {
                    (Some(least), _) => Some(format!("it must be at least {least}")),
                    (None, Some(most)) => Some(format!("it must be at most {most}")),
                    (None, None) => None,
                };
            }
            Value::String(text) => (
                text.chars().count(),
                self.min_length,
                self.max_length,
                "characters",
            ),
            Value::Array(items) => (items.len(), self.min_items, self.max_items, "choices"),
            Value::Null | Value::Bool(_) | Value::Object(_) => return None,
        };
        if let Some(least) = least.filter(|least| size < *least) {
            return Some(format!("it must have at least {least} {what}"));
        }
        let most = most.filter(|most| size > *most)?;
        Some(format!("it must have at most {most} {what}"))
    }
}

impl FieldWire<'_> {
    fn limits(&self) -> Limits {
        Limits {
            minimum: self.minimum,
            maximum: self.maximum,
            min_length: self.min_length,
            max_length: self.max_length,
            min_items: self.min_items,
            max_items: self.max_items,
        }
    }

    fn kind(&self) -> FieldKind {
        match self.kind.as_deref() {
            Some("boolean") => FieldKind::Boolean,
            Some("integer") => FieldKind::Integer,
            Some("number") => FieldKind::Number,
            Some("array") => {
                let items = self
                    .items
                    .and_then(|raw| serde_json::from_str(raw.get()).ok());
                items
                    .and_then(|items: FieldWire<'_>| items.choices())
                    .map_or(FieldKind::Other, FieldKind::Choices)
            }
            Some("string") | None => match self.choices() {
                Some(choices) => FieldKind::Choice(choices),
                None if self.kind.is_some() => FieldKind::Text(self.format.clone()),
                None => FieldKind::Other,
            },
            Some(_) => FieldKind::Other,
        }
    }

    /// In each of the ways that revisions have spelled them.
    fn choices(&self) -> Option<Vec<(String, String)>> {
        if let Some(titled) = self.one_of.as_ref().or(self.any_of.as_ref()) {
            let pair = |one: &Titled| {
                (
                    one.value.clone(),
                    one.title.clone().unwrap_or_else(|| one.value.clone()),
                )
            };
            return Some(titled.iter().map(pair).collect());
        }
        let values = self.values.as_ref()?;
        let names = self
            .names
            .as_ref()
            .filter(|names| names.len() == values.len());
        Some(
            values
                .iter()
                .cloned()
                .zip(names.unwrap_or(values).iter().cloned())
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use cocode_wire::RawJson;
    use serde_json::{Map, json};

    use super::{FieldKind, Form};

    fn form() -> Form {
        let schema = r#"{"type":"object","required":["name"],"properties":{
            "name":{"type":"string","title":"Name","default":"Ada","format":"email"},
            "age":{"type":"integer","default":3},
            "score":{"type":"number","default":1.5},
            "ok":{"type":"boolean","default":true},
            "one":{"type":"string","enum":["a","b"],"enumNames":["A","B"],"default":"b"},
            "titled":{"type":"string","oneOf":[{"const":"x","title":"X"}]},
            "many":{"type":"array","items":{"type":"string","enum":["p","q"]}},
            "titles":{"type":"array","items":{"anyOf":[{"const":"r","title":"R"}]}},
            "nested":{"type":"object"}}}"#;
        Form::parse(&RawJson::parse(schema).unwrap()).unwrap()
    }

    #[test]
    fn every_kind_of_field_is_known_and_in_order() {
        let pair = |value: &str, shown: &str| (value.to_owned(), shown.to_owned());
        let kinds: Vec<_> = form()
            .fields
            .into_iter()
            .map(|field| (field.name, field.kind))
            .collect();
        let expected = [
            ("name", FieldKind::Text(Some("email".into()))),
            ("age", FieldKind::Integer),
            ("score", FieldKind::Number),
            ("ok", FieldKind::Boolean),
            (
                "one",
                FieldKind::Choice(vec![pair("a", "A"), pair("b", "B")]),
            ),
            ("titled", FieldKind::Choice(vec![pair("x", "X")])),
            (
                "many",
                FieldKind::Choices(vec![pair("p", "p"), pair("q", "q")]),
            ),
            ("titles", FieldKind::Choices(vec![pair("r", "R")])),
            ("nested", FieldKind::Other),
        ];
        assert_eq!(kinds, expected.map(|(name, kind)| (name.to_owned(), kind)));
    }

    #[test]
    fn limits_are_kept_or_named() {
        let schema = r#"{"properties":{"n":{"type":"integer","minimum":0,"maximum":10},
            "t":{"type":"string","minLength":2,"maxLength":3},
            "c":{"type":"array","items":{"enum":["a"]},"minItems":1,"maxItems":1}}}"#;
        let form = Form::parse(&RawJson::parse(schema).unwrap()).unwrap();
        let broken = |field: usize, value| form.fields[field].limits.broken_by(&value).is_some();
        for (field, value, expected) in [
            (0, json!(-1), true),
            (0, json!(0), false),
            (0, json!(10), false),
            (0, json!(10.5), true),
            (1, json!("é"), true),
            (1, json!("éé"), false),
            (1, json!("abcd"), true),
            (2, json!([]), true),
            (2, json!(["a"]), false),
            (2, json!(["a", "a"]), true),
        ] {
            assert_eq!(broken(field, value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn defaults_fill_what_the_answer_leaves_out() {
        let form = form();
        let given = Map::from_iter([("age".to_owned(), json!(9))]);
        let expected = json!({ "name": "Ada", "age": 9, "score": 1.5, "ok": true, "one": "b" });
        assert_eq!(serde_json::Value::from(form.with_defaults(given)), expected);
        let required: Vec<_> = form
            .fields
            .iter()
            .filter(|f| f.required)
            .map(|f| &*f.name)
            .collect();
        assert_eq!(required, ["name"]);
    }
}
