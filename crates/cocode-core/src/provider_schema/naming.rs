//! Names and keys in the letters that a provider allows.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::dialect::Dialect;

/// The longest name of a tool, and of a key where those are limited.
const MAX_CHARS: usize = 64;
/// Hex digits of the hash that closes a replaced name: 40 bits.
const HASH_DIGITS: usize = 10;
/// How often another hash is tried.
const MAX_SALT: u8 = 16;

/// The name of a tool as the provider allows it. A legal one stays; any other is replaced by a cut
/// of it and a hash of the whole.
pub(super) fn of_tool(name: &str, dialect: Dialect) -> String {
    let starts_well =
        dialect != Dialect::Gemini || !name.starts_with(|first: char| !is_initial(first));
    let is_legal =
        |character| is_word(character) || (dialect == Dialect::Gemini && character == '.');
    if starts_well && fits(name, is_legal) {
        return name.to_owned();
    }
    replaced(name, is_legal, 0)
}

/// The key of an object as the provider allows it, different from all others in use.
pub(super) fn of_key(key: &str, taken: &BTreeSet<String>) -> String {
    let is_legal = |character| is_word(character) || character == '.';
    let mut name = replaced(key, is_legal, 0);
    for salt in 1..=MAX_SALT {
        if !taken.contains(&name) {
            break;
        }
        name = replaced(key, is_legal, salt);
    }
    name
}

/// Whether a key can stay as it is where keys are limited.
pub(super) fn is_legal_key(key: &str) -> bool {
    fits(key, |character| is_word(character) || character == '.')
}

/// The name of a definition, from the place that it is at.
pub(super) fn of_definition(place: &str, taken: &BTreeSet<String>) -> String {
    let last = place.rsplit('/').next().unwrap_or_default();
    let mut name: String = last
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || *character == '_')
        .take(MAX_CHARS / 2)
        .collect();
    if name.is_empty() {
        name.push_str("root");
    }
    let mut unique = name.clone();
    let mut number = 2;
    while taken.contains(&unique) {
        unique = format!("{name}_{number}");
        number += 1;
    }
    unique
}

fn fits(name: &str, is_legal: impl Fn(char) -> bool) -> bool {
    !name.is_empty() && name.len() <= MAX_CHARS && name.chars().all(is_legal)
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

fn is_initial(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

fn replaced(name: &str, is_legal: impl Fn(char) -> bool, salt: u8) -> String {
    let room = MAX_CHARS - HASH_DIGITS - 1;
    let mut text = String::with_capacity(MAX_CHARS);
    if !name.starts_with(is_initial) {
        text.push('_');
    }
    let letters = name.chars().map(
        |character| {
            if is_legal(character) { character } else { '_' }
        },
    );
    text.extend(letters.take(room - text.len()));
    let mut hasher = Sha256::new();
    hasher.update(name);
    hasher.update([salt]);
    text.push('_');
    for byte in hasher.finalize().iter().take(HASH_DIGITS / 2) {
        for digit in [byte >> 4, byte & 0xf] {
            text.extend(char::from_digit(u32::from(digit), 16));
        }
    }
    text
}
