//! Values that nobody can guess, and the comparison that tells nobody how close a guess was.

use std::hint::black_box;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::secret::Secret;

/// The system gave no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random numbers")]
pub struct NoRandomness;

/// So many random bytes in base64url.
pub(crate) fn unguessable(bytes: usize) -> Result<Secret, NoRandomness> {
    let mut random = Zeroizing::new(vec![0; bytes]);
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_unspecified| NoRandomness)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(&*random)))
}

/// Whether two texts are the same. Takes as long for texts that differ early as for others, so that
/// the time says nothing about what was expected; only the length shows.
pub(crate) fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let differences = left
        .iter()
        .zip(right)
        .fold(0, |found, (left, right)| black_box(found | (left ^ right)));
    left.len() == right.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::{same, unguessable};

    #[test]
    fn random_values_are_url_safe_and_never_repeat() {
        let (one, other) = (unguessable(32).unwrap(), unguessable(32).unwrap());
        assert_eq!(one.expose().len(), 43);
        assert!(
            one.expose()
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        );
        assert_ne!(one.expose(), other.expose());
    }

    #[test]
    fn only_equal_texts_are_the_same() {
        let cases = [
            ("", "", true),
            ("state", "state", true),
            ("state", "statf", false),
            ("state", "State", false),
            ("state", "stat", false),
            ("stat", "state", false),
            ("", "state", false),
        ];
        for (left, right, expected) in cases {
            assert_eq!(same(left, right), expected, "{left:?} {right:?}");
        }
    }
}
