//! Text that is handed on and never shown: values of environments and headers, codes, new tokens.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::schema::{Described, Shelf};

/// A text that may be secret. In JSON it is the text; `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

impl Described for Secret {
    fn schema(_shelf: &mut Shelf) -> Value {
        json!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_in_its_json_and_in_nothing_else() {
        let secret = Secret::new("hunter2");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"hunter2\"");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
