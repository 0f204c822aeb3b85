//! JSON objects as text: taken apart and put together again without touching the parts.

use cocode_client::RawJson;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The members of a JSON object in their order, keys and values as they are written.
pub(crate) fn members(text: &str) -> Result<Vec<(&RawValue, &RawValue)>, serde_json::Error> {
    serde_json::from_str::<RawMembers<'_>>(text).map(|members| members.0)
}

/// The text of a JSON string.
pub(crate) fn text_of(key: &RawValue) -> String {
    serde_json::from_str(key.get()).unwrap_or_else(|_| key.get().to_owned())
}

/// The JSON string of a text.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

struct RawMembers<'a>(Vec<(&'a RawValue, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for RawMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = RawMembers<'de>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawMembers(members))
            }
        }
        input.deserialize_map(Collect)
    }
}

/// An object under construction.
#[derive(Clone, Debug)]
pub(crate) struct ObjectText {
    /// The text it began with, as long as nothing was changed.
    untouched: Option<String>,
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    name: String,
    /// The name as JSON.
    key: String,
    value: String,
}

impl ObjectText {
    pub(crate) fn empty() -> Self {
        let (untouched, members) = (Some("{}".to_owned()), Vec::new());
        Self { untouched, members }
    }

    pub(crate) fn parse(text: String) -> Result<Self, serde_json::Error> {
        let member = |(key, value): &(&RawValue, &RawValue)| Member {
            name: text_of(key),
            key: key.get().to_owned(),
            value: value.get().to_owned(),
        };
        let members = members(&text)?.iter().map(member).collect();
        let untouched = Some(text);
        Ok(Self { untouched, members })
    }

    /// Puts a member in the place of those of the same name, or at the end.
    pub(crate) fn set(&mut self, name: &str, value: String) {
        self.untouched = None;
        let mut value = Some(value);
        self.members.retain_mut(|member| {
            if member.name != name {
                return true;
            }
            let Some(value) = value.take() else {
                return false;
            };
            member.value = value;
            true
        });
        if let Some(value) = value {
            let (name, key) = (name.to_owned(), quoted(name));
            self.members.push(Member { name, key, value });
        }
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|member| member.name.as_str())
    }

    pub(crate) fn into_json(self) -> Result<RawJson, serde_json::Error> {
        let Self { untouched, members } = self;
        let join = || {
            let members = members.iter().map(
                |Member {
                     name: _,
                     key,
                     value,
                 }| format!("{key}:{value}"),
            );
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        };
        RawJson::parse(untouched.unwrap_or_else(join))
    }
}
