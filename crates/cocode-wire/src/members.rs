//! The members of a JSON object in their order, with their values untouched.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::raw::RawJson;

/// A JSON object, read one level deep.
#[derive(Debug, Default)]
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// The value of the first member of this name.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    }

    /// The members of `value`, if it is an object.
    pub fn of(value: &'a RawValue) -> Option<Self> {
        serde_json::from_str(value.get()).ok()
    }
}

/// Whether the first or the last member of an object is exactly this text. Costs nothing, and
/// servers put what is small before or behind what is large; `false` does not mean that it is not
/// there.
pub fn begins_or_ends_with(object: &RawJson, member: &str) -> bool {
    let (text, member) = (object.as_bytes(), member.as_bytes());
    let after = text
        .strip_prefix(b"{")
        .and_then(|rest| rest.strip_prefix(member));
    let before = text
        .strip_suffix(b"}")
        .and_then(|rest| rest.strip_suffix(member));
    // A quote behind a comma or brace opens a string, and the last brace closes the object itself.
    matches!(after.and_then(<[u8]>::first), Some(b',' | b'}'))
        || matches!(before.and_then(<[u8]>::last), Some(b'{' | b','))
}

/// Whether an object cannot have a member of this name at any depth, however that is spelled.
pub fn never_mentions(object: &RawJson, name: &str) -> bool {
    let text = object.as_bytes();
    !contains(text, name.as_bytes()) && !contains(text, b"\\u")
}

/// Most objects are small, and to prepare a search through them would take longer than the search.
fn contains(text: &[u8], needle: &[u8]) -> bool {
    const SMALL: usize = 4096;
    match needle.split_first() {
        Some((first, rest)) if text.len() <= SMALL => {
            memchr::memchr_iter(*first, text).any(|at| text[at + 1..].starts_with(rest))
        }
        _ => memmem::find(text, needle).is_some(),
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        input.deserialize_map(Collect)
    }
}

/// A key that borrows when it can.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use crate::raw::RawJson;

    use super::{begins_or_ends_with, never_mentions};

    #[test]
    fn a_member_at_either_end_is_seen_and_one_inside_something_else_is_not() {
        for (object, expected) in [
            (r#"{"a":1}"#, true),
            (r#"{"a":1,"b":[]}"#, true),
            (r#"{"b":{},"a":1}"#, true),
            (r#"{"b":0,"a":1,"c":0}"#, false),
            (r#"{"a":12}"#, false),
            (r#"{"x\",\"a":1}"#, false),
            (r#"{"b\"a":1}"#, false),
            (r#"{"b":{"a":1}}"#, false),
            (r#"["a",1]"#, false),
            ("{}", false),
        ] {
            let object = RawJson::parse(object).unwrap();
            assert_eq!(
                begins_or_ends_with(&object, r#""a":1"#),
                expected,
                "{object}"
            );
        }
    }

    #[test]
    fn a_name_in_disguise_counts_as_mentioned() {
        for (object, expected) in [
            (r#"{"b":1}"#, true),
            (r#"{"b":"\n"}"#, true),
            (r#"{"name":1}"#, false),
            (r#"{"n\u0061me":1}"#, false),
        ] {
            let object = RawJson::parse(object).unwrap();
            assert_eq!(never_mentions(&object, "name"), expected, "{object}");
        }
    }
}
