//! Values that nobody can guess, how they are kept, and how they are compared.

use std::hint::black_box;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::refusal::{Refusal, RefusalStatus};

/// The SHA-256 of something that is not kept itself.
pub(crate) type Print = [u8; 32];

/// So many random bytes.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Refusal> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    match filled {
        Ok(()) => Ok(bytes),
        Err(_unspecified) => Err(Refusal::new(
            RefusalStatus::Unavailable,
            "no-randomness",
            "the system gave no random numbers, so nothing secret can be made",
        )
        .hint("try again; if it stays so, look at the kernel's log")),
    }
}

/// Bytes as they can stand in a header or an address.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The print of a text, different for each purpose.
pub(crate) fn print_of(purpose: &str, text: &str) -> Print {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [purpose.as_bytes(), &[0], text.as_bytes()] {
        context.update(part);
    }
    let mut print = [0; 32];
    for (to, from) in print.iter_mut().zip(context.finish().as_ref()) {
        *to = *from;
    }
    print
}

/// Whether two texts are the same. The time that this takes says nothing about where they differ.
pub(crate) fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one
        .iter()
        .zip(other)
        .fold(0, |found, (one, other)| black_box(found | (one ^ other)));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::{print_of, random, same, text_of};

    #[test]
    fn random_values_differ_and_are_fit_for_headers() {
        let (one, other) = (random::<32>().unwrap(), random::<32>().unwrap());
        assert_ne!(one, other);
        let text = text_of(&one);
        assert_eq!(text.len(), 43);
        assert!(
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        );
    }

    #[test]
    fn prints_depend_on_text_and_purpose() {
        assert_eq!(print_of("a", "b"), print_of("a", "b"));
        assert_ne!(print_of("a", "b"), print_of("a", "c"));
        assert_ne!(print_of("a", "bc"), print_of("ab", "c"));
    }

    #[test]
    fn only_equal_texts_are_the_same() {
        for (one, other, expected) in [
            ("", "", true),
            ("key", "key", true),
            ("key", "kex", false),
            ("key", "ke", false),
            ("ke", "key", false),
        ] {
            assert_eq!(
                same(one.as_bytes(), other.as_bytes()),
                expected,
                "{one} {other}"
            );
        }
    }
}
