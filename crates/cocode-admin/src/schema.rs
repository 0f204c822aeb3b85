//! How the data of the API are described: each type says its own JSON Schema, in the words of its
//! documentation, so that what is served, what is checked and what is written are one thing.

use std::collections::BTreeMap;

use cocode_wire::RawJson;
use serde_json::{Map, Value, json};

/// A type that knows its JSON Schema.
pub(crate) trait Described {
    /// Whether it may be left out where it is a member.
    const IS_OPTIONAL: bool = false;

    /// The schema, at the place where the type is used.
    fn schema(shelf: &mut Shelf) -> Value;

    /// Whether there is nothing to say of this value.
    fn is_absent(&self) -> bool {
        false
    }
}

/// What makes the schema of a type that is not known by name.
pub(crate) type SchemaOf = fn(&mut Shelf) -> Value;

/// For serde, which wants a plain function.
pub(crate) fn is_absent<T: Described>(value: &T) -> bool {
    value.is_absent()
}

/// The schemas that have names, and are referred to by them.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    named: BTreeMap<&'static str, Value>,
    /// Whether schemas stand where they are used instead.
    is_inline: bool,
}

impl Shelf {
    /// The schema of a type as one piece that refers to nothing.
    pub(crate) fn whole<T: Described>() -> Value {
        let mut shelf = Self {
            is_inline: true,
            ..Self::default()
        };
        T::schema(&mut shelf)
    }

    /// A reference to the schema of that name, which is made if it is not there.
    pub(crate) fn named(
        &mut self,
        name: &'static str,
        make: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        if self.is_inline {
            return make(self);
        }
        if !self.named.contains_key(name) {
            // Held meanwhile, for types that hold themselves.
            self.named.insert(name, Value::Null);
            let made = make(self);
            self.named.insert(name, made);
        }
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }

    /// All that have names.
    pub(crate) fn into_components(self) -> Value {
        let named = self.named.into_iter();
        named
            .map(|(name, schema)| (name.to_owned(), schema))
            .collect::<Map<_, _>>()
            .into()
    }
}

/// The schema of an object, while its members are told.
#[derive(Debug)]
pub(crate) struct Members {
    schema: Value,
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Members {
    pub(crate) fn new(about: &[&str], is_closed: bool) -> Self {
        let mut schema = json!({ "type": "object", "description": sentences(about) });
        if is_closed {
            put(&mut schema, "additionalProperties", Value::Bool(false));
        }
        Self {
            schema,
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, field: &str, said: &[&str], is_optional: bool, schema: Value) {
        let name = camel_case(field);
        if !is_optional {
            self.required.push(name.clone().into());
        }
        let mut schema = schema;
        put(&mut schema, "description", sentences(said).into());
        self.properties.insert(name, schema);
    }

    pub(crate) fn finish(self, more: &Value) -> Value {
        let mut schema = self.schema;
        put(&mut schema, "properties", self.properties.into());
        if !self.required.is_empty() {
            put(&mut schema, "required", self.required.into());
        }
        merged(schema, more)
    }
}

/// A schema with more that must hold.
pub(crate) fn merged(mut schema: Value, more: &Value) -> Value {
    for (key, value) in more.as_object().into_iter().flatten() {
        put(&mut schema, key, value.clone());
    }
    schema
}

/// The words of a documentation comment as one line.
pub(crate) fn sentences(said: &[&str]) -> String {
    let lines: Vec<_> = said.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

fn put(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(members) = schema {
        members.insert(key.to_owned(), value);
    }
}

/// The name of a field as JSON has it.
fn camel_case(field: &str) -> String {
    let mut name = String::with_capacity(field.len());
    let mut is_next_upper = false;
    for character in field.chars() {
        if character == '_' {
            is_next_upper = true;
        } else if std::mem::take(&mut is_next_upper) {
            name.extend(character.to_uppercase());
        } else {
            name.push(character);
        }
    }
    name
}

/// Types that are described by one word or two.
macro_rules! plain {
    ($($kind:ty => $schema:tt,)*) => {
        $(impl Described for $kind {
            fn schema(_shelf: &mut Shelf) -> Value {
                json!($schema)
            }
        })*
    };
}

plain! {
    bool => { "type": "boolean" },
    String => { "type": "string" },
    u32 => { "type": "integer", "minimum": 0, "maximum": u32::MAX },
    u64 => { "type": "integer", "minimum": 0 },
    f64 => { "type": "number" },
    RawJson => {},
}

impl<T: Described> Described for Option<T> {
    const IS_OPTIONAL: bool = true;

    fn schema(shelf: &mut Shelf) -> Value {
        T::schema(shelf)
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema(shelf: &mut Shelf) -> Value {
        json!({ "type": "array", "items": T::schema(shelf) })
    }
}

impl<T: Described> Described for BTreeMap<String, T> {
    fn schema(shelf: &mut Shelf) -> Value {
        json!({ "type": "object", "additionalProperties": T::schema(shelf) })
    }
}

/// Makes a type of the API: a struct, its JSON in camelCase, and its schema. What is an `Option` may
/// be left out. `body` in place of `struct` refuses members that are not named here. After `where`
/// stands what must hold besides, as JSON Schema says it.
macro_rules! record {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident $(where { $($more:tt)* })? { $($members:tt)* }
    ) => {
        record! { @make false, [$($about),+], $name, { $($($more)*)? }, { $($members)* } }
    };
    (
        $(#[doc = $about:literal])+
        pub body $name:ident $(where { $($more:tt)* })? { $($members:tt)* }
    ) => {
        record! { @make true, [$($about),+], $name, { $($($more)*)? }, { $($members)* } }
    };
    (
        @make $closed:literal, [$($about:literal),+], $name:ident, { $($more:tt)* },
        { $($(#[doc = $said:literal])+ $field:ident: $kind:ty $(where { $($limit:tt)* })?,)* }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[doc = $said])+
                #[serde(skip_serializing_if = "crate::schema::is_absent")]
                pub $field: $kind,
            )*
        }

        impl crate::schema::Described for $name {
            fn schema(shelf: &mut crate::schema::Shelf) -> serde_json::Value {
                shelf.named(stringify!($name), |_shelf| {
                    #[allow(unused_mut, clippy::allow_attributes, reason = "some records are empty")]
                    let mut members = crate::schema::Members::new(&[$($about),+], $closed);
                    $({
                        let schema = <$kind as crate::schema::Described>::schema(_shelf);
                        let limits = serde_json::json!({ $($($limit)*)? });
                        let schema = crate::schema::merged(schema, &limits);
                        let is_optional = <$kind as crate::schema::Described>::IS_OPTIONAL;
                        members.add(stringify!($field), &[$($said),+], is_optional, schema);
                    })*
                    members.finish(&serde_json::json!({ $($more)* }))
                })
            }
        }
    };
}

/// Makes a type of the API whose values are words.
macro_rules! words {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident { $($(#[doc = $said:literal])+ $variant:ident = $word:literal,)+ }
    ) => {
        $(#[doc = $about])+
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
        )]
        pub enum $name {
            $(
                $(#[doc = $said])+
                #[serde(rename = $word)]
                $variant,
            )+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word for it.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl crate::schema::Described for $name {
            fn schema(shelf: &mut crate::schema::Shelf) -> serde_json::Value {
                shelf.named(stringify!($name), |_shelf| {
                    let mut about = crate::schema::sentences(&[$($about),+]);
                    $(
                        about.push_str(concat!(" `", $word, "`: "));
                        about.push_str(&crate::schema::sentences(&[$($said),+]));
                    )+
                    serde_json::json!({ "type": "string", "enum": [$($word),+], "description": about })
                })
            }
        }
    };
}

pub(crate) use {record, words};

#[cfg(test)]
#[expect(
    unreachable_pub,
    reason = "the macros make types of the API, and these are none"
)]
mod tests {
    use serde_json::json;

    use super::{Described as _, Shelf};

    words! {
        /// How it is.
        pub enum Mood {
            /// It laughs.
            Merry = "merry",
            /// It does not.
            NotMerry = "not-merry",
        }
    }

    record! {
        /// Somebody
        /// who is there.
        pub body Somebody where { "minProperties": 1 } {
            /// The name.
            given_name: String where { "minLength": 1 },
            /// How they are.
            mood: Option<Mood>,
        }
    }

    #[test]
    fn a_record_says_what_it_is_and_holds_to_it() {
        let mood = json!({
            "type": "string", "enum": ["merry", "not-merry"],
            "description": "How it is. `merry`: It laughs. `not-merry`: It does not.",
        });
        let with = |mood: serde_json::Value| {
            json!({
                "type": "object", "description": "Somebody who is there.", "minProperties": 1,
                "additionalProperties": false, "required": ["givenName"],
                "properties": {
                    "givenName": { "type": "string", "minLength": 1, "description": "The name." },
                    "mood": mood,
                },
            })
        };
        let mut shelf = Shelf::default();
        let reference = json!({ "$ref": "#/components/schemas/Somebody" });
        assert_eq!(Somebody::schema(&mut shelf), reference);
        assert_eq!(Somebody::schema(&mut shelf), reference);
        let referred =
            with(json!({ "$ref": "#/components/schemas/Mood", "description": "How they are." }));
        assert_eq!(
            shelf.into_components(),
            json!({ "Somebody": referred, "Mood": mood })
        );
        let mut inline = mood;
        inline["description"] = json!("How they are.");
        assert_eq!(Shelf::whole::<Somebody>(), with(inline));

        let one = Somebody {
            given_name: "Ada".to_owned(),
            mood: None,
        };
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(text, r#"{"givenName":"Ada"}"#);
        assert_eq!(serde_json::from_str::<Somebody>(&text).unwrap(), one);
        assert!(serde_json::from_str::<Somebody>("{}").is_err());
        assert_eq!(Mood::ALL, [Mood::Merry, Mood::NotMerry]);
        assert_eq!(Mood::NotMerry.to_string(), "not-merry");
    }
}
