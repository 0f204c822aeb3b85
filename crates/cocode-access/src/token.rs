//! The gateway's own tokens: `cocode_`, 256 random bits and a checksum.
//!
//! The prefix lets scanners find a token that got into a place where it should not be, and the checksum
//! lets them be sure, and lets a person who typed one wrongly know that. It is no secret and protects
//! nothing.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::digest::sha256;
use crate::token_store::TokenHash;

/// What every token begins with.
pub const TOKEN_PREFIX: &str = "cocode_";

/// 256 bits.
const RANDOM_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;
/// Both as text.
const ENCODED_LENGTH: usize = (RANDOM_BYTES + CHECKSUM_BYTES) / 3 * 4;

/// A token. It cannot be printed, and its memory is wiped when it is dropped.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// The system gave no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random numbers, so no token can be made")]
pub struct NoRandomness;

/// Why a text is no token. The text is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAToken {
    /// It is something else.
    #[error("this is not a token of a gateway: those begin with `{TOKEN_PREFIX}`")]
    SomethingElse,
    /// It was one before somebody copied it.
    #[error("this was not copied right: it is no whole token of a gateway")]
    Mistyped,
}

impl Token {
    /// A new one.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut random = Zeroizing::new([0; RANDOM_BYTES]);
        SystemRandom::new()
            .fill(&mut *random)
            .map_err(|_unspecified| NoRandomness)?;
        Ok(Self::of(&random))
    }

    fn of(random: &[u8; RANDOM_BYTES]) -> Self {
        let mut bytes = Zeroizing::new(Vec::with_capacity(RANDOM_BYTES + CHECKSUM_BYTES));
        bytes.extend_from_slice(random);
        bytes.extend_from_slice(&checksum(random));
        let mut text = Zeroizing::new(String::with_capacity(TOKEN_PREFIX.len() + ENCODED_LENGTH));
        text.push_str(TOKEN_PREFIX);
        URL_SAFE_NO_PAD.encode_string(&*bytes, &mut text);
        Self(text)
    }

    /// Recognises a token.
    pub fn parse(text: &str) -> Result<Self, NotAToken> {
        let encoded = text
            .strip_prefix(TOKEN_PREFIX)
            .ok_or(NotAToken::SomethingElse)?;
        if encoded.len() != ENCODED_LENGTH {
            return Err(NotAToken::Mistyped);
        }
        let bytes = URL_SAFE_NO_PAD
            .decode(encoded)
            .map(Zeroizing::new)
            .map_err(|_not_base64| NotAToken::Mistyped)?;
        let is_whole = bytes
            .split_first_chunk::<RANDOM_BYTES>()
            .is_some_and(|(random, sum)| checksum(random) == sum);
        if is_whole {
            Ok(Self(Zeroizing::new(text.to_owned())))
        } else {
            Err(NotAToken::Mistyped)
        }
    }

    /// The text itself. Whoever calls this shows it once to its owner, and neither logs nor keeps it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn hash(&self) -> TokenHash {
        TokenHash::from_bytes(sha256(self.0.as_bytes()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

fn checksum(random: &[u8; RANDOM_BYTES]) -> [u8; CHECKSUM_BYTES] {
    let mut bytes = Zeroizing::new(TOKEN_PREFIX.as_bytes().to_vec());
    bytes.extend_from_slice(random);
    let [first, second, third, fourth, ..] = sha256(&bytes);
    [first, second, third, fourth]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{NotAToken, Token};

    #[test]
    fn tokens_are_long_never_repeat_and_cannot_be_printed() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.expose().len(), 55);
        assert_ne!(one.expose(), other.expose());
        assert_ne!(one.hash(), other.hash());
        assert_eq!(format!("{one:?}"), "Token(…)");
        let again = Token::parse(one.expose()).unwrap();
        assert_eq!(again.hash(), one.hash());
    }

    #[test]
    fn the_text_and_the_hash_of_a_token_are_the_same_in_every_version() {
        let token = Token::of(&[7; 32]);
        assert_eq!(
            token.expose(),
            "cocode_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwff_zPK"
        );
        assert_eq!(
            token.hash().to_string(),
            "4489d2082bddfd53b21639530502c030333ce7ddd06aaedef92b444766b5a256"
        );
    }

    #[test]
    fn what_is_no_token_is_told_from_what_was_copied_wrongly() {
        let token = Token::generate().unwrap();
        for (text, expected) in [
            (String::new(), NotAToken::SomethingElse),
            ("a.b.c".to_owned(), NotAToken::SomethingElse),
            (token.expose().to_uppercase(), NotAToken::SomethingElse),
            ("cocode_".to_owned(), NotAToken::Mistyped),
            (format!("{}A", token.expose()), NotAToken::Mistyped),
            (format!("{} ", token.expose()), NotAToken::Mistyped),
            (
                token.expose().split_at(54).0.to_owned(),
                NotAToken::Mistyped,
            ),
        ] {
            assert_eq!(Token::parse(&text).unwrap_err(), expected);
        }
    }

    proptest! {
        #[test]
        fn one_wrong_character_is_noticed(place in 7_usize..55, to in "[A-Za-z0-9_-]") {
            let token = Token::generate().unwrap();
            let mut text = token.expose().to_owned();
            prop_assume!(text.get(place..=place) != Some(to.as_str()));
            text.replace_range(place..=place, &to);
            prop_assert_eq!(Token::parse(&text).unwrap_err(), NotAToken::Mistyped);
        }
    }
}
