//! One line of the log: JSON in a fixed order, with the hash of the line before and its own.
//!
//! The hash is that of the line as it stands, up to `,"hash":`, and the brace that closes it. So it can
//! be checked with any tool, and there is nothing to agree on about how JSON is written.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::SystemTime;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::entry::{AuditEntry, AuditEvent};
use super::hash::{AuditHash, AuditHead};
use crate::date;
use crate::digest::sha256;
use crate::principal::is_invisible;

/// No line is longer.
pub const MAX_AUDIT_LINE_BYTES: usize = 256 * 1024;

/// Bytes of a name, a method and so on that are written; the rest is left out.
const MAX_TEXT_BYTES: usize = 1024;
/// Bytes of arguments that are written; of longer ones, the beginning is.
const MAX_ARGUMENTS_BYTES: usize = 16 * 1024;

/// What stands around the hash of a line, at its end.
const HASH_BEGINS: &str = ",\"hash\":\"";
const HASH_ENDS: &str = "\"}";

/// A line of the log that has its place in the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditLine {
    head: AuditHead,
    previous: AuditHash,
    event: Option<AuditEvent>,
    text: String,
}

impl AuditLine {
    /// The line for this entry after the one that is the last so far, [`AuditHead::START`] if there is
    /// none.
    pub fn after(last: AuditHead, entry: &AuditEntry) -> Self {
        let seq = last.next();
        let mut text = written(seq, last.hash, entry);
        text.push('}');
        let hash = AuditHash::from_bytes(sha256(text.as_bytes()));
        text.pop();
        // Writing to a string does not fail.
        let _never_fails = write!(text, "{HASH_BEGINS}{hash}{HASH_ENDS}");
        Self {
            head: AuditHead { seq, hash },
            previous: last.hash,
            event: entry.event.clone(),
            text,
        }
    }

    /// Reads a line, without its end. There is none if this is no line, or if it was changed: if its
    /// hash is not its own.
    pub fn parse(text: &str) -> Option<Self> {
        match Read::of(text) {
            Read::Line(line) => Some(line),
            Read::Changed { .. } | Read::Nothing => None,
        }
    }

    /// Its number and its hash.
    pub fn head(&self) -> AuditHead {
        self.head
    }

    /// The hash of the line before.
    pub fn previous(&self) -> AuditHash {
        self.previous
    }

    /// What happened to the log itself, if that is what the line is about.
    pub fn event(&self) -> Option<&AuditEvent> {
        self.event.as_ref()
    }

    /// Whether it was written before this time. A line that does not say when is new.
    pub fn is_before(&self, time: SystemTime) -> bool {
        #[derive(Deserialize)]
        struct Written<'a> {
            at: &'a str,
        }
        let written = serde_json::from_str::<Written<'_>>(&self.text).ok();
        let at = written.and_then(|written| date::parse(written.at));
        at.is_some_and(|at| at < time)
    }

    /// The line as it is written, without the end of the line: a JSON object.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// What a text turns out to be.
#[derive(Debug)]
pub(super) enum Read {
    /// A line as it was written.
    Line(AuditLine),
    /// It looks like a line, and its hash is not its own.
    Changed { seq: u64, hash: AuditHash },
    /// Something else.
    Nothing,
}

#[derive(Deserialize)]
struct Members<'a> {
    seq: u64,
    previous: AuditHash,
    hash: AuditHash,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
}

impl Read {
    pub(super) fn of(text: &str) -> Self {
        if text.len() > MAX_AUDIT_LINE_BYTES {
            return Self::Nothing;
        }
        let Ok(members) = serde_json::from_str::<Members<'_>>(text) else {
            return Self::Nothing;
        };
        let Members {
            seq,
            previous,
            hash,
            event,
        } = members;
        if own_hash(text, hash) != Some(hash) {
            return Self::Changed { seq, hash };
        }
        // An event of a newer version is a line like any other.
        let event = event.and_then(|event| serde_json::from_str(event.get()).ok());
        Self::Line(AuditLine {
            head: AuditHead { seq, hash },
            previous,
            event,
            text: text.to_owned(),
        })
    }
}

/// The hash that a line should have, if the one that it states stands where it has to.
fn own_hash(text: &str, stated: AuditHash) -> Option<AuditHash> {
    let body = text
        .strip_suffix(HASH_ENDS)?
        .strip_suffix(&stated.to_string())?
        .strip_suffix(HASH_BEGINS)?;
    Some(AuditHash::from_bytes(sha256(
        format!("{body}}}").as_bytes(),
    )))
}

/// The line up to its hash.
fn written(seq: u64, previous: AuditHash, entry: &AuditEntry) -> String {
    let AuditEntry {
        at,
        principal,
        client,
        method,
        server,
        name,
        outcome,
        code,
        took,
        bytes,
        arguments,
        event,
        times,
    } = entry;
    let text_or_null = |text: &Option<String>| match text {
        Some(text) => json_text(cut(text, MAX_TEXT_BYTES)),
        None => "null".to_owned(),
    };
    let mut line = format!(
        "{{\"seq\":{seq},\"at\":\"{}\",\"principal\":{},\"client\":{},\"method\":{},\"server\":{},\"name\":{},\"outcome\":\"{}\",\"code\":{},\"milliseconds\":{},\"bytes\":{bytes}",
        date::format(*at),
        text_or_null(principal),
        text_or_null(client),
        json_text(cut(method, MAX_TEXT_BYTES)),
        text_or_null(server),
        text_or_null(name),
        outcome.as_str(),
        code.map_or_else(|| "null".to_owned(), |code| code.to_string()),
        took.as_millis(),
    );
    if let Some(times) = times {
        // Writing to a string does not fail.
        let _never_fails = write!(line, ",\"times\":{times}");
    }
    if let Some(arguments) = arguments {
        line.push_str(&written_arguments(arguments));
    }
    if let Some(event) = event {
        // Its values are texts and numbers, so there is nothing that could not be written.
        let event = serde_json::to_string(event).unwrap_or_else(|_never| "null".to_owned());
        line.extend([",\"event\":", &harmless(&event)]);
    }
    // Writing to a string does not fail.
    let _never_fails = write!(line, ",\"previous\":\"{previous}\"");
    line
}

/// Arguments as they are, if they are JSON and not too long. What is left out is said, in a member that
/// no arguments have.
fn written_arguments(arguments: &str) -> String {
    if arguments.len() <= MAX_ARGUMENTS_BYTES
        && let Ok(raw) = serde_json::from_str::<&RawValue>(arguments)
    {
        return format!(",\"arguments\":{}", harmless(raw.get()));
    }
    let beginning = json_text(cut(arguments, MAX_TEXT_BYTES));
    let bytes = arguments.len();
    format!(",\"arguments_cut\":{{\"bytes\":{bytes},\"beginning\":{beginning}}}")
}

/// A text as it will stand in a line, without what is left out there.
pub(super) fn cut_text(text: String) -> String {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    cut(&text, MAX_TEXT_BYTES).into_owned()
}

/// The beginning of a text, with a sign that there is more.
fn cut(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return text.into();
    }
    let end = text.floor_char_boundary(max_bytes);
    let beginning = text.get(..end).unwrap_or_default();
    format!("{beginning}…").into()
}

fn json_text(text: impl AsRef<str>) -> String {
    harmless(&serde_json::Value::from(text.as_ref()).to_string())
}

/// JSON without anything that somebody could take for the end of a line, that a terminal would obey, or
/// that cannot be seen. In JSON, such characters stand within texts, where they can be written with
/// their numbers; line ends and tabs stand between values, where a space will do.
fn harmless(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\n' | '\r' | '\t' => text.push(' '),
            character if character.is_control() || is_invisible(character) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string does not fail.
                    let _never_fails = write!(text, "\\u{unit:04x}");
                }
            }
            character => text.push(character),
        }
    }
    text
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
