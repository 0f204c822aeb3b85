//! Finds the parts of a message without decoding any.
//!
//! Every message passes here, and nearly all of its bytes are inside of strings, which are searched
//! for their end many bytes at a time (`docs/decisions/0001` says what that brings). What is odd in any
//! way is left to a parser, which then has the last word: see [`Frame::parse`].
//!
//! [`Frame::parse`]: crate::Frame::parse

use std::ops::Range;

use memchr::memchr2;

/// Where the parts of a message are. A part that is there twice, or is `null` where that means
/// nothing, is left to the parser, too.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) id: Option<Range<usize>>,
    /// Without its quotes.
    pub(crate) method: Option<Range<usize>>,
    pub(crate) params: Option<Range<usize>>,
    pub(crate) result: Option<Range<usize>>,
    pub(crate) error: Option<Range<usize>>,
    /// Whether `jsonrpc` is `"2.0"`.
    pub(crate) has_version: bool,
}

/// The parts of a message that is as messages are; nothing if it is not, or may not be.
pub(crate) fn parts(text: &[u8]) -> Option<Parts> {
    std::str::from_utf8(text).ok()?;
    let mut cursor = Cursor { text, at: 0 };
    let mut parts = Parts::default();
    cursor.skip_blanks();
    cursor.take(b'{')?;
    cursor.skip_blanks();
    loop {
        let key = cursor.plain_string()?;
        cursor.colon()?;
        let begin = cursor.at;
        let place = match &text[key] {
            b"id" => Some(&mut parts.id),
            b"method" => {
                let method = cursor.plain_string()?;
                if parts.method.replace(method).is_some() {
                    return None;
                }
                None
            }
            b"jsonrpc" => {
                cursor.skip_value()?;
                parts.has_version = &text[begin..cursor.at] == br#""2.0""#;
                None
            }
            b"params" => Some(&mut parts.params),
            b"result" => Some(&mut parts.result),
            b"error" => Some(&mut parts.error),
            _ => {
                cursor.skip_value()?;
                None
            }
        };
        if let Some(place) = place {
            cursor.skip_value()?;
            let is_odd = text[begin] == b'n' || place.is_some();
            if is_odd {
                return None;
            }
            *place = Some(begin..cursor.at);
        }
        cursor.skip_blanks();
        match cursor.next()? {
            b',' => cursor.skip_blanks(),
            b'}' => break,
            _ => return None,
        }
    }
    cursor.skip_blanks();
    (cursor.at == text.len()).then_some(parts)
}

const WORD: usize = size_of::<u64>();

/// Strings up to here are looked at word by word.
const SHORT: usize = 4 * WORD;

/// Marks the first byte of a word that is a quote, a backslash or a control character, by its highest
/// bit. What is marked beyond the first means nothing.
fn ends_in(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHEST: u64 = 0x80 * ONES;
    // Where a byte is below the limit, the subtraction borrows its highest bit.
    let below = |word: u64, limit: u64| word.wrapping_sub(limit * ONES) & !word & HIGHEST;
    let is = |byte: u8| below(word ^ (u64::from(byte) * ONES), 1);
    below(word, 0x20) | is(b'"') | is(b'\\')
}

/// Walks over JSON. Whatever gives nothing has found something that is no JSON, or too odd.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

/// Which of the containers around a place are objects, one bit each, the innermost last.
#[derive(Default)]
struct Nesting {
    objects: u64,
    depth: u32,
}

impl Nesting {
    fn enter(&mut self, is_object: bool) -> Option<()> {
        if self.depth == u64::BITS {
            return None;
        }
        self.objects = self.objects << 1 | u64::from(is_object);
        self.depth += 1;
        Some(())
    }

    fn is_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn leave(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
    }
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn colon(&mut self) -> Option<()> {
        self.skip_blanks();
        self.take(b':')?;
        self.skip_blanks();
        Some(())
    }

    /// A string without escapes, without its quotes.
    fn plain_string(&mut self) -> Option<Range<usize>> {
        self.take(b'"')?;
        let begin = self.at;
        self.skip_plain()?;
        self.take(b'"')?;
        Some(begin..self.at - 1)
    }

    /// Goes on to the next quote or backslash of a string.
    fn skip_plain(&mut self) -> Option<()> {
        // Most strings are so short that to call for help would take longer than to look.
        for _ in 0..SHORT / WORD {
            let Some(word) = self.text[self.at..].first_chunk::<WORD>() else {
                break;
            };
            let ends = ends_in(u64::from_le_bytes(*word));
            if ends != 0 {
                self.at += ends.trailing_zeros() as usize / 8;
                return (self.peek()? >= 0x20).then_some(());
            }
            self.at += WORD;
        }
        let rest = &self.text[self.at..];
        let length = memchr2(b'"', b'\\', rest)?;
        // The least of all bytes: without an early end, many are compared at once.
        let least = rest[..length]
            .iter()
            .fold(u8::MAX, |least, byte| least.min(*byte));
        if least < 0x20 {
            return None;
        }
        self.at += length;
        Some(())
    }

    /// The rest of a string, whose first quote was taken.
    fn skip_string(&mut self) -> Option<()> {
        loop {
            self.skip_plain()?;
            if self.next()? == b'"' {
                return Some(());
            }
            match self.next()? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                b'u' => {
                    for _ in 0..4 {
                        self.next().filter(u8::is_ascii_hexdigit)?;
                    }
                }
                _ => return None,
            }
        }
    }

    fn skip_digits(&mut self) -> Option<()> {
        self.next().filter(u8::is_ascii_digit)?;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Some(())
    }

    fn skip_number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.skip_digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Some(())
    }

    fn skip_word(&mut self, word: &[u8]) -> Option<()> {
        let is_there = self.text[self.at..].starts_with(word);
        self.at += word.len();
        is_there.then_some(())
    }

    /// The key of a member, and what stands between it and its value.
    fn skip_key(&mut self) -> Option<()> {
        self.take(b'"')?;
        self.skip_string()?;
        self.colon()
    }

    /// One value, which begins here.
    fn skip_value(&mut self) -> Option<()> {
        let mut nesting = Nesting::default();
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    self.skip_string()?;
                }
                b'-' | b'0'..=b'9' => self.skip_number()?,
                b't' => self.skip_word(b"true")?,
                b'f' => self.skip_word(b"false")?,
                b'n' => self.skip_word(b"null")?,
                open @ (b'{' | b'[') => {
                    self.at += 1;
                    let is_object = open == b'{';
                    nesting.enter(is_object)?;
                    self.skip_blanks();
                    // The end of one is two behind its beginning, for both kinds.
                    if self.peek()? != open + 2 {
                        if is_object {
                            self.skip_key()?;
                        }
                        continue;
                    }
                }
                _ => return None,
            }
            if !self.goes_on(&mut nesting)? {
                return Some(());
            }
        }
    }

    /// What follows a value: whether there is another one.
    fn goes_on(&mut self, nesting: &mut Nesting) -> Option<bool> {
        while nesting.depth > 0 {
            self.skip_blanks();
            match (self.next()?, nesting.is_object()) {
                (b',', is_object) => {
                    self.skip_blanks();
                    if is_object {
                        self.skip_key()?;
                    }
                    return Some(true);
                }
                (b'}', true) | (b']', false) => nesting.leave(),
                _ => return None,
            }
        }
        Some(false)
    }
}
