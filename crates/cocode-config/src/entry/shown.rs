//! How texts are shown to people: as a shell would want them, and without characters that would
//! move the cursor, turn the text around or not be seen at all.

use super::masked::{self, HIDDEN};

/// A command line, each word as a shell would want it, without what looks like a secret.
pub(super) fn shown_words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words = masked::words(words).into_iter();
    let words: Vec<String> = words.map(|word| quoted(&visible(&word))).collect();
    words.join(" ")
}

/// A text in which everything can be seen: characters that steer a terminal, change the direction
/// of text or take no room are spelled out.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_invisible(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// A word, quoted where a shell would split it.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| {
        character.is_ascii_alphanumeric()
            || "-_./:=@%+,${}".contains(character)
            || HIDDEN.contains(character)
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}
