//! Members of an object that others may read in place of those that we read.
//!
//! What is passed on is read again by the server, and some parsers do not tell `name` from `Name`, from
//! `ſ` for `s`, or from `name` with a NUL behind it; the last one that they find counts. What decides
//! here has to be what counts there, so an object that can be read in two ways is not passed on.

use std::borrow::Cow;

use cocode_wire::{RpcError, code};
use serde::Deserialize;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Why an object cannot be taken at its word.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unclear {
    /// It is no object, or has a key that is no text.
    Unreadable,
    /// It has this member twice.
    Twice(&'static str),
    /// It has a member that may be taken for this one.
    Like(&'static str),
}

impl Unclear {
    /// What the client is told. `place` is the object.
    pub(crate) fn refusal(&self, place: &str) -> RpcError {
        let what = match self {
            Self::Unreadable => format!("{place} cannot be read: it is no object with plain keys"),
            Self::Twice(member) => format!("{place} has the member `{member}` twice"),
            Self::Like(member) => format!(
                "{place} has a member that servers may take for `{member}`, spelled another way"
            ),
        };
        RpcError::new(code::INVALID_PARAMS, what)
    }
}

/// Reads these members of an object, the first of each, and tells whether they are all that anybody
/// could take for them. Allocates nothing, unless keys have escapes.
pub(crate) fn read<'a>(
    object: &'a str,
    known: &'static [&'static str],
    mut take: impl FnMut(&'static str, &'a RawValue),
) -> Result<(), Unclear> {
    let mut unclear = None;
    let visitor = Reading {
        known,
        take: &mut take,
        unclear: &mut unclear,
    };
    let mut parser = serde_json::Deserializer::from_str(object);
    let read = parser.deserialize_map(visitor);
    match (unclear, read) {
        (Some(unclear), _) => Err(unclear),
        (None, Err(_)) => Err(Unclear::Unreadable),
        (None, Ok(())) => Ok(()),
    }
}

struct Reading<'r, F> {
    known: &'static [&'static str],
    take: &'r mut F,
    unclear: &'r mut Option<Unclear>,
}

/// A key that borrows when it can.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, F: FnMut(&'static str, &'de RawValue)> Visitor<'de> for Reading<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = 0_u32;
        while let Some(Key(key)) = map.next_key()? {
            let Some(place) = self.known.iter().position(|known| *known == key) else {
                let like = self.known.iter().find(|known| resembles(&key, known));
                if let Some(like) = like {
                    self.unclear.get_or_insert(Unclear::Like(like));
                }
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let (member, value) = (self.known[place], map.next_value()?);
            if seen & 1 << place == 0 {
                seen |= 1 << place;
                (self.take)(member, value);
            } else {
                self.unclear.get_or_insert(Unclear::Twice(member));
            }
        }
        Ok(())
    }
}

/// Whether a parser that is not strict may take `key` for `known`, which is plain ASCII.
fn resembles(key: &str, known: &str) -> bool {
    // Whatever stands for an ASCII letter takes more bytes than that, and a NUL is one too many.
    if key.len() <= known.len() {
        return key.eq_ignore_ascii_case(known);
    }
    let is_plain = |byte: u8| byte != 0 && byte.is_ascii();
    if key.bytes().all(is_plain) {
        return false;
    }
    let folded = key.chars().filter(|letter| *letter != '\0').map(folded);
    folded.eq(known.chars().map(folded_ascii))
}

/// A letter, as those who ignore case compare it: besides the two cases of ASCII, there are four letters
/// outside of it that some fold into it.
fn folded(letter: char) -> char {
    match letter {
        'ſ' => 's',
        '\u{212a}' => 'k',
        'ı' | 'İ' => 'i',
        other => folded_ascii(other),
    }
}

fn folded_ascii(letter: char) -> char {
    letter.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{Unclear, read};

    const KNOWN: &[&str] = &["name", "task", "inputResponses", "_meta"];

    fn outcome(object: &str) -> (Vec<(&'static str, String)>, Result<(), Unclear>) {
        let mut taken = Vec::new();
        let result = read(object, KNOWN, |member, value| {
            taken.push((member, value.get().to_owned()));
        });
        (taken, result)
    }

    #[test]
    fn members_are_read_and_others_are_none_of_our_business() {
        let object = r#"{"n\u0061me":"a","names":1,"nam":2,"meta":3,"näme":4,"_meta":{"Name":5}}"#;
        let (taken, result) = outcome(object);
        assert_eq!(result, Ok(()));
        let expected = [("name", "\"a\""), ("_meta", r#"{"Name":5}"#)];
        assert_eq!(taken, expected.map(|(key, value)| (key, value.to_owned())));
    }

    #[test]
    fn what_others_may_take_for_a_member_is_seen_however_it_is_spelled() {
        for (key, member) in [
            ("Name", "name"),
            ("NAME", "name"),
            (r"\u004eame", "name"),
            (r"name\u0000", "name"),
            (r"\u0000n\u0000a\u0000ME", "name"),
            ("ta\u{17f}k", "task"),
            ("tas\u{212a}", "task"),
            (r"ta\u017f\u212A", "task"),
            ("\u{131}nputResponses", "inputResponses"),
            ("\u{130}nputre\u{17f}ponses", "inputResponses"),
            ("_Meta", "_meta"),
        ] {
            for object in [
                format!(r#"{{"name":"a","{key}":"b"}}"#),
                format!(r#"{{"{key}":"b","name":"a"}}"#),
            ] {
                let (taken, result) = outcome(&object);
                assert_eq!(result, Err(Unclear::Like(member)), "{object}");
                assert_eq!(taken, [("name", "\"a\"".to_owned())]);
            }
        }
    }

    #[test]
    fn what_is_there_twice_or_cannot_be_read_is_refused() {
        let (taken, result) = outcome(r#"{"name":1,"n\u0061me":2}"#);
        assert_eq!(result, Err(Unclear::Twice("name")));
        assert_eq!(taken, [("name", "1".to_owned())]);
        for object in [r#"["a"]"#, "7", r#"{"name":1,"\ud800":2}"#] {
            assert_eq!(outcome(object).1, Err(Unclear::Unreadable), "{object}");
        }
    }
}
