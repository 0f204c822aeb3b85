//! Estimates tokens from the bytes of UTF-8 text.

/// Quarters of a token that each byte stands for. The first byte of a character carries its whole
/// weight, so that text is counted in one pass without decoding it.
const QUARTERS: [u8; 256] = quarters_by_byte();

/// What four characters of plain English cost.
const QUARTERS_PER_TOKEN: u64 = 4;

const fn quarters_by_byte() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte {
            0x00..=0x7f => 1,
            // Continues a character that was counted at its first byte.
            0x80..=0xbf => 0,
            // Latin with accents, Greek, Cyrillic, Hebrew, Arabic; South Asian scripts; punctuation
            // and symbols.
            0xc0..=0xe2 => 2,
            // Kana, Han, Hangul.
            0xe3..=0xef => 4,
            // Emoji and rare Han.
            _ => 8,
        };
        byte += 1;
    }
    table
}

/// About how many tokens a model reads in this text.
///
/// An estimate by rule of thumb: four characters of ASCII are one token, a character of Chinese,
/// Japanese or Korean is one, other characters are half of one, and emoji are two. Real tokenizers
/// differ from each other, and from this by some tens of percent.
///
/// ```
/// use cocode_core::estimate_tokens;
///
/// assert_eq!(estimate_tokens("To be, or not to be?"), 5);
/// assert_eq!(estimate_tokens("東京都"), 3);
/// ```
#[must_use]
pub fn estimate_tokens(text: &str) -> u64 {
    quarters(text).div_ceil(QUARTERS_PER_TOKEN)
}

/// Cuts a text in two, the first part being as long as so many tokens allow. A character is never
/// cut.
#[must_use]
pub fn split_at_tokens(text: &str, tokens: u64) -> (&str, &str) {
    text.split_at(prefix_of(text, tokens.saturating_mul(QUARTERS_PER_TOKEN)))
}

/// What a text weighs, in quarters of a token.
pub(super) fn quarters(text: &str) -> u64 {
    // A block of ASCII is a block of ones, and most text is ASCII.
    let blocks = text.as_bytes().chunks(256);
    let weigh = |block: &[u8]| {
        if block.is_ascii() {
            block.len() as u64
        } else {
            block.iter().map(|byte| u64::from(weight(*byte))).sum()
        }
    };
    blocks.map(weigh).sum()
}

/// What so many tokens allow, in quarters of a token.
pub(super) fn quarters_of(tokens: u64) -> u64 {
    tokens.saturating_mul(QUARTERS_PER_TOKEN)
}

/// The end of the longest beginning that weighs no more than `quarters`.
pub(super) fn prefix_of(text: &str, quarters: u64) -> usize {
    let mut left = quarters;
    for (position, byte) in text.bytes().enumerate() {
        match left.checked_sub(u64::from(weight(byte))) {
            Some(rest) => left = rest,
            None => return position,
        }
    }
    text.len()
}

/// The start of the longest end that weighs no more than `quarters`.
pub(super) fn suffix_of(text: &str, quarters: u64) -> usize {
    let mut left = quarters;
    let mut start = text.len();
    for (position, byte) in text.bytes().enumerate().rev() {
        match left.checked_sub(u64::from(weight(byte))) {
            // The bytes of a character are kept together: only its first has a weight.
            Some(rest) => left = rest,
            None => return start,
        }
        if text.is_char_boundary(position) {
            start = position;
        }
    }
    start
}

fn weight(byte: u8) -> u8 {
    QUARTERS.get(usize::from(byte)).copied().unwrap_or(1)
}
