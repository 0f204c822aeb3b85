//! References to secrets as configuration writes them: `keyring:NAME` and `cmd:COMMAND LINE`.

use std::fmt;
use std::str::FromStr;

use crate::secret::{InvalidSecretName, SecretName};

const KEYRING: &str = "keyring:";
const COMMAND: &str = "cmd:";

/// Where a secret comes from. Naming it looks nothing up and runs nothing.
#[derive(Clone, PartialEq, Eq)]
pub enum Reference {
    /// `keyring:NAME`: a secret of the store, be that a keyring or a file.
    Keyring(SecretName),
    /// `cmd:LINE`: what a command line prints, run by `/bin/sh -c`.
    Command(String),
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(name) = text.strip_prefix(KEYRING) {
            return Ok(Self::Keyring(name.parse()?));
        }
        match text.strip_prefix(COMMAND).map(str::trim) {
            Some("") => Err(InvalidReference::EmptyCommand),
            Some(line) => Ok(Self::Command(line.to_owned())),
            None => Err(InvalidReference::Kind),
        }
    }
}

/// Shows a command by its first word alone: people put tokens on command lines.
impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keyring(name) => write!(formatter, "{KEYRING}{name}"),
            Self::Command(line) => match first_word(line) {
                Some((word, "")) => write!(formatter, "{COMMAND}{word}"),
                Some((word, _)) => write!(formatter, "{COMMAND}{word} …"),
                None => write!(formatter, "{COMMAND}…"),
            },
        }
    }
}

impl fmt::Debug for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Reference({self})")
    }
}

/// The first word of a line and the rest, if the word is a plain program and no assignment or
/// other piece of shell that could hold a secret.
fn first_word(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let plain = |character: char| character.is_alphanumeric() || "._-+/~".contains(character);
    (!word.is_empty() && word.chars().all(plain)).then_some((word, rest))
}

/// Why a text is no reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidReference {
    /// It starts with neither prefix.
    #[error("a reference to a secret starts with `keyring:` or `cmd:`")]
    Kind,
    /// There is no command to run.
    #[error("the command line after `cmd:` is empty")]
    EmptyCommand,
    /// The name after `keyring:` cannot be one.
    #[error(transparent)]
    Name(#[from] InvalidSecretName),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_told_by_their_prefix() {
        let cases = [
            (
                "keyring:github",
                Ok(Reference::Keyring("github".parse().unwrap())),
            ),
            (
                "cmd: op read x ",
                Ok(Reference::Command("op read x".into())),
            ),
            ("cmd:  ", Err(InvalidReference::EmptyCommand)),
            (
                "keyring:",
                Err(InvalidReference::Name(InvalidSecretName::Empty)),
            ),
            ("github", Err(InvalidReference::Kind)),
        ];
        for (text, expected) in cases {
            assert_eq!(text.parse::<Reference>(), expected, "{text:?}");
        }
    }

    #[test]
    fn only_the_program_of_a_command_is_shown() {
        let cases = [
            ("cmd:pass", "cmd:pass"),
            ("cmd:op read op://a/b --token hunter2", "cmd:op …"),
            ("cmd:TOKEN=hunter2 op read", "cmd:…"),
            ("cmd:$(hunter2)", "cmd:…"),
            ("keyring:github", "keyring:github"),
        ];
        for (text, expected) in cases {
            let reference: Reference = text.parse().unwrap();
            assert_eq!(reference.to_string(), expected);
            assert_eq!(format!("{reference:?}"), format!("Reference({expected})"));
        }
    }
}
