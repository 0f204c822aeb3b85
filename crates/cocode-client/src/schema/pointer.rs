//! JSON pointers, and the paths that people and models read.

use serde_json::Value;

use super::limits::MAX_PATH_CHARS;
use super::words::{cut, is_plain_name};

/// References are URIs, so a pointer in them may be escaped.
pub(super) fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut ahead = rest.clone();
        let digits = (byte == b'%').then(|| (hex(ahead.next()), hex(ahead.next())));
        if let Some((Some(high), Some(low))) = digits {
            bytes.push(high * 16 + low);
            rest = ahead;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: Option<u8>) -> Option<u8> {
    let digit = char::from(digit?).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// One more step of a pointer.
pub(super) fn child(pointer: &str, name: &str) -> String {
    format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The pointer without its last step.
pub(super) fn parent(pointer: &str) -> &str {
    pointer.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The last step of a pointer.
pub(super) fn last(pointer: &str) -> String {
    let step = pointer.rsplit_once('/').map_or("", |(_, last)| last);
    unescaped(step)
}

fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// A pointer as it would be written in a program: `filters[2].name`. The value decides which steps
/// are numbers of items.
pub(super) fn readable(root: &Value, pointer: &str) -> String {
    let mut path = String::new();
    let mut here = Some(root);
    for step in pointer.split('/').skip(1) {
        let step = unescaped(step);
        let next = here.and_then(|value| match value {
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            Value::Object(members) => members.get(&step),
            _ => None,
        });
        if here.is_some_and(Value::is_array) {
            path.extend(["[", &step, "]"]);
        } else if !is_plain_name(&step) {
            let quoted = Value::String(cut(&step)).to_string();
            path.extend(["[", &quoted, "]"]);
        } else if path.is_empty() {
            path.push_str(&step);
        } else {
            path.extend([".", &step]);
        }
        here = next;
    }
    let excess = path.chars().count().saturating_sub(MAX_PATH_CHARS);
    if excess == 0 {
        return path;
    }
    std::iter::once('…')
        .chain(path.chars().skip(excess))
        .collect()
}
