//! A piece of JSON exactly as it came over the wire.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

/// JSON text, verified to be JSON and UTF-8, otherwise untouched: key order, unknown fields, big
/// integers and the spelling of floats survive. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct RawJson(Bytes);

impl RawJson {
    /// For bytes that a JSON parser has already walked over.
    pub(crate) fn from_verified(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// Checks `text` and keeps it as it is.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, serde_json::Error> {
        let bytes = text.into();
        serde_json::from_slice::<&RawValue>(&bytes)?;
        Ok(Self(bytes))
    }

    /// The JSON form of any serializable value.
    pub fn of(value: &(impl serde::Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Self(text.into()))
    }

    /// The text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        // The bytes were verified when this value was made.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Decodes into `T`, which may borrow from this value.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// A part of this value, sharing its bytes. `part` must come from decoding this value.
    #[must_use]
    pub fn share(&self, part: &RawValue) -> Self {
        Self(self.0.slice_ref(part.get().as_bytes()))
    }

    /// This value with another one in the place of `part`, which must come from decoding this value.
    /// Everything else is as it was.
    #[must_use]
    pub fn with_part(&self, part: &RawValue, value: &Self) -> Self {
        self.with_parts([(part, value)])
    }

    /// As [`Self::with_part`], for any number of parts in the order in which they stand there.
    #[must_use]
    pub fn with_parts<'a>(
        &self,
        parts: impl IntoIterator<Item = (&'a RawValue, &'a Self)>,
    ) -> Self {
        let mut text = Vec::with_capacity(self.0.len());
        let mut done = 0;
        for (part, value) in parts {
            let part = self.0.slice_ref(part.get().as_bytes());
            let begin = part.as_ptr().addr() - self.0.as_ptr().addr();
            text.extend_from_slice(&self.0[done..begin]);
            text.extend_from_slice(value.as_bytes());
            done = begin + part.len();
        }
        text.extend_from_slice(&self.0[done..]);
        Self(text.into())
    }

    /// A copy that does not keep the buffer alive in which this value arrived.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }
}

impl std::fmt::Debug for RawJson {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "RawJson({} bytes)", self.0.len())
    }
}

impl std::fmt::Display for RawJson {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl From<Box<RawValue>> for RawJson {
    fn from(value: Box<RawValue>) -> Self {
        let text: Box<str> = value.into();
        Self(text.into_boxed_bytes().into())
    }
}

impl serde::Serialize for RawJson {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Only a JSON serializer can take the text as it is.
        serde_json::from_slice::<&RawValue>(&self.0)
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only a JSON deserializer can give the text as it is.
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use crate::members::Members;

    use super::RawJson;

    #[test]
    fn a_value_within_another_is_read_and_written_as_it_is() {
        let text = r#"[{ "b": 1.50, "a":12345678901234567890123 },null]"#;
        let values: Vec<RawJson> = serde_json::from_str(text).unwrap();
        assert_eq!(
            values[0].as_str(),
            r#"{ "b": 1.50, "a":12345678901234567890123 }"#
        );
        assert_eq!(serde_json::to_string(&values).unwrap(), text);
        assert!(serde_json::from_str::<RawJson>("{").is_err());
    }

    #[test]
    fn a_part_is_replaced_and_everything_else_stays_as_it_is() {
        let whole = RawJson::parse(r#" {"a": {"b" :1.10}, "b":1e400 ,"\u0063":[ ]} "#).unwrap();
        let members: Members<'_> = whole.decode().unwrap();
        let value = RawJson::parse(r#""new""#).unwrap();
        for (name, expected) in [
            ("a", r#" {"a": "new", "b":1e400 ,"\u0063":[ ]} "#),
            ("b", r#" {"a": {"b" :1.10}, "b":"new" ,"\u0063":[ ]} "#),
            ("c", r#" {"a": {"b" :1.10}, "b":1e400 ,"\u0063":"new"} "#),
        ] {
            let changed = whole.with_part(members.get(name).unwrap(), &value);
            assert_eq!(changed.as_str(), expected);
        }
        let parts = ["a", "c"].map(|name| (members.get(name).unwrap(), &value));
        let changed = whole.with_parts(parts);
        assert_eq!(
            changed.as_str(),
            r#" {"a": "new", "b":1e400 ,"\u0063":"new"} "#
        );
        assert_eq!(whole.with_parts([]), whole);
        let inner = Members::of(members.get("a").unwrap()).unwrap();
        let changed = whole.with_part(inner.get("b").unwrap(), &value);
        assert_eq!(
            changed.as_str(),
            r#" {"a": {"b" :"new"}, "b":1e400 ,"\u0063":[ ]} "#
        );
    }
}
