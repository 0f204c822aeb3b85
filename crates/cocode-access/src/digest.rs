//! SHA-256, its text, and the comparison that tells nobody how close a guess was.

use std::fmt::Write as _;
use std::hint::black_box;

use ring::digest::{SHA256, digest};

/// Bytes of a hash.
pub(crate) const HASH_BYTES: usize = 32;

/// The SHA-256 of some bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; HASH_BYTES] {
    let mut hash = [0; HASH_BYTES];
    let computed = digest(&SHA256, bytes);
    // Both are as long as SHA-256 is.
    for (to, from) in hash.iter_mut().zip(computed.as_ref()) {
        *to = *from;
    }
    hash
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _never_fails = write!(text, "{byte:02x}");
        text
    })
}

/// The hash behind 64 lower-case hexadecimal digits. There is one text for each hash, so that no two
/// lines of a log can mean the same.
pub(crate) fn from_hex(text: &str) -> Option<[u8; HASH_BYTES]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * HASH_BYTES {
        return None;
    }
    let mut hash = [0; HASH_BYTES];
    for (to, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        for digit in pair {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            *to = (*to << 4) | value;
        }
    }
    Some(hash)
}

/// Whether two hashes are the same. Takes as long for those that differ early as for others.
pub(crate) fn same(left: &[u8; HASH_BYTES], right: &[u8; HASH_BYTES]) -> bool {
    let differences = left
        .iter()
        .zip(right)
        .fold(0, |found, (left, right)| black_box(found | (left ^ right)));
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::{from_hex, hex, same, sha256};

    #[test]
    fn hashes_are_those_of_the_standard_and_survive_their_text() {
        let hash = sha256(b"abc");
        let text = hex(&hash);
        assert_eq!(
            text,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(from_hex(&text), Some(hash));
        for wrong in [
            "",
            "ba",
            &text.to_uppercase(),
            &format!("{text}0"),
            &text.replace('b', "g"),
        ] {
            assert_eq!(from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_equal_hashes_are_the_same() {
        let hash = sha256(b"abc");
        assert!(same(&hash, &sha256(b"abc")));
        for place in 0..hash.len() {
            let mut other = hash;
            other[place] ^= 1;
            assert!(!same(&hash, &other), "{place}");
        }
    }
}
