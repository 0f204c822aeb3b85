//! Looks at the beginning of messages, just far enough to know what they are: whose id, which method.
//! Nothing is checked, since whoever gets the message does that.

use memchr::memchr2;

/// What a message says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head<'a> {
    /// The id as it is written.
    pub(super) id: Option<&'a [u8]>,
    /// The method as it is written, without its quotes.
    pub(super) method: Option<&'a [u8]>,
    /// It has a result or an error.
    pub(super) is_answer: bool,
    /// It has an error.
    pub(super) is_error: bool,
}

impl Head<'_> {
    /// Nothing more is to be learned.
    fn is_known(&self) -> bool {
        self.id.is_some() && (self.method.is_some() || self.is_answer)
    }
}

/// The head of one message. Of what is no object, nothing is known.
pub(super) fn head(message: &[u8]) -> Head<'_> {
    let mut head = Head::default();
    let mut rest = Rest(message);
    if rest.next() != Some(b'{') {
        return head;
    }
    while rest.peek() == Some(b'"') {
        let Some(key) = rest.text() else {
            return head;
        };
        if rest.next() != Some(b':') {
            return head;
        }
        match key {
            b"result" => head.is_answer = true,
            b"error" => (head.is_answer, head.is_error) = (true, true),
            b"id" => head.id = rest.value().filter(|id| *id != b"null"),
            b"method" => head.method = rest.value().and_then(unquoted),
            _ => {
                rest.value();
            }
        }
        if head.is_known() {
            return head;
        }
        if matches!(key, b"result" | b"error") {
            rest.value();
        }
        if rest.next() != Some(b',') {
            return head;
        }
        rest.skip_space();
    }
    head
}

fn unquoted(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"\"")?.strip_suffix(b"\"")
}

/// What is still to be looked at.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn skip_space(&mut self) {
        let n_spaces = self.0.iter().take_while(|byte| byte.is_ascii_whitespace());
        self.advance(n_spaces.count());
    }

    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.0.first().copied()
    }

    fn next(&mut self) -> Option<u8> {
        let next = self.peek();
        self.advance(1);
        next
    }

    fn advance(&mut self, n_bytes: usize) {
        self.0 = self.0.get(n_bytes..).unwrap_or_default();
    }

    fn take(&mut self, n_bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at_checked(n_bytes).unwrap_or((self.0, &[]));
        self.0 = rest;
        taken
    }

    /// A text, without its quotes.
    fn text(&mut self) -> Option<&'a [u8]> {
        unquoted(self.quoted()?)
    }

    fn quoted(&mut self) -> Option<&'a [u8]> {
        let end = end_of_text(self.0)?;
        Some(self.take(end))
    }

    /// A whole value of any kind, without looking into it.
    fn value(&mut self) -> Option<&'a [u8]> {
        match self.peek()? {
            b'"' => self.quoted(),
            b'{' | b'[' => {
                let end = end_of_container(self.0)?;
                Some(self.take(end))
            }
            _ => {
                let is_end =
                    |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
                let end = self.0.iter().position(is_end)?;
                Some(self.take(end))
            }
        }
    }
}

/// Where the text ends that begins here with a quote.
fn end_of_text(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes.get(found)? {
            b'"' => return Some(found + 1),
            // What follows a backslash ends nothing.
            _ => at = found + 2,
        }
    }
}

/// Where the object or list ends that begins here.
fn end_of_container(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += end_of_text(bytes.get(at..)?)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Head, head};

    #[track_caller]
    fn check(message: &str, id: Option<&str>, method: Option<&str>, is_answer: bool) {
        let expected = Head {
            id: id.map(str::as_bytes),
            method: method.map(str::as_bytes),
            is_answer,
            is_error: is_answer && message.contains("\"error\""),
        };
        assert_eq!(head(message.as_bytes()), expected, "{message}");
    }

    #[test]
    fn heads_are_found_in_any_order_and_spelling() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"id":9}}"#,
            Some("1"),
            Some("tools/call"),
            false,
        );
        check(
            r#" { "params" : {"id":9,"method":"no","a":["]}",{"b":"\""}]} , "method":"m" , "id" : "x\"y" } "#,
            Some(r#""x\"y""#),
            Some("m"),
            false,
        );
        check(r#"{"id":7,"result":{"id":8}}"#, Some("7"), None, true);
        check(
            r#"{"error":{"code":-1,"message":"id"},"id":7}"#,
            Some("7"),
            None,
            true,
        );
        check(
            r#"{"method":"notifications/x","params":{"a":[1,2,{}]}}"#,
            None,
            Some("notifications/x"),
            false,
        );
        check(r#"{"id":null,"error":{}}"#, None, None, true);
    }

    #[test]
    fn what_is_no_message_has_no_head_and_does_no_harm() {
        for odd in [
            "",
            "{",
            "[",
            "null",
            "7",
            "{}",
            "{\"",
            "{\"id",
            "{\"id\"",
            "{\"id\":",
            "{\"id\":{",
            "{\"a\":\"\\",
            "{,}",
            "{\"a\" 1}",
            "}",
            "{\"a\":]]}",
            "[{\"id\":1}]",
        ] {
            check(odd, None, None, false);
        }
        check(r#"{"id":1"#, None, None, false);
        check(
            r#"{"id":1,"method":"m","params":{"cut"#,
            Some("1"),
            Some("m"),
            false,
        );
    }
}
