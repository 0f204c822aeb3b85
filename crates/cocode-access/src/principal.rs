//! Whoever makes requests, and the names that they may have.

use std::borrow::Borrow;
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
    /// Who they are: what is theirs is theirs by this.
    pub id: PrincipalId,
    /// What they are called: by their token, or by a claim of it. Others may be called so, too.
    pub name: PrincipalName,
    /// How they are known.
    pub kind: PrincipalKind,
    /// What their token allows, by the words of the authorization server.
    pub scopes: Arc<[String]>,
    /// Whether their token lets them manage the gateway. A policy may say so, too.
    pub is_admin: bool,
    /// When they have to come with another token.
    pub until: Option<SystemTime>,
    /// Which token of the gateway they came with, if with one: [`TokenHash::short`](crate::TokenHash::short).
    pub credential: Option<Arc<str>>,
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
            id: PrincipalId::local(),
            name: PrincipalName::local(),
            kind: PrincipalKind::Local,
            scopes: Arc::default(),
            is_admin: true,
            until: None,
            credential: None,
        }
    }
}

/// Who somebody is. Two principals of one name are two: the name is what a token or an issuer calls
/// them, and each token and each issuer does so for itself.
///
/// As text it is the name of a token, or the name that an issuer gives, a space, and the issuer. No name
/// has a space in it, so no two principals have one text, whatever names issuers give.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PrincipalId(Arc<str>);

/// Why a text means no principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    /// What stands before the issuer is no name.
    #[error(transparent)]
    Name(#[from] InvalidName),
    /// What follows the name is no issuer.
    #[error("after the name and one space stands the issuer, which has no spaces")]
    Issuer,
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

impl PrincipalId {
    /// Whoever comes to a gateway that asks nobody who they are.
    pub fn local() -> Self {
        Self(LOCAL.into())
    }

    /// Whoever has the token of this name.
    pub fn of_token(name: &PrincipalName) -> Self {
        Self(name.shared())
    }

    /// Whom an issuer calls so.
    pub fn of_issuer(name: &PrincipalName, issuer: &str) -> Self {
        Self(format!("{name} {issuer}").into())
    }

    /// The text of it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, to be kept.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl FromStr for PrincipalId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let Some((name, issuer)) = text.split_once(' ') else {
            return Ok(Self::of_token(&text.parse()?));
        };
        let name = name.parse()?;
        let unfit = |character: char| character.is_whitespace() || character.is_control();
        if issuer.is_empty() || issuer.contains(unfit) {
            return Err(InvalidId::Issuer);
        }
        Ok(Self::of_issuer(&name, issuer))
    }
}

impl Borrow<str> for PrincipalId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
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
    use super::{InvalidId, InvalidName, Principal, PrincipalId, PrincipalName};

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
    fn one_name_of_a_token_and_of_two_issuers_means_three_principals() {
        let ana: PrincipalName = "ana".parse().unwrap();
        let all = [
            PrincipalId::of_token(&ana),
            PrincipalId::of_issuer(&ana, "https://one.example"),
            PrincipalId::of_issuer(&ana, "https://two.example"),
        ];
        for (place, id) in all.iter().enumerate() {
            assert_eq!(id.as_str().parse().as_ref(), Ok(id));
            assert!(all.iter().take(place).all(|other| other != id), "{id}");
        }
        assert_eq!(all[1].as_str(), "ana https://one.example");
        for (text, expected) in [
            ("", InvalidId::Name(InvalidName::Empty)),
            (" https://one.example", InvalidId::Name(InvalidName::Empty)),
            ("local", InvalidId::Name(InvalidName::Local)),
            ("ana ", InvalidId::Issuer),
            ("ana  https://one.example", InvalidId::Issuer),
            ("ana https://one.example x", InvalidId::Issuer),
            ("ana https://one\n.example", InvalidId::Issuer),
        ] {
            assert_eq!(text.parse::<PrincipalId>(), Err(expected), "{text:?}");
        }
    }

    #[test]
    fn whoever_comes_to_an_open_gateway_owns_it() {
        let local = Principal::local();
        assert_eq!(local.name.as_str(), "local");
        assert!(local.is_admin);
    }
}
