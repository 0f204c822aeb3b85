//! Whoever makes requests, and the names that they may have.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

/// The longest name of a principal or a token.
pub const MAX_NAME_BYTES: usize = 255;

/// The name of whoever comes to a gateway that asks nobody who they are.
const LOCAL: &str = "local";

/// Stands for all principals that have no table of their own.
const EVERYBODY: &str = "*";

/// Who makes requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// What they are called: by their token, or by a claim of it.
    pub name: PrincipalName,
    /// How they are known.
    pub kind: PrincipalKind,
    /// What their token allows, by the words of the authorization server.
    pub scopes: Vec<String>,
    /// Whether their token lets them manage the gateway. A policy may say so, too.
    pub is_admin: bool,
    /// When they have to come with another token.
    pub until: Option<SystemTime>,
}

/// How a principal is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrincipalKind {
    /// By one of the gateway's own tokens.
    Token,
    /// By an access token that an authorization server has signed.
    Jwt,
    /// Not at all: the gateway is open.
    Local,
}

impl Principal {
    /// Whoever comes to a gateway that asks nobody who they are. They may do everything: the gateway
    /// is theirs.
    pub fn local() -> Self {
        Self {
            name: PrincipalName::local(),
            kind: PrincipalKind::Local,
            scopes: Vec::new(),
            is_admin: true,
            until: None,
        }
    }
}

/// A name that can be typed, shown and put into a log: 1 to 255 bytes without whitespace and control
/// characters, and neither `local` nor `*`, which mean something else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalName(Arc<str>);

/// Why a text cannot be a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Nothing is left.
    #[error("the name is empty")]
    Empty,
    /// Too long to be shown.
    #[error("the name is longer than {MAX_NAME_BYTES} bytes")]
    TooLong,
    /// Could not be typed, or would look like another.
    #[error("the name contains the character {0:?}: use letters, digits and punctuation")]
    Character(char),
    /// Means whoever comes to an open gateway.
    #[error("`{LOCAL}` is the name of whoever uses a gateway that is open: choose another name")]
    Local,
    /// Means everybody.
    #[error("`{EVERYBODY}` stands for everybody: choose another name")]
    Everybody,
}

impl PrincipalName {
    /// The name of whoever comes to a gateway that asks nobody who they are: `local`. No token and no
    /// claim can have it.
    pub fn local() -> Self {
        Self(LOCAL.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as text that can be kept.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl FromStr for PrincipalName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if text.is_empty() {
            return Err(InvalidName::Empty);
        }
        if text.len() > MAX_NAME_BYTES {
            return Err(InvalidName::TooLong);
        }
        let unfit = |character: &char| {
            character.is_whitespace() || character.is_control() || is_invisible(*character)
        };
        if let Some(character) = text.chars().find(unfit) {
            return Err(InvalidName::Character(character));
        }
        match text {
            LOCAL => Err(InvalidName::Local),
            EVERYBODY => Err(InvalidName::Everybody),
            _ => Ok(Self(text.into())),
        }
    }
}

/// Characters that cannot be seen, or change the order of what is around them.
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

impl fmt::Display for PrincipalName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{InvalidName, Principal, PrincipalName};

    #[test]
    fn names_can_be_typed_shown_and_logged() {
        let (longest, too_long) = ("a".repeat(255), "a".repeat(256));
        for (text, expected) in [
            ("alice", None),
            ("auth0|5f7c8ec7c33c6c004bbafe82", None),
            ("alice@example.com", None),
            ("zoë", None),
            (&longest, None),
            ("", Some(InvalidName::Empty)),
            (&too_long, Some(InvalidName::TooLong)),
            ("two words", Some(InvalidName::Character(' '))),
            ("line\nbreak", Some(InvalidName::Character('\n'))),
            (
                "line\u{2028}break",
                Some(InvalidName::Character('\u{2028}')),
            ),
            ("\u{1b}[31mred", Some(InvalidName::Character('\u{1b}'))),
            ("ali\u{200b}ce", Some(InvalidName::Character('\u{200b}'))),
            ("ali\u{202e}ce", Some(InvalidName::Character('\u{202e}'))),
            ("local", Some(InvalidName::Local)),
            ("*", Some(InvalidName::Everybody)),
        ] {
            assert_eq!(text.parse::<PrincipalName>().err(), expected, "{text:?}");
        }
    }

    #[test]
    fn whoever_comes_to_an_open_gateway_owns_it() {
        let local = Principal::local();
        assert_eq!(local.name.as_str(), "local");
        assert!(local.is_admin);
    }
}
