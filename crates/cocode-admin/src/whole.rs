//! A whole number that somebody else has written: to JSON Schema `104.0` is one, too.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Number, Value, json};

use crate::schema::{Described, Shelf};

/// A whole number from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Whole(u32);

impl Whole {
    /// The number.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl From<u32> for Whole {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Number::deserialize(deserializer)?;
        let text = number.to_string();
        let whole = text.strip_suffix(".0").unwrap_or(&text);
        whole.parse().map(Self).map_err(|error| {
            D::Error::custom(format!("{number} is no whole number in bounds: {error}"))
        })
    }
}

impl Described for Whole {
    fn schema(_shelf: &mut Shelf) -> Value {
        json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

#[cfg(test)]
mod tests {
    use super::Whole;

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        let read = |text: &str| serde_json::from_str::<Whole>(text).ok().map(Whole::get);
        for (text, expected) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("0", Some(0)),
            ("1e2", Some(100)),
            ("7.5", None),
            ("-1", None),
            ("4294967296", None),
            ("1e300", None),
            ("\"7\"", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
