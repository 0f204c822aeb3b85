//! Finds the `id` of a message that cannot be parsed, so that its request fails at once instead of
//! waiting for a deadline. Works on a stream of bytes without keeping them.

/// The longest id worth remembering: our own ids are numbers.
const MAX_ID_BYTES: usize = 24;

/// Bytes of the longest key that matters.
const LONGEST_KEY: usize = 7;

/// Walks over JSON text of any size and remembers the top-level `id`, if it is a number (or the
/// digits of one in a string) and the text looks like an answer: a log line in JSON may have an
/// `id` too, and a request of the server has ids of its own.
#[derive(Debug, Default)]
pub(crate) struct IdScanner {
    depth: u32,
    in_string: bool,
    escaped: bool,
    /// The beginning of the current string, enough to tell the keys that matter.
    key: Vec<u8>,
    place: Place,
    digits: Vec<u8>,
    found: Option<u64>,
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
    /// It has a method, so it answers nothing.
    Request,
}

#[derive(Debug, Default, PartialEq)]
enum Place {
    #[default]
    Elsewhere,
    /// A top-level string was read, which is a key if a colon follows.
    AfterKey,
    /// Inside the value of `id`.
    InValue,
}

impl IdScanner {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    pub(crate) fn id(&self) -> Option<u64> {
        self.found.filter(|_| self.role == Role::Message)
    }

    fn step(&mut self, byte: u8) {
        if self.place == Place::InValue && self.depth == 1 {
            return self.step_value(byte);
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
                self.place = Place::InValue;
                self.digits.clear();
            }
            b"jsonrpc" | b"result" | b"error" if self.role == Role::Unknown => {
                self.role = Role::Message;
            }
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

    fn step_value(&mut self, byte: u8) {
        match byte {
            b'0'..=b'9' if self.digits.len() < MAX_ID_BYTES => self.digits.push(byte),
            b' ' | b'\t' | b'\r' | b'\n' | b'"' if self.digits.is_empty() => {}
            _ => {
                self.found = self.found.or_else(|| {
                    std::str::from_utf8(&self.digits)
                        .ok()
                        .and_then(|digits| digits.parse().ok())
                });
                self.place = Place::Elsewhere;
                if byte != b'"' {
                    self.step(byte);
                }
            }
        }
    }
}

/// The top-level id in a whole, possibly broken message.
pub(crate) fn salvage_id(bytes: &[u8]) -> Option<u64> {
    let mut scanner = IdScanner::default();
    scanner.feed(bytes);
    scanner.feed(b",");
    scanner.id()
}

#[cfg(test)]
mod tests {
    use super::salvage_id;

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
}
