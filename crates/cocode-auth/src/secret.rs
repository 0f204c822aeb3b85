//! A text that cannot be printed, and the names that secrets have.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

/// A secret text. It cannot be printed, and its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes over a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself. Whoever calls this must neither print nor log it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The longest name of a secret.
const MAX_NAME_BYTES: usize = 256;

/// The name of a secret: 1 to 256 bytes without whitespace or control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretName(String);

impl SecretName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for SecretName {
    type Err = InvalidSecretName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(InvalidSecretName::Empty);
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(InvalidSecretName::TooLong);
        }
        match text
            .chars()
            .find(|character| character.is_whitespace() || character.is_control())
        {
            Some(character) => Err(InvalidSecretName::Character(character)),
            None => Ok(Self(text.to_owned())),
        }
    }
}

/// Why a text cannot be the name of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecretName {
    /// Nothing is left to look for.
    #[error("the name of a secret is empty")]
    Empty,
    /// Longer than any keyring is sure to take.
    #[error("the name of a secret is longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    /// Such a name could not be typed or shown.
    #[error("the name of a secret contains the character {0:?}")]
    Character(char),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_the_text() {
        let secret = Secret::new("hunter2");
        assert_eq!(
            format!("{:?} {:#?}", secret, Some(&secret)),
            "Secret(…) Some(\n    Secret(…),\n)"
        );
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn names_can_be_typed_and_shown() {
        let (longest, too_long) = ("a".repeat(256), "a".repeat(257));
        let cases = [
            ("github", None),
            ("team/github@work", None),
            ("schlüssel", None),
            (&longest, None),
            ("", Some(InvalidSecretName::Empty)),
            (&too_long, Some(InvalidSecretName::TooLong)),
            ("two words", Some(InvalidSecretName::Character(' '))),
            ("bell\u{7}", Some(InvalidSecretName::Character('\u{7}'))),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<SecretName>().err(), expected, "{text:?}");
        }
    }
}
