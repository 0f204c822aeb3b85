//! What text does to a terminal: how wide it is, and how it is made harmless. Everything that is
//! drawn comes through [`harmless`], because models, tools and servers write what they like.

use std::borrow::Cow;
use std::fmt::Write as _;

use cocode_agent::is_hidden_format;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// Columns from one tab stop to the next.
const TAB_COLUMNS: usize = 4;

/// How many columns a text takes that holds no line ends.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_width).sum()
}

/// How many columns one character takes, as a person counts characters.
pub(crate) fn grapheme_width(grapheme: &str) -> usize {
    grapheme.width().min(2)
}

/// The characters as a person counts them.
pub(crate) fn graphemes(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    text.graphemes(true)
}

/// The beginning of a text that fits, with a mark if something is missing.
pub(crate) fn shortened(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut kept = String::new();
    let mut taken = 0;
    for grapheme in text.graphemes(true) {
        let next = taken + grapheme_width(grapheme);
        if next + 1 > columns {
            break;
        }
        taken = next;
        kept.push_str(grapheme);
    }
    kept.push('…');
    Cow::Owned(kept)
}

/// The first line of a text, as one that can be shown.
pub(crate) fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// The same text with nothing in it that a terminal would obey. Line ends stay; tabs become spaces;
/// sequences for colors and the like are left out; every other control character is shown as the
/// picture of itself; what hides or reorders text is shown as its number.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_special) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len());
    let mut column = 0;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\n' => {
                harmless.push('\n');
                column = 0;
                continue;
            }
            '\r' if rest.as_str().starts_with('\n') => continue,
            '\t' => {
                let spaces = TAB_COLUMNS - column % TAB_COLUMNS;
                harmless.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
                continue;
            }
            '\u{1b}' => {
                if let Some(after) = after_sequence(rest.as_str()) {
                    rest = after.chars();
                    continue;
                }
                harmless.push('␛');
            }
            other => push_visible(&mut harmless, other),
        }
        column += 1;
    }
    Cow::Owned(harmless)
}

fn is_special(character: char) -> bool {
    (character.is_control() && character != '\n') || is_hidden_format(character)
}

fn push_visible(harmless: &mut String, character: char) {
    match u32::from(character) {
        code @ 0..0x20 => harmless.push(char::from_u32(0x2400 + code).unwrap_or('�')),
        0x7f => harmless.push('␡'),
        code @ 0x80..0xa0 => push_number(harmless, code),
        code if is_hidden_format(character) => push_number(harmless, code),
        _ => harmless.push(character),
    }
}

fn push_number(harmless: &mut String, code: u32) {
    // Writing to a string does not fail.
    let _infallible = write!(harmless, "<{code:02X}>");
}

/// What follows a well-formed control sequence (`ESC [ … letter`) or a string for the terminal
/// (`ESC ] … BEL` or `ESC ] … ESC \`), if the text after an ESC is one that ends on its line.
fn after_sequence(text: &str) -> Option<&str> {
    if let Some(sequence) = text.strip_prefix('[') {
        let end = sequence.find(|character: char| !matches!(character, ' '..='?'))?;
        let (_, last) = sequence.split_at_checked(end)?;
        let mut after = last.chars();
        let is_final = after
            .next()
            .is_some_and(|character| matches!(character, '@'..='~'));
        return is_final.then_some(after.as_str());
    }
    let string = text.strip_prefix(']')?;
    let end = string.find(|character: char| character.is_control())?;
    let (_, last) = string.split_at_checked(end)?;
    last.strip_prefix('\u{7}')
        .or_else(|| last.strip_prefix("\u{1b}\\"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        for (given, expected) in [
            ("plain, ä 漢 🙂\nnext", "plain, ä 漢 🙂\nnext"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]52;c;unfinished", "␛]52;c;unfinished"),
            ("\u{1b}[2", "␛[2"),
            ("\u{1b}c", "␛c"),
            ("bell\u{7} del\u{7f}", "bell␇ del␡"),
            ("c1\u{9b}2J", "c1<9B>2J"),
            ("a\r\nb\rc", "a\nb␍c"),
            ("a\tb\n\tc", "a   b\n    c"),
            ("abc\u{202e}cba", "abc<202E>cba"),
            ("a\u{200f}b\u{61c}\u{200e}c", "a<200F>b<61C><200E>c"),
            ("a\u{200b}b\u{2066}\u{e0041}", "a<200B>b<2066><E0041>"),
        ] {
            assert_eq!(harmless(given), expected, "{given:?}");
        }
    }

    #[test]
    fn every_control_character_is_made_harmless() {
        let all: String = ('\0'..='\u{ffff}').collect();
        let left: Vec<char> = harmless(&all)
            .chars()
            .filter(|character| character.is_control() && *character != '\n')
            .collect();
        assert_eq!(left, Vec::<char>::new());
    }

    #[test]
    fn width_counts_columns() {
        for (text, columns) in [("abc", 3), ("漢字", 4), ("e\u{301}", 1), ("👩‍👩‍👧", 2), ("", 0)]
        {
            assert_eq!(width(text), columns, "{text}");
        }
    }

    #[test]
    fn text_that_does_not_fit_is_marked() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdef", 5), "abcd…");
        assert_eq!(shortened("漢字漢", 5), "漢字…");
        assert_eq!(shortened("漢字漢", 4), "漢…");
        assert_eq!(shortened("abc", 0), "…");
    }
}
