//! Finds the `id` of a message that cannot be parsed, so that its request fails at once instead of
//! waiting for a deadline. Works on a stream of bytes without keeping them.

use crate::raw::RawJson;

/// The longest id worth remembering.
const MAX_ID_BYTES: usize = 256;

/// Bytes of the longest key that matters.
const LONGEST_KEY: usize = 7;

/// Walks over JSON text of any size and remembers the top-level `id`, if it is a number or a string.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The beginning of the current string, enough to tell the keys that matter.
    key: Vec<u8>,
    place: Place,
    /// The value of `id` as far as it was read.
    token: Vec<u8>,
    found: Option<Vec<u8>>,
    role: Role,
}

/// What the members seen so far make of the text.
#[derive(Debug, Default, PartialEq)]
enum Role {
    /// Maybe a log line.
    #[default]
    Unknown,
    /// It has a member that only messages have.
    Message,
    /// It has a result or an error, so it asks nothing.
    Answer,
    /// It has a method, so it answers nothing.
    Request,
}

#[derive(Debug, Default, PartialEq)]
enum Place {
    #[default]
    Elsewhere,
    /// A top-level string was read, which is a key if a colon follows.
    AfterKey,
    /// Before the value of `id`.
    BeforeValue,
    /// Inside a value of `id` that is a number.
    InNumber,
    /// Inside a value of `id` that is a string.
    InText,
}

impl IdScanner {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The request of ours that the text seems to answer: its id is a number, or the digits of one in
    /// a string. A log line in JSON may have an `id` too, and a request of the peer has ids of its own.
    pub(crate) fn id(&self) -> Option<u64> {
        if !matches!(self.role, Role::Message | Role::Answer) {
            return None;
        }
        let text = std::str::from_utf8(self.found.as_ref()?).ok()?;
        let text = text.trim_matches('"');
        text.strip_suffix(".0").unwrap_or(text).parse().ok()
    }

    /// The id of the peer's request that the text seems to be, as it was written.
    pub(crate) fn asked(&self) -> Option<RawJson> {
        if !matches!(self.role, Role::Message | Role::Request) {
            return None;
        }
        RawJson::parse(self.found.clone()?).ok()
    }

    fn step(&mut self, byte: u8) {
        match self.place {
            Place::BeforeValue => return self.step_before_value(byte),
            Place::InNumber => return self.step_number(byte),
            Place::InText => return self.step_text(byte),
            Place::Elsewhere | Place::AfterKey => {}
        }
        if self.in_string {
            return self.step_string(byte);
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.key.clear();
                self.place = Place::Elsewhere;
            }
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                self.place = Place::Elsewhere;
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b':' if self.place == Place::AfterKey => self.key_ends(),
            _ => {}
        }
    }

    fn key_ends(&mut self) {
        self.place = Place::Elsewhere;
        match self.key.as_slice() {
            b"id" => {
                self.place = Place::BeforeValue;
                self.token.clear();
            }
            b"jsonrpc" if self.role == Role::Unknown => self.role = Role::Message,
            b"result" | b"error" if self.role != Role::Request => self.role = Role::Answer,
            b"method" => self.role = Role::Request,
            _ => {}
        }
    }

    fn step_string(&mut self, byte: u8) {
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
            return;
        } else if byte == b'"' {
            self.in_string = false;
            if self.depth == 1 {
                self.place = Place::AfterKey;
            }
            return;
        }
        if self.key.len() < LONGEST_KEY + 1 {
            self.key.push(byte);
        }
    }

    fn step_before_value(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'"' => {
                self.place = Place::InText;
                self.token.push(byte);
            }
            b'0'..=b'9' | b'-' => {
                self.place = Place::InNumber;
                self.token.push(byte);
            }
            _ => {
                self.place = Place::Elsewhere;
                self.step(byte);
            }
        }
    }

    fn step_number(&mut self, byte: u8) {
        if matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E') {
            return self.keep(byte);
        }
        self.value_ends();
        self.step(byte);
    }

    fn step_text(&mut self, byte: u8) {
        self.keep(byte);
        if self.escaped {
            self.escaped = false;
        } else if byte == b'\\' {
            self.escaped = true;
        } else if byte == b'"' {
            self.value_ends();
        }
    }

    /// One byte over the cap is kept as well: it tells that the value is too long.
    fn keep(&mut self, byte: u8) {
        if self.token.len() <= MAX_ID_BYTES {
            self.token.push(byte);
        }
    }

    fn value_ends(&mut self) {
        self.place = Place::Elsewhere;
        let token = std::mem::take(&mut self.token);
        if self.found.is_none() && token.len() <= MAX_ID_BYTES {
            self.found = Some(token);
        }
    }
}

/// The request of ours that a whole, possibly broken text seems to answer.
pub(crate) fn salvage_id(bytes: &[u8]) -> Option<u64> {
    scan(bytes).id()
}

/// The id of the peer's request that a whole, possibly broken text seems to be.
pub(crate) fn salvage_asked(bytes: &[u8]) -> Option<RawJson> {
    scan(bytes).asked()
}

fn scan(bytes: &[u8]) -> IdScanner {
    let mut scanner = IdScanner::default();
    scanner.feed(bytes);
    // Ends a number that the text ends with.
    scanner.feed(b",");
    scanner
}

#[cfg(test)]
mod tests {
    use super::{MAX_ID_BYTES, salvage_asked, salvage_id};
    use crate::raw::RawJson;

    #[track_caller]
    fn check(text: &[u8], expected: Option<u64>) {
        assert_eq!(salvage_id(text), expected);
    }

    #[test]
    fn finds_the_id_wherever_it_stands() {
        check(br#"{"jsonrpc":"2.0","id":7,"result":{"x"#, Some(7));
        check(
            br#"{"result":{"id":3,"a":[{"id":4}]},"jsonrpc":"2.0","id": 12}"#,
            Some(12),
        );
        check(br#"{"id":"15","result":1"#, Some(15));
        check(b"{\"result\":\"\xff\xfe\",\"id\":9}", Some(9));
        check(br#"{"jsonrpc":"2.0","id":8"#, Some(8));
    }

    #[test]
    fn is_not_fooled_by_text_that_looks_like_an_id() {
        check(br#"{"result":"\"id\":5,"}"#, None);
        check(br#"{"a":"id","b":4}"#, None);
        check(br#"{"result":{"id":5}}"#, None);
        check(br#"{"id":null,"result":5}"#, None);
        check(b"plain text id: 4", None);
        check(br#"{"level":30,"id":5,"msg":"a log line"}"#, None);
        check(
            br#"{"jsonrpc":"2.0","id":5,"method":"roots/list","params":"#,
            None,
        );
        check(br#"{"jsonrpc":"2.0","result":"method","id":5}"#, Some(5));
    }
    #[track_caller]
    fn check_asked(text: &[u8], expected: Option<&str>) {
        let asked = salvage_asked(text);
        assert_eq!(asked.as_ref().map(RawJson::as_str), expected);
    }

    #[test]
    fn the_id_of_a_request_is_kept_as_it_was_written() {
        check_asked(
            br#"{"jsonrpc":"2.0","id":7,"method":"x","params":{"#,
            Some("7"),
        );
        check_asked(br#"{"id": "7" ,"method":"x",,}"#, Some(r#""7""#));
        check_asked(
            br#"{"method":"x","id":"a\"b,}"} trash"#,
            Some(r#""a\"b,}""#),
        );
        check_asked(br#"{"method":"x","id":-1.5e3"#, Some("-1.5e3"));
        check_asked(br#"{"jsonrpc":"2.0","id":"half"#, None);
        check_asked(br#"{"jsonrpc":"2.0","id":[1],"method":"x""#, None);
        check_asked(b"{\"id\":\"\xff\",\"method\":\"x\"", None);
    }

    #[test]
    fn an_answer_is_never_taken_for_a_request() {
        check_asked(br#"{"jsonrpc":"2.0","id":7,"result":{"#, None);
        check_asked(br#"{"id":7,"error":{"message""#, None);
        check_asked(br#"{"level":30,"id":5,"msg":"a log line""#, None);
    }

    #[test]
    fn an_endless_id_is_not_remembered() {
        let digits = "1".repeat(MAX_ID_BYTES);
        let text = format!(r#"{{"method":"x","id":{digits}"#);
        check_asked(text.as_bytes(), Some(&digits));
        check_asked(format!("{text}1").as_bytes(), None);
    }
}
