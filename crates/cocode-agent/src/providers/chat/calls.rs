//! Calls that come in pieces, from servers that number the pieces and from those that do not.

use serde_json::Value;

use super::super::exchange::text;
use crate::content::{Arguments, Block, ToolCall};

/// The most calls of one reply.
const MAX_CALLS: usize = 1000;

/// How many characters the name of a call has that we give.
const OWN_ID_CHARS: usize = 24;

/// The calls of a reply while they come.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Call>);

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    written: String,
}

/// There are too many.
#[derive(Debug)]
pub(super) struct TooManyCalls;

impl TooManyCalls {
    pub(super) fn text() -> String {
        format!("it has more than {MAX_CALLS} calls")
    }
}

impl Calls {
    /// Takes a piece. Says the name of the tool if a call begins with it.
    pub(super) fn take(&mut self, piece: &Value) -> Result<Option<String>, TooManyCalls> {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = text(piece, "/id");
        let name = text(piece, "/function/name");
        // Some send the arguments as what they are instead of as text.
        let arguments = match piece.pointer("/function/arguments") {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
        };
        let at = self.going_on(index, id, name, &arguments);
        if let Some(call) = at.and_then(|at| self.0.get_mut(at)) {
            call.written.push_str(&arguments);
            if call.id.is_empty() {
                id.clone_into(&mut call.id);
            }
            if call.name.is_empty() && !name.is_empty() {
                name.clone_into(&mut call.name);
                return Ok(Some(call.name.clone()));
            }
            return Ok(None);
        }
        if self.0.len() == MAX_CALLS {
            return Err(TooManyCalls);
        }
        self.0.push(Call {
            index,
            id: id.to_owned(),
            name: name.to_owned(),
            written: arguments,
        });
        Ok((!name.is_empty()).then(|| name.to_owned()))
    }

    /// The call that a piece belongs to, or nothing if it begins another.
    ///
    /// `OpenAI` numbers the pieces and names the call in the first. Some servers send every call whole
    /// and number all of them zero, and some do not number them at all.
    fn going_on(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.0.iter().rposition(|call| call.index == index)?,
            None if !id.is_empty() => self.0.iter().rposition(|call| call.id == id)?,
            None => self.0.len().checked_sub(1)?,
        };
        let call = self.0.get(at)?;
        let names_another = !id.is_empty() && !call.id.is_empty() && call.id != id;
        let is_complete = || matches!(Arguments::read(&call.written), Arguments::Json(_));
        let begins_again = id.is_empty()
            && !name.is_empty()
            && !call.name.is_empty()
            && (name != call.name
                || (!arguments.is_empty() && !call.written.is_empty() && is_complete()));
        (!names_another && !begins_again).then_some(at)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes the last call if it is not whole.
    pub(super) fn drop_cut_off(&mut self, is_cut_off: impl Fn(&str) -> bool) {
        if self.0.last().is_some_and(|call| is_cut_off(&call.written)) {
            self.0.pop();
        }
    }

    /// The calls, each with a name of its own, also where the server gave none.
    pub(super) fn into_blocks(self) -> Vec<Block> {
        let mut names: Vec<String> = Vec::new();
        let mut blocks = Vec::new();
        for call in self.0 {
            let id = if call.id.is_empty() || names.contains(&call.id) {
                own_id()
            } else {
                call.id
            };
            names.push(id.clone());
            blocks.push(Block::ToolCall(ToolCall {
                id,
                name: call.name,
                arguments: Arguments::read(&call.written),
            }));
        }
        blocks
    }
}

/// A name that no other call of the conversation has.
fn own_id() -> String {
    let letters = std::iter::repeat_with(fastrand::alphanumeric);
    let letters: String = letters.take(OWN_ID_CHARS).collect();
    format!("call_{letters}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Calls;
    use crate::content::{Arguments, Block};

    /// The calls that pieces make: names, arguments, and ids where the server gave them.
    fn calls(pieces: &[Value]) -> Vec<(String, String, Value)> {
        let mut calls = Calls::default();
        for piece in pieces {
            calls.take(piece).unwrap();
        }
        let blocks = calls.into_blocks();
        let calls = blocks.into_iter().map(|block| {
            let Block::ToolCall(call) = block else {
                panic!("{block:?}");
            };
            let Arguments::Json(arguments) = call.arguments else {
                panic!("{:?}", call.arguments);
            };
            let is_own = call.id.starts_with("call_") && call.id.len() == 29;
            let id = if is_own { "own".to_owned() } else { call.id };
            (id, call.name, arguments)
        });
        calls.collect()
    }

    fn check(pieces: &[Value], expected: &[(&str, &str, Value)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(id, name, arguments)| ((*id).to_owned(), (*name).to_owned(), arguments.clone()))
            .collect();
        assert_eq!(calls(pieces), expected, "{pieces:?}");
    }

    #[test]
    fn numbered_pieces_are_put_together_also_when_they_alternate() {
        let pieces = [
            json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}}),
            json!({"index": 1, "id": "b", "function": {"name": "two", "arguments": "{\"x"}}),
            json!({"index": 0, "function": {"arguments": "{}"}}),
            json!({"index": 1, "function": {"arguments": "\": 1}"}}),
        ];
        check(
            &pieces,
            &[("a", "one", json!({})), ("b", "two", json!({"x": 1}))],
        );
    }

    #[test]
    fn a_name_that_comes_late_is_a_name() {
        let pieces = [
            json!({"index": 0, "function": {"arguments": ""}}),
            json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{}"}}),
        ];
        check(&pieces, &[("a", "one", json!({}))]);
    }

    #[test]
    fn pieces_that_repeat_their_name_are_one_call() {
        let pieces = [
            json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{"}}),
            json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "}"}}),
        ];
        check(&pieces, &[("a", "one", json!({}))]);
    }

    #[test]
    fn whole_calls_with_the_same_number_are_several() {
        let pieces = [
            json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"x\": 1}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "one", "arguments": "{\"x\": 2}"}}),
        ];
        check(
            &pieces,
            &[("a", "one", json!({"x": 1})), ("b", "one", json!({"x": 2}))],
        );
    }

    #[test]
    fn whole_calls_without_numbers_and_names_get_names() {
        let pieces = [
            json!({"function": {"name": "one", "arguments": {"x": 1}}}),
            json!({"function": {"name": "two", "arguments": "{}"}}),
            json!({"function": {"name": "three"}}),
        ];
        check(
            &pieces,
            &[
                ("own", "one", json!({"x": 1})),
                ("own", "two", json!({})),
                ("own", "three", json!({})),
            ],
        );
    }

    #[test]
    fn a_name_that_is_given_twice_is_given_out_once() {
        let pieces = [
            json!({"index": 0, "id": "same", "function": {"name": "one", "arguments": "{}"}}),
            json!({"index": 1, "id": "same", "function": {"name": "two", "arguments": "{}"}}),
        ];
        check(
            &pieces,
            &[("same", "one", json!({})), ("own", "two", json!({}))],
        );
    }
}
